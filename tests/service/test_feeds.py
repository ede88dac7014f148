import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from pipeline.feeds import FeedOptions, FeedRow, FolderOptions, start_feed
from pipeline.feeds.kafka_messages import read_plain
from service import Intake
from service.errors import BatchTooLarge, DataFolderUnusable, FeedInUse, FeedMisplaced, LogFull, UnknownStream
from service.intake.feeds import FeedSink, opened_feed
from service.intake.posting import FeedPart
from service.settings import Limits
from service.stores import FeedMark, FeedStep
from streams import EventBatch, StreamDeclaration
from streams.readers import ReaderOptions

pytestmark = pytest.mark.redis

PROGRAM = Path(__file__).with_name("feed_process.py")


@pytest.fixture
def intake(stores, clock):
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    return Intake(stores.log, stores.registry, Limits(), clock)


@pytest.fixture
def feed(tmp_path):
    with opened_feed(tmp_path, "f", "orders", "folder /in") as feed:
        yield feed


def rows(count, first=0, spacing=1):
    return [
        FeedRow(
            place=first + n * spacing,
            body=orjson.dumps({"id": f"e{first + n}", "type": "A", "time": 5, "key": f"k{n % 7}"}),
            origin={"file": "a.jsonl", "row": n + 1},
        )
        for n in range(count)
    ]


def sink_of(intake, stores, feed, **limits):
    return FeedSink(intake, stores.feeds, feed, Limits(**limits), threading.Event())


def logged(stores):
    return [
        event
        for shard in range(3)
        for entry in stores.log.read_range(shard)
        if entry.kind == "events"
        for event in EventBatch.from_bytes(entry.body).to_events()
    ]


def ids(stores):
    return sorted((event.id for event in logged(stores)), key=lambda text: int(text.lstrip("e")))


def keys(stores):
    return [event.key for event in logged(stores)]


def wanted(count):
    return [f"e{n}" for n in range(count)]


def test_rows_are_taken_in_portions_and_a_repeated_micro_batch_adds_nothing(intake, stores, feed):
    sink = sink_of(intake, stores, feed, max_batch_events=10)
    sink(rows(25), 0)
    assert ids(stores) == wanted(25)
    assert stores.feeds.mark("f") == FeedMark(checkpoint=feed.checkpoint, batch=1)
    again = sink_of(intake, stores, feed)
    again(rows(25), 0)
    again(rows(5, 25), 1)
    assert ids(stores) == wanted(30)
    assert (again.progress.accepted, again.progress.repeated) == (5, 25)


@pytest.mark.parametrize("portion", [3, 10, 1_000])
def test_a_half_taken_micro_batch_goes_on_behind_its_last_row_however_portions_are_cut(intake, stores, feed, portion):
    class Failing:
        calls = 0

        def ingest(self, *arguments, **named):
            self.calls += 1
            if self.calls == 3:
                raise BatchTooLarge("enough")
            return intake.ingest(*arguments, **named)

    with pytest.raises(BatchTooLarge):
        sink_of(Failing(), stores, feed, max_batch_events=7)(rows(40), 0)
    assert ids(stores) == wanted(14)
    sink_of(intake, stores, feed, max_batch_events=portion)(rows(40), 0)
    assert ids(stores) == wanted(40)


def test_rows_that_are_gone_when_a_micro_batch_is_repeated_shift_no_others(intake, stores, feed):
    stores.feeds.begin("f", FeedMark(checkpoint=feed.checkpoint, batch=0, row=10), "orders")
    thinned = [row for row in rows(20) if row.place % 3]
    sink_of(intake, stores, feed)(thinned, 0)
    assert ids(stores) == [f"e{n}" for n in range(10, 20) if n % 3]


def test_events_with_the_id_of_an_earlier_event_are_counted(intake, stores, feed):
    sink = sink_of(intake, stores, feed, max_batch_events=2)
    sink([replace(rows(1)[0], place=n) for n in range(3)], 0)
    assert ids(stores) == ["e0"]
    assert (sink.progress.accepted, sink.progress.duplicates, sink.progress.repeated) == (1, 2, 0)


def records(cluster, count):
    """Records without ids of the topic ``t``, as a feed reads them."""
    for offset in range(count):
        value = orjson.dumps({"type": "A", "time": 5, "order": f"{cluster}-{offset}"})
        body, fault = read_plain(value, f"t:0:{offset}", ReaderOptions(key="order"), "subject")
        origin = {"topic": "t", "partition": 0, "offset": offset}
        yield FeedRow(place=offset, body=body, origin=origin, fault=fault)


