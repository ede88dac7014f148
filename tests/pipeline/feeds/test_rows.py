import pyarrow as pa

from pipeline.feeds.rows import FEED_SCHEMA, FeedRow, from_table, to_batch

ROWS = [
    FeedRow(place=0, body=b'{"id":1}', origin={"file": "ä.jsonl", "row": 1}),
    FeedRow(place=7, body=b"\xff", origin={"topic": "t", "partition": 0, "offset": 7}, fault="not JSON"),
]


def test_rows_come_back_as_they_were():
    table = pa.Table.from_batches([to_batch(ROWS[:1]), to_batch(ROWS[1:])])
    assert from_table(table) == ROWS


def test_no_rows_are_a_batch_too():
    assert from_table(pa.Table.from_batches([to_batch([])], FEED_SCHEMA)) == []
