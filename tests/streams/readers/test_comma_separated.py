"""CSV files."""

import csv
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import TimeForm
from streams.errors import EventFileError
from streams.event import Event
from streams.readers import ReaderOptions, RowLayout, raw_rows, read_events
from streams.timestamps import format_time

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
    events = read_events(write(tmp_path, "type,key\nA,k\nB,k\n"), ReaderOptions(times="line"))
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
            "id#type#time#key\n",
            "header: no column type, key, time among .*; name the column with --type, --key, --time; without times",
        ),
        ("id,type,key\n", r"no column time .* number the lines \(--times line\)"),
        ("id,type,time,key,id\n", "header: column id comes twice"),
        ("id,type,time,key\ne1,A,0\n", "line 2: 3 values for 4 columns"),
        ("id,type,time,key\ne1,A,0,k,x\n", "line 2: 5 values for 4 columns"),
        ("id,type,time,key\ne1,A,,k\n", "line 2: no time; fill the column time"),
        ("id,type,time,key\ne1,A,soon,k\n", "line 2: time 'soon' is neither a number nor a usual date"),
        ("id,type,time,key\ne1,,0,k\n", "line 2: .* non-empty text as type"),
        ("id,type,time,key\n,A,0,k\n", "line 2: the id is empty; fill its column"),
        ("id,type,time,key\ne1,A,0,\n", "line 2: the correlation key is empty"),
        ('id,type,time,key\ne1,"A,0,k\n', "not CSV"),
        (b"id,type,time,key\ne1,\xff,0,k\n", "is not UTF-8"),
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


def column_of(folder: Path, cells: list[str], **options: Any) -> list[Any]:
    """The values of a column with these cells."""
    path = folder / "column.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["type", "time", "key", "v"], *(["A", "1", "k", cell] for cell in cells)])
    return [event.data["v"] for event in read_events(path, ReaderOptions(**options))]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["", "12", "-3"], [None, 12, -3]),
        (["9223372036854775807"], [2**63 - 1]),
        (["1.1", "2", "-0.5"], [1.1, 2, -0.5]),
        (["1.0", "2.5"], [1.0, 2.5]),
        (["12.50", "3.99", "100.00"], [12.5, 3.99, 100.0]),
        (["1e-07", "0.5"], [1e-07, 0.5]),
        (["true", "", "false"], [True, None, False]),
        (["TRUE", "FALSE"], [True, False]),
        (["1.10", "1.1"], None),
        (["1", "1.0"], None),
        (["100", "12.50"], None),
        (["1E5", "100000"], None),
        (["12E3"], None),
        (["0E5", "00E5"], None),
        (["007"], None),
        (["-0"], None),
        (["+5"], None),
        (["9223372036854775808"], None),
        (["0.12345678901234567890", "0.5"], None),
        (["12", "n/a"], None),
        (["true", "TRUE"], None),
        (["true", "1"], None),
        (["nan", "1.5"], None),
        (["1_000"], None),
        ([" 1"], None),
        (["\uff11"], None),
        (["2026-01-01"], None),
    ],
)
def test_a_column_holds_numbers_where_all_cells_are_written_in_one_way(
    tmp_path: Path, cells: list[str], values: list[Any] | None
) -> None:
    found = column_of(tmp_path, cells)
    expected = cells if values is None else values
    assert [(type(one), one) for one in found] == [(type(one), one) for one in expected]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.from_regex(r"-?[0-9]{1,3}(\.[0-9]{1,2})?(e-?[0-9])?|true|True", fullmatch=True), min_size=1, max_size=4)
)
def test_different_texts_are_never_equal_values(tmp_path_factory: pytest.TempPathFactory, cells: list[str]) -> None:
    found = column_of(tmp_path_factory.mktemp("csv"), cells)
    assert len(set(found)) == len(set(cells))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False).filter(lambda one: one != 0), min_size=1)
)
def test_numbers_as_python_writes_them_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float]
) -> None:
    assert column_of(tmp_path_factory.mktemp("csv"), list(map(repr, numbers))) == numbers


def test_a_type_that_is_named_decides(tmp_path: Path) -> None:
    cells = ["1.10", "1E1", "", "7"]
    assert column_of(tmp_path, cells, types={"v": "number"}) == [1.1, 10.0, None, 7]
    assert column_of(tmp_path, ["1", "2"], types={"v": "text"}) == ["1", "2"]
    assert column_of(tmp_path, ["True", "0"], types={"v": "boolean"}) == [True, False]
    with pytest.raises(EventFileError, match=r"line 3: column v: 'n/a' is not a number; .*--columns v=text"):
        column_of(tmp_path, ["1", "n/a"], types={"v": "number"})