def test_records_without_ids_of_two_clusters_with_one_topic_are_taken_once_each(intake, stores, tmp_path):
    for cluster in ("eu", "us"):
        with opened_feed(tmp_path, cluster, "orders", f"topic t of Kafka cluster {cluster}") as feed:
            rows = list(records(cluster, 5))
            half = FeedMark(checkpoint=feed.checkpoint, row=2)
            stores.feeds.begin(cluster, FeedMark(checkpoint=feed.checkpoint), "orders")
            step = FeedStep(feed=cluster, before=FeedMark(checkpoint=feed.checkpoint), after=half)
            part = FeedPart(step=step, origins=[row.origin for row in rows[:2]])
            intake.ingest("orders", [orjson.loads(row.body) for row in rows[:2]], part=part)  # and the process dies
            for _ in range(2):
                sink = sink_of(intake, stores, feed)
                sink(rows, 0)
            assert (sink.progress.accepted, sink.progress.duplicates, sink.progress.repeated) == (0, 0, 5)
    assert sorted(keys(stores)) == [f"{cluster}-{offset}" for cluster in ("eu", "us") for offset in range(5)]


def test_an_empty_micro_batch_moves_the_mark(intake, stores, feed):
    sink = sink_of(intake, stores, feed)
    sink([], 0)
    sink(rows(1), 1)
    assert stores.feeds.mark("f") == FeedMark(checkpoint=feed.checkpoint, batch=2)


def test_portions_are_bounded_in_bytes(intake, stores, feed):
    sink = sink_of(intake, stores, feed, max_body_bytes=60)
    sink(rows(9), 0)
    entries = [entry for shard in range(3) for entry in stores.log.read_range(shard) if entry.kind == "events"]
    assert len(entries) == 9
    assert ids(stores) == wanted(9)


