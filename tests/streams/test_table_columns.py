"""Tables as events: what is refused names the column and the row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from streams import EventRejected, TimeForm
from streams.readers import Columns, ReaderOptions, batch_of_table

T = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
T_US = 1_767_225_600_000_000
SKIPPED_US = TimeForm(zone="Europe/Berlin").read("2026-03-29 02:30")


def events(columns, options=None, read=None):
    return batch_of_table(pa.table(columns), options or ReaderOptions(), read)


def table(**changed):
    return {"type": ["A", "B"], "time": [T, T], "key": ["k", "k"], **changed}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (table(type=["A", ""]), "column 'type': row 1: null or empty; every event has a type"),
        (table(type=[None, None]), "column 'type': row 0 and 1 more: null or empty"),
        (table(key=["k", None]), "column 'key': row 1: null or empty; every event has a key"),
        (table(key=pa.array(["k", None]).dictionary_encode()), "column 'key': row 1: null or empty"),
        (table(key=[0.5, 1.5]), "column 'key' has values of the type double; the key of an event is a text or a whole"),
        (table(id=["1", None]), "column 'id': row 1: null or empty; every event has a id"),
        (table(time=[T, None]), "column 'time': row 1: null or empty"),
        (table(time=["2026-01-01T00:00:00Z", "soon"]), "column 'time', row 1: time 'soon' is neither a number nor"),
        (table(time=[True, False]), "column 'time' has values of the type bool; a time is a timestamp, a date"),
        (table(time=pa.array([2**40, 0]).cast(pa.timestamp("s"))), "column 'time', row 0: outside the years 1 to 9999"),
        ({"type": ["A"], "time": [T]}, "no column 'key' among type, time; name the column of the key"),
        ({"typ": ["A"], "time": [T], "key": ["k"]}, "no column 'type' .did you mean typ.. among typ, time, key"),
    ],
)
def test_a_bad_table_is_refused(columns, message):
    with pytest.raises(EventRejected, match=message):
        events(columns)


@pytest.mark.parametrize(
    ("times", "clock", "expected"),
    [
        ([T], TimeForm(), T_US),
        (pa.array([T], pa.timestamp("ns", "Asia/Tokyo")), TimeForm(), T_US),
        (pa.array([T_US * 1000 + 1999], pa.int64()).cast(pa.timestamp("ns")), TimeForm(), T_US + 1),
        (pa.array([-1], pa.int64()).cast(pa.timestamp("ns")), TimeForm(), -1),
        ([T.replace(tzinfo=None)], TimeForm(), T_US),
        ([T.replace(tzinfo=None)], TimeForm(zone="Europe/Berlin"), T_US - 3_600_000_000),
        ([T.replace(tzinfo=None)], TimeForm(zone="+02:00"), T_US - 7_200_000_000),
        ([dt.datetime(2026, 3, 29, 2, 30)], TimeForm(zone="Europe/Berlin"), SKIPPED_US),
        ([dt.date(2026, 1, 1)], TimeForm(), T_US),
        ([1_767_225_600], TimeForm(), T_US),
        ([1_767_225_600_000], TimeForm(), T_US),
        ([1_767_225_600.5], TimeForm(), T_US + 500_000),
        ([17], TimeForm(unit="s"), 17_000_000),
        (["2026-01-01 01:00:00+01:00"], TimeForm(), T_US),
        (["01.01.2026 01:00"], TimeForm(zone="Europe/Berlin"), T_US),
        (pa.array(["2026-01-01T00:00:00"]).dictionary_encode(), TimeForm(), T_US),
    ],
)
def test_times_are_read(times, clock, expected):
    found = events({"type": ["A"], "time": times, "key": ["k"]}, ReaderOptions(clock=clock))
    assert found.time_us.tolist() == [expected]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, None], pa.int8()), [1, None]),
        (pa.array([2**63, 1], pa.uint64()), [2**63, 1]),
        (pa.array([0.5, float("nan")]), [0.5, None]),
        (pa.array([float("inf"), None]), [None, None]),
        (pa.array([1.0, 2.0], pa.float32()), [1.0, 2.0]),
        (pa.array([True, None]), [True, None]),
        (pa.array(['a"\\\n', None]), ['a"\\\n', None]),
        (pa.array(["é", "é"]).dictionary_encode(), ["é", "é"]),
        (pa.array([None, None]), [None, None]),
        (pa.array([Decimal("1.50"), None]), [1.5, None]),
        (pa.array([T, None]), ["2026-01-01T00:00:00.000000Z", None]),
        (pa.array([dt.date(2026, 1, 1), None]), ["2026-01-01", None]),
        (pa.array([[1, 2], None]), [[1, 2], None]),
        (pa.array([{"x": 1, "y": {"z": "q"}}, None]), [{"x": 1, "y": {"z": "q"}}, None]),
        (pa.array([b"raw", None]), ["raw", None]),
        (pa.array([], pa.string()), []),
    ],
)
def test_attributes_are_plain_json(values, expected):
    size = len(values)
    columns = {"type": pa.array(["A"] * size), "time": pa.array([T] * size, pa.timestamp("us", "UTC")), "v": values}
    found = events({**columns, "key": pa.array(["k"] * size)})
    assert [orjson.loads(one)["v"] for one in found.columns.column("data").to_pylist()] == expected
    if ("v",) in found.attributes:
        assert found.attributes["v",].to_pylist() == expected


def test_inner_values_are_columns_by_path():
    found = events(table(n=[{"x": 1, "y": {"z": "q"}}, None], data=[{"a": 1}, {"a": 2}]))
    assert {path: column.to_pylist() for path, column in found.attributes.items()} == {
        ("n", "x"): [1, None],
        ("n", "y", "z"): ["q", None],
        ("a",): [1, 2],
    }


def test_keys_are_columns_paths_and_numbers():
    columns = {"type": ["A", "B"], "time": [T, T], "order": [1, 2], "data": [{"customer": {"id": "x"}}] * 2}
    assert events(columns, ReaderOptions(key="order")).columns.column("key").to_pylist() == ["1", "2"]
    assert events(columns, ReaderOptions(key="data.customer.id")).columns.column("key").to_pylist() == ["x", "x"]
    by_type = ReaderOptions(key={"A": "order", "*": "data.customer.id"})
    assert events(columns, by_type).columns.column("key").to_pylist() == ["1", "x"]
    with pytest.raises(EventRejected, match="an event of the type 'B' has no correlation key here"):
        events(columns, ReaderOptions(key={"A": "order"}))


def test_rows_are_ordered_by_time_and_keep_their_numbers():
    columns = table(type=["A", "B", "C"], time=[3, 1, 1], key=["k"] * 3)
    assert events(columns).columns.column("id").to_pylist() == ["1", "2", "0"]
    assert events(columns, ReaderOptions(times="file")).columns.column("id").to_pylist() == ["0", "1", "2"]
    assert events(columns, ReaderOptions(times="line")).time_us.tolist() == [0, 1, 2]


def test_repeated_ids_are_dropped_and_counted():
    dropped: list[int] = []
    columns = table(type=["A", "B", "C"], time=[3, 1, 2], key=["k"] * 3, id=["x", "y", "x"])
    found = events(columns, ReaderOptions(on_dropped=dropped.append))
    assert (found.to_events()[1].type, len(found), dropped) == ("A", 2, [1])
    assert len(events(columns, ReaderOptions(duplicates="keep"))) == 3
    joined = events(columns, ReaderOptions(columns=Columns(id=("id", "type"))))
    assert joined.columns.column("id").to_pylist() == ["y:B", "x:C", "x:A"]


def test_only_needed_attributes_are_read():
    found = events(table(v=[1, 2], w=["a", "b"]), read={"v"})
    assert [event.data for event in found.to_events()] == [{"v": 1}, {"v": 2}]
    chosen = events(table(v=[1, 2], w=["a", "b"]), ReaderOptions(columns=Columns(attributes=("w",))))
    assert [event.data for event in chosen.to_events()] == [{"w": "a"}, {"w": "b"}]
