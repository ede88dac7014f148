"""Documents in JSON and YAML as plain values, with their lines."""

import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streams import Bare, UnreadableText, composed, decoded_text, line_of, plain_value, read_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def plain(value: object) -> object:
    match value:
        case list():
            return list(map(plain, value))
        case dict():
            return {key: plain(one) for key, one in value.items()}
        case Bare(written):
            return json.loads(written)
    return value


def of_node(node: yaml.Node) -> object:
    """The value of a node of JSON."""
    return plain_value(node, lambda scalar: scalar.value if scalar.style else json.loads(scalar.value))


@given(st.lists(VALUES) | st.dictionaries(st.text(max_size=5), VALUES), st.sampled_from([None, 2, "\t"]))
def test_json_is_read_exactly(value: object, indent: int | str | None) -> None:
    document = read_document(json.dumps(value, indent=indent))
    assert plain(document.value) == of_node(document.root) == value


def test_json_has_lines_too() -> None:
    document = read_document('{"a": 1,\n "b": [\n 2,\n {"c": "\\ud83d\\ude00"}],\n\t"d": 1}')
    paths = [("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "c"), ("d",), ("e",), ("b", 2), ("a", 0)]
    assert [document.line(path) for path in paths] == [1, 2, 3, 4, 4, 5, None, None, None]
    assert isinstance(document.root, yaml.MappingNode)
    assert [line_of(key) for key, _ in document.root.value] == [1, 2, 5]


def test_json_that_yaml_cannot_follow_has_no_lines() -> None:
    document = read_document('{"%s": 1}' % ("long" * 500))
    assert (document.line(("long" * 500,)), list(plain(document.value).values())) == (None, [1])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1_000", Bare("1_000")), ("No", Bare("No")), ("2026-01-01", Bare("2026-01-01")), ("~", None), ("", None),
     ('"1"', "1"), ("x", "x"), ("!!str 1", "1"), ("!!int x", Bare("x"))],
)  # fmt: skip
def test_scalars_of_yaml(text: str, value: object) -> None:
    assert read_document(f"- {text}").value == [value]


@pytest.mark.parametrize("text", [b"\xef\xbb\xbfa: 1", "a: 1\n...\n", "---\na: 1", "{a: 1}", '{"a":\t1}'])
def test_other_ways_to_write_a_mapping(text: str | bytes) -> None:
    assert read_document(decoded_text(text, 100)).value == {"a": Bare("1")}


def test_all_documents_of_a_text() -> None:
    assert [line_of(root) for root in composed("a: 1\n---\n- b\n---\nc")] == [1, 3, 5]
    with pytest.raises(UnreadableText, match="the key 'b' is given twice"):
        list(composed("a: 1\n---\nb: 1\nb: 2"))


@pytest.mark.parametrize(
    ("text", "count"), [("[&x 1, *x]", 2), ("!x [*y, a: !y b]", 3), ("{[a]: 1, b: {c: 1, c: 2}, {}: 3}", 3)]
)
def test_several_problems_are_named(text: str, count: int) -> None:
    with pytest.raises(UnreadableText) as caught:
        read_document(text)
    assert [line for line, _ in caught.value.problems] == [1] * count


def test_a_tag_does_not_make_a_list_a_text() -> None:
    with pytest.raises(UnreadableText, match="is not allowed"):
        read_document("!!str [a]")


def test_so_many_problems_and_no_more() -> None:
    with pytest.raises(UnreadableText) as caught:
        read_document("a: 1\n" * 1_000)
    assert [line for line, _ in caught.value.problems] == list(range(2, 102))


@given(st.binary(max_size=60) | st.text("{}[]:,-?&*!|>'\"%@`# \n\ta1", max_size=30).map(str.encode))
def test_whatever_comes_is_read_or_refused(content: bytes) -> None:
    try:
        outcome: object = read_document(decoded_text(content, 100)).root
    except UnreadableText as error:
        outcome = error.problems
    assert isinstance(outcome, yaml.Node) or outcome


def test_a_large_mapping_takes_time_in_proportion_to_its_size():
    names = [f'"{number:x}"' for number in range(50_000)]
    text = "{" + ",\n".join(f"{name}: 1" for name in [*names, names[0]]) + "}"
    begun = time.process_time()
    with pytest.raises(UnreadableText, match="given twice"):
        read_document(text)
    found = read_document(text.rpartition(",")[0] + "}")
    assert [found.line((json.loads(name),)) for name in names] == list(range(1, 50_001))
    assert time.process_time() - begun < 10  # about 1.5 s; each key against each other took half a minute


@pytest.mark.parametrize("text", ['{"a": [1, {"b": 2}]}', "a: [1, b: 2]", "a:\n- 1\n- b: 2\n"])
def test_keys_and_values_are_counted(text: str) -> None:
    assert read_document(text, 7).value == {"a": [Bare("1"), {"b": Bare("2")}]}
    with pytest.raises(UnreadableText, match="the text has more than 6 keys and values"):
        read_document(text, 6)
