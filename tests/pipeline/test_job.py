import threading
from dataclasses import replace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from benchmarks.pipeline_against_empty import start_empty
from pipeline.errors import QueryFailed
from pipeline.job import JobOptions, run_pipeline, start_query
from pipeline.sources import EventLogOptions
from shards.entries import StoredEntry
from streams import ConstraintsOn, PatternOff, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of, run_inline
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis]

SHARDS = 4


class Rows:
    """A sink that keeps rows as a store keyed by id would, and remembers each call."""

    def __init__(self):
        self.by_id = {}
        self.calls = []
        self.failures_left = 0

    def __call__(self, rows, epoch_id):
        rows = [row for row in rows if row.kind != "stats"]
        self.calls.append([row.id for row in rows])
        if rows and self.failures_left:
            self.failures_left -= 1
            raise OSError("the store is full")
        for row in rows:
            assert said(self.by_id.setdefault(row.id, row)) == said(row)


@pytest.fixture
def options(server, tmp_path):
    snapshots = str(tmp_path / "snapshots")
    log = EventLogOptions(redis_url=server.url, shards=SHARDS, snapshots=snapshots, wait_ms=20, max_entries=5)
    return JobOptions(log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handover")


def order_log():
    """Traces over four shards, patterns and constraints that come, change and go among them, and a bad entry."""
    steps: list[Step] = [
        StreamOn(StreamDeclaration(name="orders", end_events=("End",))),
        ConstraintsOn(name="rules", version=1, document={"exclusive": [["L", "U"]]}),
        PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)"),
    ]
    keys = [f"k{number}" for number in range(12)]
    words = [["A", "U", "End"], ["A", "L", "End"], ["A", "A", "U", "U"], ["L", "U", "A"]]
    traces = {key: words[number % len(words)] for number, key in enumerate(keys)}
    number = 0
    for place in range(4):
        batch = []
        for key, word in traces.items():
            if place < len(word):
                number += 1
                batch.append(event(number, word[place], key))
        steps += [batch[::2], batch[1::2]]
        if place == 0:
            steps.append(PatternOn(name="late", version=1, text="PATTERN late EVENT AND(A a, U u)"))
        if place == 2:
            steps.append(PatternOff("late"))
    logs = log_of(steps, shards=SHARDS)
    bad = StoredEntry(position="1-99", kind="events", stream="orders", body=b"junk")
    return {shard: [*entries, bad] for shard, entries in logs.items()}


def halves(logs, middle):
    first = {shard: [e for e in entries if int(e.position[2:]) <= middle] for shard, entries in logs.items()}
    return first, {shard: entries[len(first[shard]) :] for shard, entries in logs.items()}


def said(row):
    """A row but for its position: that of the last entry that was matched together with its own."""
    return row.id, row.kind, row.stream, row.shard, row.body


def sorted_rows(rows):
    return sorted(map(said, rows))


def test_the_job_equals_the_inline_run_over_a_stop_and_a_restart_with_other_cores(spark, server, options):
    logs = order_log()
    first, second = halves(logs, 6)
    rows = Rows()
    server.append(first)
    query = start_query(spark, replace(options, log=replace(options.log, tasks=1)), rows)
    query.drain()
    query.stop()
    server.append(second)
    query = start_query(spark, options, rows)
    query.drain()
    query.stop()
    expected = run_inline(logs)
    assert sorted_rows(rows.by_id.values()) == sorted_rows(expected)
    assert {row.kind for row in expected} == {"alert", "ending", "deviation", "dead-letter"}
    assert sum(len(call) for call in rows.calls) == len(expected)


def test_a_batch_whose_sink_failed_comes_again_with_the_same_rows(spark, server, options):
    logs = order_log()
    server.append(logs)
    rows = Rows()
    rows.failures_left = 1
    bounded = replace(options, is_bounded=True)
    with pytest.raises(QueryFailed, match="the store is full") as caught:
        run_pipeline(spark, bounded, rows)
    assert isinstance(caught.value.__cause__, OSError)
    failed = rows.calls[-1]
    assert failed
    calls = len(rows.calls)
    run_pipeline(spark, bounded, rows)
    assert sorted(rows.calls[calls]) == sorted(failed)
    assert sorted_rows(rows.by_id.values()) == sorted_rows(run_inline(logs))


def test_the_heart_beats_with_news_and_without(spark, server, options):
    beats = threading.Semaphore(0)
    query = start_query(spark, options, Rows(), beats.release)

    def has_beaten():
        query.wait(0.01)  # raises at once where the query has failed
        return beats.acquire(blocking=False)

    try:
        for _ in range(3):
            until(has_beaten, "a beat")
        assert query.is_active
        assert not query.wait(0.3)
        query.request_stop()
        assert query.wait(600)
        assert not query.is_active
    finally:
        query.stop()


def test_the_job_outlives_a_restart_of_the_log(spark, own_server, options):
    logs = order_log()
    first, second = halves(logs, 6)
    rows = Rows()
    own_server.append(first)
    query = start_query(spark, replace(options, log=replace(options.log, redis_url=own_server.url)), rows)
    query.drain()
    own_server.kill()
    own_server.start()
    own_server.append(second)
    query.drain()
    query.stop()
    assert sorted_rows(rows.by_id.values()) == sorted_rows(run_inline(logs))


def test_the_empty_operator_reads_everything_and_says_nothing(spark, server, options):
    server.append(order_log())
    rows = Rows()
    query = start_empty(spark, options, rows)
    query.drain()
    query.stop()
    assert len(rows.calls) > 1
    assert rows.by_id == {}


def test_a_process_of_spark_that_died_before_the_query_starts_is_named(options):
    class Session:
        @property
        def dataSource(self):  # noqa: N802 - the name of Spark
            raise ConnectionRefusedError("refused")

    with pytest.raises(QueryFailed, match="Spark's process is gone: refused"):
        start_query(cast(SparkSession, Session()), options, lambda rows, epoch: None)


def test_a_checkpoint_of_another_number_of_shards_is_refused(spark, server, options):
    first, _ = halves(order_log(), 3)
    server.append(first)
    bounded = replace(options, is_bounded=True)
    run_pipeline(spark, bounded, Rows())
    with pytest.raises(QueryFailed, match="the checkpoint was made with 4 shards and the log has 3"):
        run_pipeline(spark, replace(bounded, log=replace(options.log, shards=3)), Rows())
