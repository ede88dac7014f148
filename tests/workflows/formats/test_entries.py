"""JSON and YAML as plain entries."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.errors import ModelRefused
from workflows.formats.entries import Entry, Listing, Mapped, Scalar, read_entries

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def plain(entry: Entry) -> object:
    match entry:
        case Listing():
            return [plain(item) for item in entry.items]
        case Mapped():
            return {key.text: plain(value) for key, value in entry.pairs}
        case Scalar():
            return entry.text if entry.is_quoted else json.loads(entry.text)


@given(st.lists(VALUES) | st.dictionaries(st.text(max_size=5), VALUES), st.sampled_from([None, 2, "\t"]))
def test_json_is_read_exactly(value: object, indent: int | str | None) -> None:
    assert plain(read_entries(json.dumps(value, indent=indent).encode())) == value


def test_json_has_lines_too() -> None:
    entry = read_entries(b'{"a": 1,\n "b": [\n 2,\n {"c": "x"}]}')
    assert isinstance(entry, Mapped)
    (a, one), (b, several) = entry.pairs
    assert isinstance(several, Listing)
    assert [a.line, one.line, b.line, *(item.line for item in several.items)] == [1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("1e5", 1e5), ("-2.5", -2.5), ("1_000", 1000.0), (".inf", None), ("inf", None), ("nan", None),
     ('"1"', None), ("x", None), ("0x10", None), ("1e999", None)],
)  # fmt: skip
def test_numbers(text: str, number: float | None) -> None:
    entry = read_entries(text.encode())
    assert isinstance(entry, Scalar)
    assert entry.number == number


@pytest.mark.parametrize("text", ["\ufeffa: 1", "a: 1\n...\n", "---\na: 1", "{a: 1}", '{"a":\t1}'])
def test_other_ways_to_write_a_mapping(text: str) -> None:
    entry = read_entries(text.encode())
    assert isinstance(entry, Mapped)
    assert entry.keys == ("a",)
    assert entry.get("b") is None


@pytest.mark.parametrize("item", ["1,", "a,"])
def test_so_many_entries_and_no_more(item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.formats.entries.MAX_ENTRIES", 1_000)
    assert isinstance(read_entries(("[" + item * 900 + "1]").encode()), Listing)
    with pytest.raises(ModelRefused, match="the text has more than 1,000 entries"):
        read_entries(("[" + item * 1_100 + "1]").encode())


@given(st.binary(max_size=60) | st.text("{}[]:,-?&*!|>'\"%@`# \n\ta1", max_size=30).map(str.encode))
def test_whatever_comes_is_read_or_refused(content: bytes) -> None:
    try:
        outcome: object = read_entries(content)
    except ModelRefused as refused:
        outcome = refused.problems
    assert isinstance(outcome, Scalar | Listing | Mapped) or outcome
