import gzip
from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streams import EventFileError, FieldMapping, StreamDeclaration, TimeForm, parse_cloudevent, parse_plain
from streams.readers import Columns, RawRow, ReaderOptions, RowLayout, kind_of, raw_rows

ORDERS = StreamDeclaration(name="orders")
XES = """<log><trace><string key="concept:name" value="c1"/>
<event><string key="concept:name" value="B"/><date key="time:timestamp" value="2026-01-01T00:00:02Z"/></event>
<event><string key="concept:name" value="A"/></event></trace>
<trace><string key="concept:name" value="c2"/>
<event><string key="concept:name" value="A"/><date key="time:timestamp" value="2026-01-01T00:00:01Z"/>
<int key="price" value="7"/></event></trace>
<trace><event/></trace></log>"""


def read(path, kind=None, **layout):
    return list(raw_rows(path, kind or kind_of(path) or "", RowLayout(**layout)))


def read_until_damage(path, reason):
    rows: list[RawRow] = []
    with pytest.raises(EventFileError, match=reason):
        rows.extend(raw_rows(path, kind_of(path) or "", RowLayout()))
    return rows


def bodies(rows):
    return [orjson.loads(row.body) for row in rows]


def test_lines_come_as_they_stand_with_their_numbers(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"id":1}\n\n  not json \r\n{"id":2}'))
    assert [(row.place, row.body, row.fault) for row in read(path)] == [
        (1, b'{"id":1}', None),
        (3, b"not json", None),
        (4, b'{"id":2}', None),
    ]


def test_an_endless_line_is_a_fault_and_the_next_line_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 1_000 + b"\n" + b"y" * 50 + b"\n" + b"z" * 51 + b"\nshort\n")
    rows = read(path, max_row_bytes=50)
    assert [(row.place, row.fault is None) for row in rows] == [(1, False), (2, True), (3, False), (4, True)]
    assert "more than 50 bytes" in rows[0].fault
    assert (rows[1].body, rows[3].body) == (b"y" * 50, b"short")


def test_columns_of_csv_are_members_of_the_event_or_of_its_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        'type,time,key,price,note,data.deep.x\nA,2026-01-01T00:00:00Z,007,3.5,"two\nlines",\nB,5,k,1,,true\n'
    )
    rows = read(path)
    assert [row.place for row in rows] == [3, 4]
    first, second = (parse_plain(body, ORDERS) for body in bodies(rows))
    assert (first.id, first.type, first.key, dict(first.data)) == (
        "a.csv:3",
        "A",
        "007",
        {"price": 3.5, "note": "two\nlines", "deep": {"x": None}},
    )
    assert (second.time_us, second.data["deep"]) == (5, {"x": True})


def test_columns_are_read_by_the_stream_s_own_mapping(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("order.id,what,when,shop\n012,A,7,s1\n")
    mapping = FieldMapping(id="order.id", type="what", time="when", data=None)
    stream = StreamDeclaration(name="orders", key="shop", mapping=mapping)
    rows = read(path, top=None, texts=frozenset({"order.id", "what", "shop"}), id="order.id", time="when")
    event = parse_plain(bodies(rows)[0], stream)
    assert (event.id, event.type, event.time_us, event.key) == ("012", "A", 7, "s1")


def test_a_row_of_the_wrong_width_is_a_fault_and_stops_nobody(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,type,time,key\n1,A,5,k,extra\n2,A,5,k\n")
    rows = read(path)
    assert [row.fault for row in rows] == ["5 values for 4 columns; quote values that contain commas", None]


@pytest.mark.parametrize(
    ("text", "found", "reason"),
    [
        ("id,id\n", 0, "column id comes twice"),
        ('id,type\n1,A\n2,"B\n', 1, "not CSV"),
        (b"id,type\n1,A\n" + b"2,A\n" * 9_000 + b"\xff,B\n", 1, "not UTF-8"),
    ],
)
def test_damage_is_told_after_the_rows_before_it(tmp_path, text, found, reason):
    path = tmp_path / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert len(read_until_damage(path, reason)) >= found


def test_parquet_becomes_json_with_times_in_utc(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "id": ["e1", "e2"],
            "type": ["A", "A"],
            "time": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("ns", "Europe/Paris")),
            "key": ["k", "k"],
            "price": pa.array([Decimal("1.50"), None]),
            "seen": pa.array([datetime(2026, 1, 2)] * 2, pa.timestamp("us")),
            "data": [{"n": 1}, {"n": 2}],
            "raw": [b"x", b"\xff"],
        }
    )
    pq.write_table(table, path)
    rows = read(path)
    assert [row.place for row in rows] == [1, 2]
    event = parse_plain(bodies(rows)[0], ORDERS)
    assert (event.id, event.time_us) == ("e1", 1_767_225_600_000_000)
    assert dict(event.data) == {"n": 1, "price": "1.50", "seen": "2026-01-02T00:00:00.000000Z", "raw": "x"}


