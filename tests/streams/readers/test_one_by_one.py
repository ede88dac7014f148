"""Row by row gives what reading the whole file gives."""

from datetime import datetime

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streams import Event, EventFileError, FieldMapping, StreamDeclaration, TimeForm
from streams.readers import Columns, ReaderOptions, iterate_events, read_events

LINES = [
    {"id": "e1", "type": "A", "time": "2026-01-01T00:00:02Z", "key": "k", "data": {"v": 1, "other": "x"}},
    {"id": 2, "type": "B", "time": 1767225601000000, "key": 7, "data": {"v": 2.5, "other": "y"}},
    {"id": "e3", "type": "A", "time": "2026-01-01T00:00:01Z", "key": "k", "data": {"other": "x"}},
]

XES = """<log><trace><string key="concept:name" value="c"/><event><string key="concept:name" value="A"/>
<date key="time:timestamp" value="2026-01-01T00:00:00Z"/></event></trace></log>"""


def by_time(events):
    return sorted(events, key=lambda event: event.time_us)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(map(orjson.dumps, LINES)) + b"\n\n")
    return path


@pytest.mark.parametrize(
    "options", [ReaderOptions(), ReaderOptions(key="data.other"), ReaderOptions(times="line")], ids=str
)
def test_lines_are_the_events_of_the_whole_file(lines, options):
    found = list(iterate_events(lines, options))
    assert by_time(found) == read_events(lines, options)
    assert [event.id for event in found] == ["e1", "2", "e3"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "type,time,key,v\nA,3,k,1\nB,2,k,2\n"),
        (
            "e.xes",
            XES,
        ),
    ],
)
def test_other_files_are_read_as_a_whole(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert list(iterate_events(tmp_path / name)) == read_events(tmp_path / name)


def test_parquet_has_the_columns_of_csv_and_times_of_its_own(tmp_path):
    path = tmp_path / "e.parquet"
    table = {
        "id": ["e1", "e2"],
        "type": ["A", "B"],
        "time": pa.array([1_000_001, 2_000_000], pa.timestamp("us")),
        "key": ["k", "l"],
        "v": [1, None],
        "customer.name": ["x", "y"],
    }
    pq.write_table(pa.table(table), path)
    first, second = iterate_events(path)
    assert first == Event(id="e1", type="A", time_us=1_000_001, key="k", data={"v": 1, "customer": {"name": "x"}})
    assert (second.key, second.data["v"]) == ("l", None)
    assert [event.key for event in iterate_events(path, ReaderOptions(key="data.customer.name"))] == ["x", "y"]
    assert [event.time_us for event in iterate_events(path, ReaderOptions(times="line"))] == [0, 1]


def test_a_stream_says_how_its_lines_are_read(tmp_path):
    path = tmp_path / "e.jsonl"
    plain = {"no": 1, "what": {"kind": "A"}, "when": 5, "order": "o1", "v": 1}
    cloud = {
        "specversion": "1.0",
        "id": "c",
        "source": "s",
        "type": "B",
        "time": "1970-01-01T00:00:00Z",
        "subject": "x",
    }
    path.write_bytes(orjson.dumps(plain) + b"\n" + orjson.dumps({**cloud, "data": {"order": "o2"}}))
    mapping = FieldMapping(id="no", type="what.kind", time="when", data=None)
    declaration = StreamDeclaration(name="s", key="order", mapping=mapping, event_types=("Z",))
    with pytest.raises(EventFileError, match="line 2"):  # a CloudEvent's key is its subject or in its data
        list(iterate_events(path, declaration=declaration))
    path.write_bytes(orjson.dumps(plain))
    (event,) = iterate_events(path, declaration=declaration)
    assert (event.id, event.type, event.time_us, event.key, event.data["v"]) == ("1", "A", 5, "o1", 1)


def test_cloudevents_are_taken_too(tmp_path):
    path = tmp_path / "e.jsonl"
    cloud = {
        "specversion": "1.0",
        "id": "c",
        "source": "s",
        "type": "B",
        "time": "1970-01-01T00:00:01Z",
        "subject": "x",
    }
    path.write_bytes(orjson.dumps(cloud))
    (event,) = iterate_events(path, declaration=StreamDeclaration(name="s"))
    assert (event.id, event.key, event.time_us) == ("c", "x", 1_000_000)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"nonsense", "line 1: not JSON"),
        (b"[1]", "JSON object"),
        (b'{"id":"a","type":"A","key":"k"}', "no time"),
        (b'{"id":"a","type":"A","time":1}', "'key' is missing"),
    ],
)
def test_what_is_no_event_is_told_with_its_line(tmp_path, line, words):
    (tmp_path / "e.jsonl").write_bytes(line + b"\n" + orjson.dumps(LINES[0]))
    with pytest.raises(EventFileError, match=words):
        list(iterate_events(tmp_path / "e.jsonl"))


def test_unknown_kinds_and_damaged_files_are_refused(tmp_path):
    (tmp_path / "e.txt").write_text("")
    with pytest.raises(EventFileError, match="unknown kind"):
        list(iterate_events(tmp_path / "e.txt"))
    (tmp_path / "e.parquet").write_text("no")
    with pytest.raises(EventFileError, match="not readable as Parquet"):
        list(iterate_events(tmp_path / "e.parquet"))


STRANGE = ReaderOptions(key="order", columns=Columns(type="what", time="at"), clock=TimeForm(zone="Europe/Berlin"))


def test_columns_of_strangers_are_read_row_by_row_too(tmp_path):
    rows = [{"what": "A", "at": "2026-01-01 01:00", "order": "o1", "n": 1}]
    (tmp_path / "e.jsonl").write_bytes(orjson.dumps(rows[0]) + b"\n")
    naive = {**rows[0], "at": datetime(2026, 1, 1, 1)}
    pq.write_table(pa.Table.from_pylist([naive]), tmp_path / "e.parquet")
    for name in ("e.jsonl", "e.parquet"):
        (event,) = iterate_events(tmp_path / name, STRANGE)
        assert (event.id, event.type, event.key) == (f"{name}:1", "A", "o1")
        assert event.time_us == 1_767_225_600_000_000
        assert event.data["n"] == 1


def test_times_of_parquet_without_a_zone_are_of_the_assumed_one(tmp_path):
    row = {"id": "e", "type": "A", "time": datetime(2026, 1, 1, 1), "key": "k"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "e.parquet")
    (assumed,) = iterate_events(tmp_path / "e.parquet", ReaderOptions(clock=TimeForm(zone="Europe/Berlin")))
    (utc,) = iterate_events(tmp_path / "e.parquet")
    assert (assumed.time_us, utc.time_us) == (1_767_225_600_000_000, 1_767_229_200_000_000)


def test_columns_of_an_xes_file_cannot_be_named(tmp_path):
    (tmp_path / "e.xes").write_text(XES)
    with pytest.raises(EventFileError, match=r"XES defines .*remove --type, --time"):
        read_events(tmp_path / "e.xes", STRANGE)
