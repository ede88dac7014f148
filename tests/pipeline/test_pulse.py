"""What is heard of a streaming query, on a real Spark."""

import queue
import time

import orjson
import pytest

from pipeline.progress import BatchMeter, BatchProgress, fold, seen_by_driver
from pipeline.spark.pulse import Pulse

pytestmark = pytest.mark.spark


class Listener(Pulse):
    """A pulse that queues the texts and the beats of a query."""

    def __init__(self, committed=lambda text: None):
        self.texts: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.beats: queue.SimpleQueue[int] = queue.SimpleQueue()
        super().__init__(lambda: self.beats.put(1), self.hear)
        self.meter = committed

    def hear(self, text):
        self.meter(text)
        self.texts.put(text)


def told_by(spark, folder, listener, sink=lambda rows, epoch: None):
    """The progress reports of a query over two files, one per micro-batch; Spark reports from its own thread."""
    source = folder / "in"
    source.mkdir()
    for number in range(2):
        (source / f"{number}.txt").write_text("a\nb\n")
    spark.streams.addListener(listener)
    try:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        writer = lines.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).foreachBatch(lambda _, epoch: sink([], epoch)).start().awaitTermination()
        return [orjson.loads(listener.texts.get(timeout=300)) for _ in range(2)]
    finally:
        spark.streams.removeListener(listener)


def test_each_micro_batch_is_told_once_with_where_its_time_went(spark, tmp_path):
    listener = Listener()
    told = told_by(spark, tmp_path, listener)
    assert [progress["batchId"] for progress in told] == [0, 1]
    assert listener.beats.qsize() >= 2
    for progress in told:
        found = fold(progress, seen_by_driver([], 0.0))
        assert tuple(found.parts_ms) == ("plan", "read", "match", "state", "commit", "other")
        assert sum(found.parts_ms.values()) == pytest.approx(found.duration_ms, abs=1.0)
        assert found.duration_ms > 0
        assert abs(found.started_us / 1_000_000 - time.time()) < 600


def test_a_meter_hears_of_its_own_batches(spark, tmp_path):
    reported: list[BatchProgress] = []
    meter = BatchMeter(lambda rows, epoch: None, reported.append)
    told_by(spark, tmp_path, Listener(meter.committed), meter)
    assert [progress.batch for progress in reported] == [0, 1]