@pytest.mark.parametrize(
    ("cells", "kinds"),
    [(["12", "n/a", "13"], "numbers"), (["true", "n/a", "TRUE"], "booleans"), (["1", "True"], "numbers")],
)
def test_a_column_of_text_that_looks_like_numbers_is_a_notice(tmp_path: Path, cells: list[str], kinds: str) -> None:
    said: list[str] = []
    column_of(tmp_path, cells, on_notice=said.append)
    (found,) = said
    assert found.endswith(
        f"column v is read as text, as its values are not all {kinds} written in one way: {cells[1]!r} in line 3; "
        "--columns v=TYPE decides (text, number or boolean)"
    )
    column_of(tmp_path, ["12", "n/a", "13"], on_notice=said.append, types={"v": "text"})
    column_of(tmp_path, ["x", "n/a", "13"], on_notice=said.append)
    assert len(said) == 1


ROWS = "id;type;time;key;amount\n1;A;2026-01-01T09:00:00Z;k;1,5\n2;B;2026-01-01T09:01:00Z;k;2,25\n"


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (ROWS.encode(), {}, "columns are separated by semicolons"),
        (ROWS.replace(";", "\t").encode(), {}, "columns are separated by tabs"),
        (b"sep=;\r\n" + ROWS.encode(), {}, "columns are separated by semicolons"),
        (ROWS.replace(";", "#").encode(), {"delimiter": "#"}, None),
        (ROWS.encode("utf-16"), {}, "columns are separated by semicolons"),
        (ROWS.replace("A", "\u00fc").encode("latin-1"), {"encoding": "latin-1"}, "columns are separated by semicolons"),
    ],
)
def test_delimiters_and_encodings_are_recognised_and_said(
    tmp_path: Path, content: bytes, options: dict[str, Any], said: str | None
) -> None:
    path = tmp_path / "e.csv"
    notices: list[str] = []
    path.write_bytes(content)
    events = read_events(path, ReaderOptions(**options, on_notice=notices.append))
    assert [event.id for event in events] == ["1", "2"]
    assert [one.partition(": ")[2] for one in notices if "separated" in one] == ([] if said is None else [said])
    if options.get("delimiter") != "#" and b"\t" not in content:
        found = read_events(path, ReaderOptions(**options, types={"amount": "number"}))
        assert [event.data["amount"] for event in found] == [1.5, 2.25]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("id,type,time,key\n1,\u00fc,1,k\n".encode("latin-1"), "is not UTF-8 .byte 0xfc.*--encoding windows-1252"),
        (b"a;b|c\n1;2|3\n", "may be separated by semicolons or vertical bars; say which with --delimiter"),
        (b"id,type,time,key\n1,A,03/04/2025 09:00,k\n", "two ways; say --time-format day-first or month-first"),
    ],
)
def test_what_can_be_read_in_several_ways_is_asked_for(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(content)
    with pytest.raises(EventFileError, match=reason):
        read_events(path, ReaderOptions(clock=TimeForm(zone="UTC")))


def test_one_date_shows_the_order_of_all(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    notices: list[str] = []
    path.write_text("id,type,time,key\n1,A,03/04/2025 09:00,k\n2,B,27/06/2025 10:00,k\n")
    events = read_events(path, ReaderOptions(clock=TimeForm(zone="UTC"), on_notice=notices.append))
    assert [format_time(event.time_us)[:10] for event in events] == ["2025-04-03", "2025-06-27"]
    assert "dates are read day-first" in notices[0]


def test_a_feed_decides_types_of_a_file_alike(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("type;time;key;v;w\nA;1;k;1.10;1\nA;2;k;1.1;2\n")
    rows = [orjson.loads(row.body)["data"] for row in raw_rows(path, "csv", RowLayout())]
    assert rows == [{"v": "1.10", "w": 1}, {"v": "1.1", "w": 2}]
    mapped = raw_rows(path, "csv", RowLayout(mapping=ReaderOptions(types={"v": "number"})))
    assert [orjson.loads(row.body)["data"]["v"] for row in mapped] == [1.1, 1.1]


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
