"""CSV files."""

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import EventFileError
from streams.event import Event
from streams.readers import ReaderOptions, read_events
from streams.readers.comma_separated import infer_value

THREE_ROWS = """\
id,type,time,key,price,customer,vip
e1,A,1970-01-01T00:00:02Z,k1,1.5,007,true
e2,B,1000000,k2,,"Smith, Anna",false
e3,C,1970-01-01T00:00:02Z,k1,-3,x,
"""


def write(folder: Path, content: str | bytes) -> Path:
    """A CSV file with this content."""
    path = folder / "events.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_become_events_by_time(tmp_path: Path) -> None:
    assert read_events(write(tmp_path, THREE_ROWS)) == [
        Event(
            id="e2",
            type="B",
            time_us=1_000_000,
            key="k2",
            data={"price": None, "customer": "Smith, Anna", "vip": False},
        ),
        Event(id="e1", type="A", time_us=2_000_000, key="k1", data={"price": 1.5, "customer": "007", "vip": True}),
        Event(id="e3", type="C", time_us=2_000_000, key="k1", data={"price": -3, "customer": "x", "vip": None}),
    ]


@pytest.mark.parametrize("option", ["customer", "data.customer"])
def test_the_key_option_names_a_column_that_stays_an_attribute(tmp_path: Path, option: str) -> None:
    events = read_events(write(tmp_path, THREE_ROWS), ReaderOptions(key=option))
    assert [event.key for event in events] == ["Smith, Anna", "007", "x"]
    assert events[1].data == {"key": "k1", "price": 1.5, "customer": "007", "vip": True}


def test_rows_without_ids_are_numbered_within_their_key(tmp_path: Path) -> None:
    content = "type,time,key\nA,3,k1\nB,2,k1\nC,1,k2\n"
    events = read_events(write(tmp_path, content))
    assert [(event.id, event.type) for event in events] == [("k2:1", "C"), ("k1:2", "B"), ("k1:1", "A")]


def test_file_order_needs_no_times(tmp_path: Path) -> None:
    events = read_events(write(tmp_path, "type,key\nA,k\nB,k\n"), ReaderOptions(times="file"))
    assert [(event.type, event.time_us) for event in events] == [("A", 0), ("B", 1)]


def test_empty_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    events = read_events(write(tmp_path, b"\xef\xbb\xbfid,type,time,key\r\n\r\ne1,A,0,k\r\n"))
    assert [event.id for event in events] == ["e1"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no header"),
        ("id,type,time\n", "header: no column key among"),
        (
            "id;type;time;key\n",
            "header: no column type, key, time among .*; name the column with --type, --key, --time; without times",
        ),
        ("id,type,key\n", r"no column time .* use the order of the file \(--times file\)"),
        ("id,type,time,key,id\n", "header: column id comes twice"),
        ("id,type,time,key\ne1,A,0\n", "line 2: 3 values for 4 columns"),
        ("id,type,time,key\ne1,A,0,k,x\n", "line 2: 5 values for 4 columns"),
        ("id,type,time,key\ne1,A,,k\n", "line 2: no time; fill the column time"),
        ("id,type,time,key\ne1,A,soon,k\n", "line 2: time 'soon' is neither a number nor ISO 8601"),
        ("id,type,time,key\ne1,,0,k\n", "line 2: .* non-empty text as type"),
        ("id,type,time,key\n,A,0,k\n", "line 2: .* non-empty text as id"),
        ("id,type,time,key\ne1,A,0,\n", "line 2: the correlation key is empty"),
        ('id,type,time,key\ne1,"A,0,k\n', "not CSV"),
        (b"id,type,time,key\ne1,\xff,0,k\n", "not UTF-8"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: str | bytes, reason: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(EventFileError, match=reason) as caught:
        read_events(path)
    assert caught.value.message.startswith(str(path))


def test_an_unknown_key_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EventFileError, match="no column region among"):
        read_events(write(tmp_path, THREE_ROWS), ReaderOptions(key="region"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("0", 0),
        ("-12", -12),
        ("007", "007"),
        ("+5", "+5"),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", "9223372036854775808"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1.50", 1.5),
        ("-2e3", -2000.0),
        ("1e999", "1e999"),
        (".5", ".5"),
        ("nan", "nan"),
        ("1_000", "1_000"),
        (" 1", " 1"),
        ("\uff11", "\uff11"),
        ("2026-01-01", "2026-01-01"),
    ],
)
def test_values_are_inferred_one_by_one(text: str, value: Any) -> None:
    assert infer_value(text) == value
    assert type(infer_value(text)) is type(value)


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_python_writes_them_are_read_back(number: float) -> None:
    assert infer_value(repr(number)) == number
    assert type(infer_value(repr(number))) is type(number)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ABC"),
            st.integers(0, 3),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
        ),
        max_size=12,
    )
)
def test_ties_keep_file_order(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, str]]) -> None:
    path = tmp_path_factory.mktemp("rows") / "events.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["type", "time", "key"])
        writer.writerows(rows)
    read = [(event.type, event.time_us, event.key) for event in read_events(path)]
    assert read == sorted(rows, key=lambda row: row[1])
