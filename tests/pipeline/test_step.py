import pyarrow as pa

from pipeline.rows import OutputRow, RowKind
from pipeline.step import from_table, ranges, to_batch

NAMES = ("shard", "after", "position", "kind", "stream", "route", "body")


def rows_of(*rows):
    return pa.RecordBatch.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows])


def test_the_rows_of_a_partition_are_its_shards_one_after_another():
    first = rows_of((0, "0-0", "1-1", "events", "s", "", b"a"), (0, "0-0", "1-2", "events", "s", "", b"b"))
    second = rows_of((0, "0-0", "1-3", "tick", "s", "r", b"c"), (3, "7-0", "8-1", "events", "s", "", b"d"))
    found = [
        (shard, after, [(entry.position, entry.kind, entry.route, entry.body) for entry in entries])
        for shard, after, entries in ranges([first, second])
    ]
    assert found == [
        (0, "0-0", [("1-1", "events", "", b"a"), ("1-2", "events", "", b"b"), ("1-3", "tick", "r", b"c")]),
        (3, "7-0", [("8-1", "events", "", b"d")]),
    ]
    assert list(ranges([])) == []


def test_rows_travel_through_spark_and_come_back_by_shard_and_position():
    rows = [
        OutputRow(kind=RowKind.ALERT, stream="s", id=name, body=b"{}", position=position, shard=shard)
        for name, position, shard in (("a", "10-0", 1), ("b", "9-2", 1), ("c", "9-2", 1), ("d", "99-0", 0))
    ]
    table = pa.Table.from_batches([to_batch(rows)])
    assert [row.id for row in from_table(table)] == ["d", "b", "c", "a"]
    assert sorted(from_table(table), key=lambda row: row.id) == rows
