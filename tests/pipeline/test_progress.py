import orjson
import pytest

from pipeline.progress import BatchMeter, BatchProgress, fold, seen_by_driver
from shards.rows import OutputRow

DURATIONS = {
    "triggerExecution": 500, "addBatch": 400, "latestOffset": 20, "getBatch": 1, "queryPlanning": 9,
    "walCommit": 15, "commitOffsets": 12,
}  # fmt: skip
SPARK = {"batchId": 7, "timestamp": "2026-01-01T00:00:10.000Z", "numInputRows": 9, "durationMs": DURATIONS}
TEN_S = 1_767_225_610_000_000


def stats(shard, *, match_s=0.05, **changes):
    stream = {"open_traces": 10, "held": 3, "watermark_us": TEN_S - shard * 1_000_000}
    told = {
        "shard": shard, "entries": 4, "bytes": 1_000, "load_s": 0.01, "match_s": match_s, "keep_s": 0.02,
        "state_bytes": 500, "streams": {"orders": stream}, **changes,
    }  # fmt: skip
    return row("stats", orjson.dumps(told), shard)


def row(kind, body=b"{}", shard=0):
    return OutputRow(kind=kind, stream="", id="x", body=body, position="1-0", shard=shard)


def test_a_batch_is_folded_from_what_shards_and_spark_say():
    rows = [
        stats(1),
        row("alert"),
        row("alert"),
        stats(2),
        row("ending"),
        row("ending-count", b'{"count": 4}'),
    ]
    told = fold(SPARK, seen_by_driver(rows, 40.0))
    assert (told.batch, told.started_us, told.duration_ms) == (7, TEN_S, 500.0)
    assert (told.entries, told.bytes, told.shards) == (8, 2_000, 2)
    assert (told.state_bytes, told.open_traces, told.held) == (1_000, 20, 6)
    assert told.rows == {"alert": 2, "ending": 5}
    assert told.watermark_lag_s == {"orders": 2.5}
    assert told.parts_ms == {
        "plan": 30.0, "read": 200.0, "match": 100.0, "state": 60.0, "commit": 67.0, "other": 43.0,
    }  # fmt: skip
    assert tuple(told.parts_ms) == ("plan", "read", "match", "state", "commit", "other")


def test_the_parts_are_the_whole_also_when_tasks_ran_side_by_side():
    told = fold(SPARK, seen_by_driver([stats(1, match_s=3.0), stats(2, match_s=3.0)], 40.0))
    assert sum(told.parts_ms.values()) == pytest.approx(500.0)
    assert told.parts_ms["read"] == 0.0
    assert told.parts_ms["match"] == pytest.approx(360 * 6_000 / 6_060, abs=0.01)


def test_what_nobody_told_is_not_made_up():
    told = fold(SPARK, seen_by_driver([stats(1, streams={"orders": {}}, state_bytes=None)], 1.0))
    assert (told.events, told.state_bytes, told.open_traces, told.held) == (None, None, None, None)
    assert told.watermark_lag_s == {}
    told = fold(SPARK, seen_by_driver([], 1.0))
    assert (told.entries, told.shards, told.parts_ms["match"]) == (0, 0, 0.0)


def test_the_json_form_is_plain():
    told = fold(SPARK, seen_by_driver([stats(1)], 1.0)).to_json()
    assert orjson.loads(orjson.dumps(told)) == told


def test_a_meter_passes_all_rows_on_and_reports_after_the_commit():
    passed: list[tuple[list[OutputRow], int]] = []
    reported: list[BatchProgress] = []
    meter = BatchMeter(lambda rows, epoch: passed.append((list(rows), epoch)), reported.append)
    rows = [stats(1), row("alert")]
    meter(rows, 7)
    assert passed == [(rows, 7)]
    assert reported == []
    meter.committed(orjson.dumps(SPARK).decode())
    meter.committed(orjson.dumps(SPARK).decode())
    assert [(told.batch, told.rows) for told in reported] == [(7, {"alert": 1})]


def test_events_are_counted_from_what_the_shards_have_matched_in_all():
    reported: list[BatchProgress] = []
    meter = BatchMeter(lambda rows, epoch: None, reported.append)
    totals = [(1, 100), (1, 150), (2, 70), (1, 150), (2, 71)]
    for epoch, (shard, events) in enumerate(totals):
        meter([stats(shard, streams={"a": {"events": events - 20}, "b": {"events": 20}})], epoch)
        meter.committed(orjson.dumps({**SPARK, "batchId": epoch}).decode())
    assert [told.events for told in reported] == [None, 50, None, 0, 1]


def test_a_meter_forgets_batches_that_are_never_committed():
    reported: list[BatchProgress] = []
    meter = BatchMeter(lambda rows, epoch: None, reported.append)
    for epoch in range(100):
        meter([], epoch)
    for epoch in range(100):
        meter.committed(orjson.dumps({**SPARK, "batchId": epoch}).decode())
    assert [told.batch for told in reported] == list(range(92, 100))


def test_a_sink_that_fails_is_not_hidden():
    def fail(*_):
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        BatchMeter(fail, lambda _: None)([], 1)
