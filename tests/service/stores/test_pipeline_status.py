import pytest

from service.stores import ExecutorReport, ShardReport, StreamReport
from tests.builders.service import stats_row

pytestmark = pytest.mark.redis


def fares(**told):
    known = {"watermark_us": 5, "open_traces": 2, "held": 1, "waiting": 3, "late_dropped": 4}
    return {"orders": {**known, **told}}


def test_what_a_shard_told_last_is_kept(stores):
    stores.pipeline_status.note([stats_row(1, "5-0", streams=fares(), state_bytes=10)])
    stores.pipeline_status.note([stats_row(0, "7-0"), stats_row(1, "6-0", streams=fares(held=9), state_bytes=20)])
    orders = StreamReport(watermark_us=5, open_traces=2, held=9, waiting=3, late={"dropped": 4})
    assert stores.pipeline_status.shards() == [
        ShardReport(shard=0, position="7-0", state_bytes=None, streams={}),
        ShardReport(shard=1, position="6-0", state_bytes=20, streams={"orders": orders}),
    ]


def test_an_older_report_does_not_replace_a_newer_one(stores):
    for position, size in (("6-0", 20), ("5-9", 10)):
        stores.pipeline_status.note([stats_row(1, position, state_bytes=size)])
    assert [(shard.position, shard.state_bytes) for shard in stores.pipeline_status.shards()] == [("6-0", 20)]


def test_what_is_not_told_is_none(stores):
    stores.pipeline_status.note([stats_row(1, "5-0", streams={"orders": {}})])
    (shard,) = stores.pipeline_status.shards()
    assert shard.streams["orders"] == StreamReport(
        watermark_us=None, open_traces=None, held=None, waiting=None, late={}
    )


def test_nothing_is_known_at_first(stores):
    status = stores.pipeline_status
    assert (status.latest(), status.totals(), status.shards(), status.started_us()) == (None, {}, [], None)
    assert status.note([]) == []


def test_batches_add_up(stores):
    status = stores.pipeline_status
    for batch in range(3):
        status.keep({"batch": batch, "parts_ms": {"match": 1.5, "read": 0.25}})
    assert status.latest() == {"batch": 2, "parts_ms": {"match": 1.5, "read": 0.25}}
    assert status.totals() == {("batches",): 3, ("batch_us", "match"): 4_500, ("batch_us", "read"): 750}


def test_the_last_start_is_kept(stores, clock):
    stores.pipeline_status.begin(clock.now_us())
    clock.forward(5)
    stores.pipeline_status.begin(clock.now_us())
    assert stores.pipeline_status.started_us() == clock.now_us()


def test_executors_are_known_while_they_are_reported(stores, client):
    assert stores.pipeline_status.executors() is None
    report = ExecutorReport(running=2, missing=("worker-3",))
    stores.pipeline_status.keep_executors(report)
    assert stores.pipeline_status.executors() == report
    assert 0 < client.ttl("forestall:pipeline:executors") <= 60
