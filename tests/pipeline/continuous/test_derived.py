"""A step's derived events are appended in the script that moves its position."""

import orjson
import pytest

from pipeline.continuous import derived
from pipeline.continuous.blocks import BlockWriter, Step, begin_at, positions
from pipeline.continuous.derived import Derived
from pipeline.errors import QueryFailed
from pipeline.records import EPOCHS_KEY
from shards import ResultRows, RowBlock
from shards.results import STATS
from streams import APPENDED_KEY, LAYOUT_KEY, STREAM_TIMES_KEY, STREAMS_KEY, Event, EventBatch, log_key

pytestmark = pytest.mark.redis


@pytest.fixture
def log(server):
    begin_at(server.client, {0: "0-0", 1: "0-0"})
    server.client.hset(EPOCHS_KEY, mapping={"0": 3, "1": 1})
    server.client.hset(STREAMS_KEY, "late", '{"since_ms":7}')
    return server.client


def rows(*found, promised=None):
    """Rows of a step: positions with the times of derived events, and the promise to their stream."""
    blocks = [
        RowBlock(found=ResultRows.rekeyed("late", batch(*of)), stream="s", position=at, shard=0) for at, of in found
    ]
    report = ResultRows.of(STATS, [("", {"promises": {} if promised is None else {"late": promised}})])
    return Derived.of([*blocks, RowBlock(found=report, stream="", position="9-0", shard=0)])


def batch(*times):
    return EventBatch.from_events([Event(id=f"e{time}", type="T", time_us=time, key=f"k{time}") for time in times])


def step(before, after, of, shard=0, epoch=3):
    return Step(shard=shard, epoch=epoch, before=before, after=after, rows=b"", derived=of)


def appended(log, kind=b"events"):
    """The bodies of the entries of a kind, by shard."""
    return [[entry[b"body"] for _, entry in log.xrange(log_key(shard)) if entry[b"kind"] == kind] for shard in range(2)]


def events(log):
    """Times of the appended events, by shard and entry."""
    return [[EventBatch.from_bytes(body).time_us.tolist() for body in bodies] for bodies in appended(log)]


def times(log):
    """Times of the appended events, sorted."""
    return sorted(time for entries in events(log) for of_entry in entries for time in of_entry)


def test_events_are_appended_once_in_the_order_of_time(log):
    writer, one = BlockWriter(log, 2), step("0-0", "9-0", rows(("8-0", [30, 10]), ("9-0", [20, 40, 5])))
    assert all(writer.write(one) for _ in range(2))
    assert not writer.write(step("0-0", "8-0", rows(("8-0", [30])), epoch=2))
    homes = batch(5, 10, 20, 30, 40).split_by_shard(2)
    assert events(log) == [[homes[shard].time_us.tolist()] for shard in range(2)]
    assert log.hget(APPENDED_KEY, "events") == b"5"
    assert log.hget(STREAM_TIMES_KEY, "late:newest") == b"40"


def test_events_of_a_former_stream_of_the_name_are_left_out(log):
    writer = BlockWriter(log, 2)
    assert writer.write(step("0-0", "9-0", rows(("6-0", [1, 2, 3]), ("8-0", [4]))))
    assert times(log) == [4]
    log.hset(STREAMS_KEY, "late", '{"since_ms":20}')
    assert writer.write(step("9-0", "22-0", rows(("12-0", [5]), ("22-0", [6]))))
    log.hdel(STREAMS_KEY, "late")
    assert writer.write(step("22-0", "30-0", rows(("30-0", [7]))))
    assert times(log) == [4, 6]
    assert positions(log, 1) == ["30-0"]


@pytest.mark.parametrize("layout", [{"shards": 2, "resharding": "token"}, {"shards": 4}])
def test_nothing_is_appended_to_a_log_that_is_being_divided_or_was(log, layout):
    writer = BlockWriter(log, 2)
    log.hset(LAYOUT_KEY, "shards", 2)
    assert writer.write(step("0-0", "8-0", rows(("8-0", [1]))))
    log.hset(LAYOUT_KEY, mapping=layout)
    with pytest.raises(QueryFailed, match="divided"):
        writer.write(step("8-0", "9-0", rows(("9-0", [2]))))
    assert (times(log), positions(log, 1)) == ([1], ["8-0"])


def test_an_entry_has_a_bounded_number_of_events(log, monkeypatch):
    monkeypatch.setattr(derived, "_MOST_EVENTS", 3)
    BlockWriter(log, 2).write(step("0-0", "9-0", rows(("8-0", range(20)))))
    assert {len(of_entry) for entries in events(log) for of_entry in entries} <= {1, 2, 3}
    assert times(log) == list(range(20))


def test_time_passes_once_every_shard_has_promised(log):
    writer = BlockWriter(log, 2)
    assert writer.write(step("0-0", "9-0", rows(promised=50)))
    assert appended(log, b"tick") == [[], []]
    assert writer.write(step("0-0", "6-0", rows(promised=40), shard=1, epoch=1))
    assert appended(log, b"tick") == [[], []], "the shard had not reached the declaration"
    assert writer.write(step("6-0", "8-0", rows(promised=40), shard=1, epoch=1))
    assert [orjson.loads(body)["time"] for bodies in appended(log, b"tick") for body in bodies] == [40, 40]
