import pyarrow as pa
import pytest

from pipeline.step import from_table, portions, ranges, to_batch
from shards.kinds.patterns import ALERT
from shards.rows import ResultRows, RowBlock, rows_of

NAMES = ("shard", "after", "position", "kind", "stream", "route", "body")


def partition(*rows):
    return pa.RecordBatch.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows])


def test_the_rows_of_a_partition_are_its_shards_one_after_another():
    first = partition((0, "0-0", "1-1", "events", "s", "", b"a"), (0, "0-0", "1-2", "events", "s", "", b"b"))
    second = partition((0, "0-0", "1-3", "tick", "s", "r", b"c"), (3, "7-0", "8-1", "events", "s", "", b"d"))
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
    blocks = [
        RowBlock(
            found=ResultRows.of(ALERT, [(name, {"pattern": name}) for name in names]),
            stream="s",
            position=position,
            shard=shard,
        )
        for names, position, shard in (("a", "10-0", 1), ("bc", "9-2", 1), ("d", "99-0", 0))
    ]
    table = pa.Table.from_batches([to_batch(blocks), to_batch([])])
    assert [row.id for row in from_table(table)] == ["d", "b", "c", "a"]
    assert sorted(from_table(table), key=lambda row: row.id) == rows_of(blocks)
    assert [row.body for row in rows_of(blocks)] == [b'{"pattern":"%c"}' % name for name in b"abcd"]


def sized(sizes):
    texts = pa.array(["a"] * len(sizes), pa.string())
    bodies = pa.array([b"x" * size for size in sizes], pa.binary())
    found = ResultRows(kind=ALERT, ids=texts, bodies=bodies, subjects=texts, counters=texts)
    return to_batch([RowBlock(found=found, stream="s", position="1-0", shard=0)])


@pytest.mark.parametrize(("sizes", "expected"), [([], []), ([3] * 10_001, [10_000, 1])])
def test_spark_takes_a_bounded_number_of_rows_at_once(sizes, expected):
    assert [len(portion) for portion in portions(sized(sizes))] == expected


def test_spark_takes_large_rows_in_small_portions():
    most = 4_000_000
    rows = sized([most // 2, most // 2, 1, most + 1, 0, most, 5])
    assert [len(portion) for portion in portions(rows)] == [2, 1, 1, 2, 1]
    assert pa.Table.from_batches(list(portions(rows))) == pa.Table.from_batches([rows])
