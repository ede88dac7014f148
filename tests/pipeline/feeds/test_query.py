import time
from dataclasses import replace

import pytest

from pipeline.errors import QueryFailed, SourceOptionError
from pipeline.feeds import FeedOptions, FolderOptions, KafkaOptions, start_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


class ListSink:
    def __init__(self):
        self.batches = {}

    def __call__(self, rows, batch):
        self.batches.setdefault(batch, []).append(list(rows))

    @property
    def bodies(self):
        return [row.body for batch in sorted(self.batches) for row in self.batches[batch][-1]]


def lines(first, count):
    return [b'{"id":%d}' % number for number in range(first, first + count)]


def options(source, tmp_path, **changes):
    return FeedOptions(
        **{"source": source, "state": tmp_path / "feed", "is_bounded": True, "interval_s": 0.1, **changes}
    )


def test_files_reach_the_sink_in_order_and_later_ones_in_the_next_run(spark, folder, tmp_path):
    source = FolderOptions(folder=folder, state=tmp_path / "feed", max_rows=1_000)
    (folder / "a.jsonl").write_bytes(b"\n".join(lines(0, 2_500)))
    sink = ListSink()
    start_feed(spark, options(source, tmp_path), sink).wait()
    assert sink.bodies == lines(0, 2_500)
    assert [len(rows) for (rows,) in sink.batches.values()] == [1_000, 1_000, 500]
    (folder / "b.jsonl").write_bytes(b"\n".join(lines(2_500, 10)))
    start_feed(spark, options(source, tmp_path), sink).wait()
    assert sink.bodies == lines(0, 2_510)
    assert sorted(sink.batches) == [0, 1, 2, 3]


def test_a_micro_batch_that_failed_comes_again_with_the_same_rows(spark, folder, tmp_path):
    source = FolderOptions(folder=folder, state=tmp_path / "feed")
    path = folder / "a.jsonl"
    path.write_bytes(b"\n".join(lines(0, 10)))

    def failing(rows, batch):
        sink(rows, batch)
        raise SourceOptionError("the sink does not want it")

    sink = ListSink()
    with pytest.raises(SourceOptionError, match="does not want it"):
        start_feed(spark, options(source, tmp_path), failing).wait()
    path.unlink()
    (folder / "0.jsonl").write_bytes(b"\n".join(lines(10, 5)))
    start_feed(spark, options(source, tmp_path), sink).wait()
    first, second = sink.batches[0]
    assert first == second
    assert sink.bodies == lines(0, 15)


def test_files_that_appear_are_fed_until_the_feed_is_stopped(spark, folder, tmp_path):
    sink = ListSink()
    query = start_feed(
        spark, options(FolderOptions(folder=folder, state=tmp_path / "feed"), tmp_path, is_bounded=False), sink
    )
    wanted = lines(0, 30)
    deadline = time.monotonic() + 600

    def look():
        if not (folder / "a.jsonl").exists():
            (folder / "a.jsonl").write_bytes(b"\n".join(wanted[:10]))
        if len(sink.bodies) == 10 and not (folder / "b.jsonl").exists():
            (folder / "b.tmp").write_bytes(b"\n".join(wanted[10:]))
            (folder / "b.tmp").rename(folder / "b.jsonl")
        if len(sink.bodies) == 30 or time.monotonic() > deadline:
            query.request_stop()

    query.wait(look=look)
    assert sink.bodies == wanted


def test_a_source_s_error_is_told_in_its_words(spark, folder, tmp_path):
    query = start_feed(spark, options(FolderOptions(folder=folder / "gone", state=tmp_path / "feed"), tmp_path), print)
    with pytest.raises(QueryFailed, match=r"the folder .*gone cannot be listed: No such file"):
        query.wait()


def test_records_of_a_topic_reach_the_sink_once_over_two_runs(spark, brokers, tmp_path):
    brokers.produce("t", lines(0, 50), partition=0)
    brokers.produce("t", lines(50, 20), partition=2)
    source = KafkaOptions(servers=brokers.address, topics=("t",), max_rows=40, settings={"log_level": "0"})
    sink = ListSink()
    start_feed(spark, options(source, tmp_path), sink).wait()
    assert sorted(sink.bodies) == sorted(lines(0, 70))
    assert [len(rows) for (rows,) in sink.batches.values()] == [40, 30]
    brokers.produce("t", lines(70, 5), partition=1)
    start_feed(spark, options(source, tmp_path), sink).wait()
    assert sink.bodies[70:] == lines(70, 5)


def test_a_topic_that_is_added_is_read_from_its_first_remaining_record(spark, brokers, tmp_path):
    brokers.produce("t", lines(0, 5), partition=0)
    source = KafkaOptions(servers=brokers.address, topics=("t",), settings={"log_level": "0"})
    sink = ListSink()
    start_feed(spark, options(source, tmp_path), sink).wait()
    brokers.produce("u", [b"old" * 300_000] * 7 + [b"new"], partition=1)  # mock brokers keep 5 MB of a partition
    start_feed(spark, options(replace(source, topics=("t", "u")), tmp_path), sink).wait()
    assert sink.bodies[:5] == lines(0, 5)
    assert (sink.bodies[-1], len(sink.bodies[5:]) < 8) == (b"new", True)
