import threading
import time

import pyarrow as pa
import pytest
import redis
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pipeline.errors import LogDamaged, LogUnreachable, SourceOptionError
from pipeline.snapshots import FolderSnapshots, SnapshotIndex
from pipeline.sources.event_log import EventLogSource
from pipeline.sources.log_reader import EventLogReader, ShardRanges
from pipeline.sources.options import EventLogOptions, with_options
from streams import PatternOff, log_key
from tests.builders.shards import event, log_of

pytestmark = pytest.mark.redis


def reader_of(server, **options):
    return EventLogReader(EventLogOptions(**{"redis_url": server.url, "shards": 2, "wait_ms": 0, **options}))


def read_all(reader, start, end):
    batches = [batch for partition in reader.partitions(start, end) for batch in reader.read(partition)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def all_limit(reader, start):
    return reader.latestOffset(start, ReadAllAvailable())


@pytest.fixture
def ten_entries(server):
    """Five control records, in both shards."""
    logs = log_of([PatternOff(f"p{number}") for number in range(5)], shards=2)
    server.append(logs)
    return logs


def test_an_empty_log_has_no_news(server):
    reader = reader_of(server)
    start = reader.initialOffset()
    assert start == {"0": "0-0", "1": "0-0"}
    assert all_limit(reader, start) == start
    assert reader.partitions(start, start) == []


def test_every_entry_is_read_once_and_in_order(server, ten_entries):
    reader = reader_of(server)
    start = reader.initialOffset()
    end = all_limit(reader, start)
    assert end == {"0": "1-5", "1": "1-5"}
    rows = read_all(reader, start, end)
    for shard, entries in ten_entries.items():
        assert [row for row in rows if row["shard"] == shard] == [
            {
                "shard": shard,
                "after": "0-0",
                "position": e.position,
                "kind": e.kind.value,
                "stream": e.stream,
                "route": "",
                "body": e.body,
            }
            for e in entries
        ]


def test_a_micro_batch_takes_its_limit_of_each_shard(server, ten_entries):
    reader = reader_of(server, max_entries=2)
    offset = reader.initialOffset()
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    ends = []
    for _ in range(4):
        offset = reader.latestOffset(offset, reader.getDefaultReadLimit())
        ends.append(offset["0"])
    assert ends == ["1-2", "1-4", "1-5", "1-5"]


def test_a_micro_batch_takes_its_bytes_of_each_shard_but_always_one_entry(server):
    server.append(log_of([[event(1, "A", note="x" * size)] for size in (100, 100, 9_000, 100)]))
    reader = reader_of(server, shards=1, max_bytes=5_000)
    offset = reader.initialOffset()
    ends = []
    for _ in range(4):
        offset = reader.latestOffset(offset, reader.getDefaultReadLimit())
        ends.append(offset["0"])
    assert ends == ["1-2", "1-3", "1-4", "1-4"]


def test_a_range_always_reads_the_same(server, ten_entries):
    reader = reader_of(server)
    start, end = {"0": "1-1", "1": "0-0"}, {"0": "1-3", "1": "1-1"}
    first = read_all(reader, start, end)
    server.append({0: log_of([PatternOff("x")] * 7)[0][5:]})
    assert read_all(reader, start, end) == first
    assert [(row["shard"], row["position"]) for row in first] == [(0, "1-2"), (0, "1-3"), (1, "1-1")]


def test_long_ranges_are_read_page_by_page(server):
    server.append(log_of([PatternOff("p")] * 150))
    reader = reader_of(server, shards=1)
    start = reader.initialOffset()
    assert len(read_all(reader, start, all_limit(reader, start))) == 150


@pytest.mark.parametrize(("tasks", "groups"), [(1, [[0, 1, 3]]), (2, [[0, 3], [1]]), (8, [[0], [1], [3]])])
def test_shards_with_news_are_dealt_out_to_tasks(server, tasks, groups):
    reader = reader_of(server, shards=4, tasks=tasks)
    start = reader.initialOffset()
    partitions = reader.partitions(start, start | {"0": "1-1", "1": "1-1", "3": "1-1"})
    assert [[shard for shard, _, _ in partition.ranges] for partition in partitions] == groups


def test_entries_without_their_fields_are_read_for_someone_else_to_judge(server):
    server.client.xadd(log_key(0), {"kind": b"\xff", "other": "x"}, id="1-1")
    reader = reader_of(server, shards=1)
    (row,) = read_all(reader, {"0": "0-0"}, {"0": "1-1"})
    assert (row["kind"], row["stream"], row["body"]) == ("\ufffd", "", b"")


def test_waiting_ends_with_the_first_news(server):
    reader = reader_of(server, wait_ms=20_000)
    late = threading.Timer(0.1, server.append, [log_of([[event(1, "A")]], shards=1)])
    late.start()
    assert all_limit(reader, reader.initialOffset()) == {"0": "1-1", "1": "0-0"}
    late.join()


class Saved:
    """Says that shards were saved."""

    def __init__(self, folder, client):
        self.store = FolderSnapshots(folder, is_durable=True)
        self.index = SnapshotIndex(client)

    def __call__(self, shard, position):
        self.store.write(shard, position, b"state")
        self.index.enter(shard, position, 5)


@pytest.fixture
def saved(server, tmp_path):
    return Saved(tmp_path, server.client)


def test_commit_trims_only_behind_a_snapshot_behind_the_offset(server, ten_entries, saved, tmp_path):
    reader = reader_of(server, retain_entries=0, snapshots=str(tmp_path))
    reader.commit({"0": "1-5", "1": "1-5"})
    assert server.client.xlen(log_key(0)) == 5
    saved(0, "1-3")
    saved(0, "1-5")
    saved(1, "1-4")
    reader.commit({"0": "1-4", "1": "1-3"})
    left = [position.decode() for position, _ in server.client.xrange(log_key(0))]
    assert left[-3:] == ["1-3", "1-4", "1-5"]
    assert server.client.xlen(log_key(1)) == 5


def test_commit_keeps_the_newest_committed_snapshot_and_those_after_it(server, ten_entries, saved, tmp_path):
    for position in ("1-1", "1-2", "1-4"):
        saved(0, position)
    reader_of(server, snapshots=str(tmp_path)).commit({"0": "1-3", "1": "0-0"})
    assert saved.index.positions(0) == ["1-2", "1-4"]
    assert [saved.store.read(0, f"1-{number}") is None for number in (1, 2, 4)] == [True, False, False]


def test_commit_keeps_what_replays_want(server, saved, tmp_path):
    big = event(1, "A", note="x" * 5_000)
    server.append(log_of([[big]] * 50))
    reader = reader_of(server, shards=1, retain_entries=20, snapshots=str(tmp_path))
    saved(0, "1-40")
    reader.commit({"0": "1-40"})
    assert server.client.xlen(log_key(0)) == 20
    saved(0, "1-50")
    reader.commit({"0": "1-50"})
    assert server.client.xlen(log_key(0)) == 20


def test_a_bounded_run_takes_what_was_there_at_its_start(server, ten_entries):
    reader = reader_of(server, max_entries=3)
    reader.prepareForTriggerAvailableNow()
    server.append({0: log_of([PatternOff("x")] * 9)[0][5:]})
    offset = reader.initialOffset()
    ends = []
    for _ in range(3):
        offset = reader.latestOffset(offset, reader.getDefaultReadLimit())
        ends.append(offset["0"])
    assert ends == ["1-3", "1-5", "1-5"]


def test_a_bounded_run_does_not_go_back_behind_its_checkpoint(server, ten_entries):
    reader = reader_of(server)
    reader.prepareForTriggerAvailableNow()
    for shard in range(2):
        server.client.xadd(log_key(shard), {"kind": "x"}, id="1-6")
    assert all_limit(reader, {"0": "1-6", "1": "1-6"}) == {"0": "1-6", "1": "1-6"}


def test_lost_entries_are_an_error_not_a_gap(server, ten_entries):
    reader = reader_of(server)
    server.client.xdel(log_key(0), "1-4", "1-5")
    with pytest.raises(LogDamaged, match="shard 0 of the event log ends at 1-3 where entries up to 1-5 were planned"):
        read_all(reader, reader.initialOffset(), {"0": "1-5", "1": "0-0"})


@pytest.mark.parametrize("lost", [("1-5",), ("1-3", "1-4", "1-5")])
def test_a_checkpoint_ahead_of_the_log_is_refused(server, ten_entries, lost):
    last = f"1-{5 - len(lost)}"
    server.client.delete(log_key(0))
    for entry in ten_entries[0]:
        if entry.position not in lost:
            server.client.xadd(log_key(0), {"kind": "x"}, id=entry.position)
    with pytest.raises(
        LogDamaged, match=rf"shard 0 .* matched up to 1-5, but the log has entries up to {last}: the Redis"
    ):
        all_limit(reader_of(server), {"0": "1-5", "1": "1-5"})
    server.client.xadd(log_key(0), {"kind": "x"}, id="2-1")  # what comes later does not hide what is gone
    with pytest.raises(LogDamaged, match=f"the log has entries up to {last}"):
        all_limit(reader_of(server), {"0": "1-5", "1": "1-5"})


def test_a_checkpoint_without_a_log_is_refused(server):
    with pytest.raises(LogDamaged, match="the log has entries up to 0-0"):
        all_limit(reader_of(server), {"0": "0-0", "1": "1-5"})


def test_a_new_checkpoint_makes_no_range_that_is_written_in_part(server, ten_entries):
    server.client.hset("told", "position:0", "1-3")
    reader = reader_of(server, results="told")
    first = all_limit(reader, reader.initialOffset())
    assert first == {"0": "1-3", "1": "1-5"}
    assert all_limit(reader, first) == {"0": "1-5", "1": "1-5"}


def test_a_checkpoint_ahead_of_the_results_is_refused(server, ten_entries):
    start = {"0": "1-5", "1": "1-3"}
    server.client.hset("told", mapping={"position:0": "1-5", "position:1": "1-3"})
    assert all_limit(reader_of(server, results="told"), start) == {"0": "1-5", "1": "1-5"}
    server.client.hset("told", "position:0", "1-4")
    with pytest.raises(LogDamaged, match=r"shard 0 .* matched up to 1-5, but results are written up to 1-4"):
        all_limit(reader_of(server, results="told"), start)
    server.client.hdel("told", "position:0")
    with pytest.raises(LogDamaged, match="results are written up to 0-0"):
        all_limit(reader_of(server, results="told"), start)


def test_a_log_that_was_trimmed_behind_its_checkpoint_is_whole(server, ten_entries):
    server.client.xtrim(log_key(0), maxlen=2, approximate=False)
    server.client.xtrim(log_key(1), maxlen=0, approximate=False)
    assert all_limit(reader_of(server), {"0": "1-2", "1": "1-5"}) == {"0": "1-5", "1": "1-5"}


def test_a_commit_that_gets_no_answer_is_an_error_to_try_again(server, ten_entries, monkeypatch):
    def time_out(self, name):
        raise redis.TimeoutError("too late")

    reader = reader_of(server)
    monkeypatch.setattr(redis.Redis, "xlen", time_out)
    with pytest.raises(LogUnreachable, match="too late"):
        reader.commit({"0": "1-5", "1": "1-5"})


def test_a_trimmed_log_is_not_read_from_its_beginning(server, ten_entries):
    server.client.xtrim(log_key(1), maxlen=3, approximate=False)
    start = reader_of(server).initialOffset()
    with pytest.raises(LogDamaged, match=r"shard 1 .* 2 of its 5 entries are gone.*put the old checkpoint back"):
        all_limit(reader_of(server), start)
    assert all_limit(reader_of(server), start | {"1": "1-2"}) == {"0": "1-5", "1": "1-5"}


def test_a_trimmed_log_is_known_after_a_restart_of_the_server(own_server):
    own_server.append(log_of([PatternOff("p")] * 5, shards=2))
    own_server.client.xtrim(log_key(0), maxlen=3, approximate=False)
    own_server.client.bgrewriteaof()
    while own_server.client.info("persistence")["aof_rewrite_in_progress"]:
        time.sleep(0.01)
    own_server.kill()
    own_server.start()
    reader = reader_of(own_server)
    with pytest.raises(LogDamaged, match=r"shard 0 .* 2 of its 5 entries are gone"):
        all_limit(reader, reader.initialOffset())
    reader.stop()


def test_only_the_first_look_asks_for_the_beginning(server, ten_entries):
    reader = reader_of(server)
    start = reader.initialOffset()
    end = all_limit(reader, start)
    server.client.xtrim(log_key(0), maxlen=3, approximate=False)
    assert all_limit(reader, start) == end


def test_another_number_of_shards_than_the_checkpoint_has_is_refused(server):
    with pytest.raises(SourceOptionError, match="made with 1 shards and the log has 2"):
        all_limit(reader_of(server), {"0": "0-0"})


def test_a_server_that_comes_back_is_waited_for(own_server):
    own_server.append(log_of([PatternOff("p")] * 3, shards=2))
    reader = reader_of(own_server)
    start = reader.initialOffset()
    end = all_limit(reader, start)
    own_server.kill()
    back = threading.Timer(0.3, own_server.start)
    back.start()
    assert all_limit(reader, start) == end
    back.join()
    assert len(read_all(reader, start, end)) == 6
    reader.stop()


def test_a_server_that_stays_away_is_an_error(own_server):
    reader = reader_of(own_server, retries=1)
    start = reader.initialOffset()
    own_server.kill()
    with pytest.raises(LogUnreachable):
        all_limit(reader, start)
    with pytest.raises(LogUnreachable):
        list(reader.read(ShardRanges(((0, "0-0", "1-1"),))))
    with pytest.raises(LogUnreachable):
        reader.commit(start)
    own_server.start()


def test_the_source_takes_its_options_to_other_processes(server):
    options = EventLogOptions(
        redis_url=server.url, shards=3, max_entries=7, max_bytes=8, retain_entries=9, tasks=4, wait_ms=5
    )
    source = cloudpickle.loads(cloudpickle.dumps(with_options(EventLogSource, options)))
    assert source.source_options == options
    assert source({}).streamReader(StructType()).initialOffset() == {"0": "0-0", "1": "0-0", "2": "0-0"}