BAD = {
    "no JSON": (b'{"id":', "not JSON: .* at column"),
    "no event": (b'{"id": "e9"}', "'type' is missing"),
    "no object": (b"[]", "JSON object"),
    "a long integer": (b'{"id":"e","type":"A","time":5,"key":"k","data":{"n":%d}}' % 2**70, "beyond 64 bits"),
    "an endless integer": (b'{"id":"e","type":"A","time":5,"key":"k","data":{"n":1%s}}' % (b"0" * 5000), "not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_a_dead_letter_with_its_origin_and_stops_nobody(intake, stores, feed, name):
    body, reason = BAD[name]
    sink = sink_of(intake, stores, feed)
    bad = FeedRow(place=1, body=body, origin={"file": "a.jsonl", "row": 2})
    sink([rows(1)[0], bad, rows(1, 2)[0]], 0)
    (letter,) = stores.dead_letters.page(10).items
    assert letter["origin"] == {"file": "a.jsonl", "row": 2}
    assert letter["code"] == "event-rejected"
    assert re.search(reason, letter["reason"])
    assert ids(stores) == ["e0", "e2"]


def test_a_fault_of_the_source_is_the_reason_of_the_dead_letter(intake, stores, feed):
    sink = sink_of(intake, stores, feed)
    sink([FeedRow(place=0, body=b"\xff<", origin={"file": "a.gz"}, fault="a.gz: cannot be read")], 0)
    (letter,) = stores.dead_letters.page(10).items
    assert (letter["reason"], letter["event"]) == ("a.gz: cannot be read", "\ufffd<")
    assert sink.progress.rejected == 1


def test_a_full_log_is_waited_for(intake, stores, feed):
    class Full:
        left = 2

        def ingest(self, *arguments, **named):
            self.left -= 1
            if self.left >= 0:
                raise LogFull("the log is full", retry_after_s=0)
            return intake.ingest(*arguments, **named)

    sink = sink_of(Full(), stores, feed)
    sink(rows(3), 0)
    assert ids(stores) == wanted(3)
    assert sink.progress.waiting == ""


def test_waiting_ends_when_the_process_is_to_end(stores, feed):
    class Full:
        def ingest(self, *_, **__):
            stop.set()
            raise LogFull("the log is full", retry_after_s=999)

    stop = threading.Event()
    sink = FeedSink(Full(), stores.feeds, feed, Limits(), stop)
    with pytest.raises(LogFull):
        sink(rows(3), 0)
    assert sink.progress.waiting == "the log is full"


def test_a_stream_that_is_not_declared_ends_the_feed(stores, feed, clock):
    intake = Intake(stores.log, stores.registry, Limits(), clock)
    with pytest.raises(UnknownStream):
        sink_of(intake, stores, feed)(rows(1), 0)


@pytest.mark.parametrize("mark", [None, FeedMark(checkpoint="", batch=1, row=5)])
def test_a_log_that_has_less_than_the_checkpoint_says_is_refused(intake, stores, feed, mark):
    if mark is not None:
        stores.feeds.begin("f", FeedMark(checkpoint=feed.checkpoint, batch=mark.batch, row=mark.row), "orders")
    with pytest.raises(FeedMisplaced, match="is at micro-batch 3"):
        sink_of(intake, stores, feed)(rows(1), 3)
    assert ids(stores) == []


def test_another_checkpoint_under_the_same_name_is_refused(intake, stores, feed):
    stores.feeds.begin("f", FeedMark(checkpoint="another", batch=7), "orders")
    with pytest.raises(FeedMisplaced, match="another checkpoint"):
        sink_of(intake, stores, feed).check()


def test_a_name_is_for_one_process_one_source_and_one_stream(tmp_path):
    with (
        opened_feed(tmp_path, "f", "orders", "folder /in") as feed,
        pytest.raises(FeedInUse, match="another process"),
        opened_feed(tmp_path, "f", "orders", "folder /in"),
    ):
        pass
    with opened_feed(tmp_path, "f", "orders", "folder /in") as again:
        assert again == feed
    with pytest.raises(FeedInUse, match="reads folder /in"), opened_feed(tmp_path, "f", "orders", "folder /out"):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "feeds").write_text("a file")
    with pytest.raises(DataFolderUnusable, match="feeds"), opened_feed(tmp_path, "f", "orders", "x"):
        pass


def run(url, folder, manner, portion, status):
    """Run the feed until it ends as it should; on a busy machine Spark may fail before, which must not matter."""
    words = [sys.executable, PROGRAM, folder, url, manner, str(portion)]
    for attempt in range(3):
        errors = folder / f"{manner}-{attempt}.log"
        with errors.open("wb") as file:
            done = subprocess.run(words, cwd=folder, stderr=file, timeout=600, check=False)
        said = errors.read_text(errors="replace")
        if done.returncode == status:
            return said
        assert "failed: " in said, said
    raise AssertionError(said)


@pytest.fixture
def put(stores, tmp_path):
    """Puts a file of events into the folder that is fed to a stream."""
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    folder = tmp_path / "in"
    folder.mkdir()

    def put(name, first, count):
        lines = b"".join(row.body + b"\n" for row in rows(count, first))
        (folder / f"{name}.tmp").write_bytes(lines)
        (folder / f"{name}.tmp").rename(folder / name)
        return folder / name

    return put


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_is_lost_or_doubled_by_a_kill(stores, intake, server_url, tmp_path, put, spark):
    put("b.jsonl", 0, 1_500)
    run(server_url, tmp_path, "after-append", 3, -signal.SIGKILL)
    assert 0 < len(ids(stores)) < 1_500
    put("a.jsonl", 1_500, 4_000)
    with opened_feed(tmp_path, "f", "orders", "folder in") as feed:
        source = FolderOptions(folder=tmp_path / "in", state=feed.folder, max_rows=1_000)
        options = FeedOptions(source=source, state=feed.folder, is_bounded=True)
        start_feed(spark, options, sink_of(intake, stores, feed, max_batch_events=300)).wait()
    assert ids(stores) == wanted(5_500)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.deep
def test_nothing_is_lost_or_doubled_by_kills_of_all_kinds(stores, server_url, tmp_path, put):
    first = put("b.jsonl", 0, 1_500)
    run(server_url, tmp_path, "after-append", 3, -signal.SIGKILL)
    put("a.jsonl", 1_500, 4_000)
    run(server_url, tmp_path, "before-append", 4, -signal.SIGKILL)
    first.unlink()
    assert "failed: " in run(server_url, tmp_path, "jvm", 2, 1)
    run(server_url, tmp_path, "none", 0, 0)
    assert ids(stores) == wanted(5_500)


def test_rows_from_the_future_are_dead_letters(intake, stores, feed, clock):
    sink = sink_of(intake, stores, feed)
    good, far = rows(2)
    event = orjson.loads(far.body) | {"time": clock.now_us() + 7 * 3_600_000_000}
    sink([good, FeedRow(place=1, body=orjson.dumps(event), origin={"file": "a.jsonl", "row": 2})], 0)
    assert (sink.progress.accepted, sink.progress.rejected, ids(stores)) == (1, 1, ["e0"])