def test_what_is_no_parquet_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(EventFileError, match=r"a\.parquet: after row 0: not readable as Parquet"):
        read(path)


def test_xes_becomes_cloudevents_by_time_and_faults_have_their_place(tmp_path):
    path = tmp_path / "a.xes"
    path.write_text(XES)
    rows = read(path)
    faults = {row.place: row.fault for row in rows if row.fault}
    assert list(faults) == ["trace 1, event 2", "trace 3"]
    assert "time:timestamp" in faults["trace 1, event 2"]
    events = [parse_cloudevent(orjson.loads(row.body), ORDERS) for row in rows if not row.fault]
    assert [(event.id, event.type, event.key, dict(event.data).get("price")) for event in events] == [
        ("a.xes:c2:1", "A", "c2", 7),
        ("a.xes:c1:1", "B", "c1", None),
    ]


def test_events_before_the_damage_of_an_xes_file_are_given(tmp_path):
    path = tmp_path / "a.xes"
    path.write_text(XES[: XES.index("<trace><event/>")] + "<oops")
    assert len(read_until_damage(path, "not XML")) == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.JSONL", "jsonl"), ("a.ndjson.gz", "jsonl"), ("a.csv.gz", "csv"), ("a.parquet", "parquet"), ("a.txt", None)],
)
def test_a_name_says_what_a_file_is(tmp_path, name, kind):
    assert kind_of(tmp_path / name) == kind


STRANGER = "nr,what,at,who,time\n1,A,2026-01-31 10:00,k1,early\n2,A,noon,k2,late\n"
MAPPING = ReaderOptions(columns=Columns(type="what", time="at"), key="who", clock=TimeForm(zone="UTC"))


@pytest.mark.parametrize(("key", "place"), [("subject", ("subject",)), ("data.customer", ("data", "customer"))])
def test_rows_of_strangers_become_cloudevents_with_the_key_where_the_stream_has_it(tmp_path, key, place):
    (tmp_path / "a.csv").write_text(STRANGER)
    first, second = read(tmp_path / "a.csv", mapping=MAPPING, key=key)
    event = orjson.loads(first.body)
    assert (event["id"], event["type"], event["time"]) == ("a.csv:2", "A", "2026-01-31T10:00:00.000000Z")
    found = event
    for name in place:
        found = found[name]
    assert found == "k1"
    assert {"nr": 1, "who": "k1", "time": "early"}.items() <= event["data"].items()
    assert "neither a number nor a usual date" in second.fault


def test_lines_of_strangers_become_cloudevents(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"what":"A","at":"2026-01-31","who":"k","price":3}\n[]\n')
    first, second = read(tmp_path / "a.jsonl", mapping=MAPPING)
    assert (orjson.loads(first.body)["id"], orjson.loads(first.body)["data"]) == ("a.jsonl:1", {"who": "k", "price": 3})
    assert second.fault is not None


def test_a_column_that_is_missing_is_named_with_its_option(tmp_path):
    (tmp_path / "a.csv").write_text("nr,at,who\n")
    with pytest.raises(EventFileError, match=r"no column what among nr, at, who.*--type"):
        read(tmp_path / "a.csv", mapping=MAPPING)


def test_columns_that_a_mapping_does_not_name_are_attributes(tmp_path):
    (tmp_path / "a.csv").write_text("nr,order.at,price,payload.x\n1,5,3,4\n")
    layout = {"top": frozenset({"nr", "order.at"}), "id": "nr", "time": "order.at", "data": "payload"}
    (row,) = read(tmp_path / "a.csv", **layout)
    assert orjson.loads(row.body) == {"nr": 1, "order": {"at": 5}, "payload": {"price": 3, "x": 4}}
