"""Operators that stop before the backlog, when processes die and states are restored."""

from dataclasses import replace

import orjson
import pytest

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.records import EPOCHS_KEY
from pipeline.sources import EventLogOptions
from shards.entries import StoredEntry
from shards.rows import rows_of
from streams import PatternOn, PatternPause, StreamDeclaration, StreamOn, encode_control, stops_key
from tests.builders.shards import Step, event, log_of

pytestmark = pytest.mark.redis

STEPS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders")),
    PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)"),
    PatternOn(name="beside", version=1, text="PATTERN beside EVENT SEQ(A a, U u)"),
    *([event(number, "AU"[number % 2], "k")] for number in range(3, 15)),
    PatternPause("pair"),
    *([event(number, "AU"[number % 2], "k")] for number in range(16, 20)),
]
PAUSE = 15


@pytest.fixture
def log(server):
    logs = log_of(STEPS)
    server.append(logs)
    return [StoredEntry(position=one.position, kind=one.kind, stream=one.stream, body=one.body) for one in logs[0]]


@pytest.fixture(params=[True, False], ids=["handed over", "from snapshots"])
def options(server, tmp_path, request):
    source = EventLogOptions(redis_url=server.url, shards=1, snapshots=str(tmp_path / "snapshots"), snapshot_bytes=1)
    return HeldOptions(log=source, handover=tmp_path / "handover" if request.param else None)


def advance(held, log, start, end):
    return rows_of(held.advance(0, "0-0" if start == 0 else log[start - 1].position, log[start:end]))


def stop(server, log):
    body = encode_control(PatternPause("pair")).decode()
    records = orjson.dumps([["orders", "pattern-pause", body]])
    server.client.hset(stops_key(0), log[PAUSE].position, records)


def alerts(rows, name="pair"):
    assert [row.body for row in rows if row.kind == "dead-letter"] == []
    return [row.id for row in rows if row.kind == "alert" and orjson.loads(row.body)["pattern"] == name]


def test_it_stops_with_the_next_micro_batch_and_a_replay_stops_it_there_too(server, log, options):
    held = HeldShards(options)
    first = advance(held, log, 0, 8)
    stop(server, log)
    rest = advance(held, log, 8, 11) + advance(held, log, 11, 20)
    assert (len(alerts(first)), alerts(rest)) == (3, [])
    assert len(alerts(first + rest, "beside")) > 5
    again = HeldShards(replace(options, handover=None))
    again._index.remove(0, log[-1].position)
    for position in again._index.positions(0):
        again._index.remove(0, position)
    assert again.state_at(0, log[19].position).dump() == held.state_at(0, log[19].position).dump()


def test_a_micro_batch_that_died_is_matched_again_without_it(server, log, options):
    died, other = HeldShards(options), HeldShards(options)
    first = advance(died, log, 0, 8)
    assert len(alerts(advance(died, log, 8, 11))) > 0  # its rows were lost; its state was left in every place
    stop(server, log)
    rest = advance(other, log, 8, 11) + advance(died, log, 11, 13) + advance(other, log, 13, 20)
    assert (len(alerts(first)), alerts(rest)) == (3, [])
    fresh = HeldShards(replace(options, handover=None))
    assert fresh.state_at(0, log[12].position).dump() == died.state_at(0, log[12].position).dump()


@pytest.mark.parametrize("mark", ["marks", "matched"])
def test_what_is_in_the_log_of_a_micro_batch_stays_and_the_next_one_is_where_it_stops(server, log, options, mark):
    held = HeldShards(options)
    advance(held, log, 0, 8)
    advance(held, log, 8, 11)
    if mark == "marks":
        server.client.hset("forestall:derived:marks", "0:other", f"{log[7].position} 1")
    else:
        server.client.hset("forestall:log:matched", "position:0", log[10].position)
    stop(server, log)
    again = advance(HeldShards(options), log, 8, 11)
    assert len(alerts(again)) > 0
    assert alerts(advance(HeldShards(options), log, 11, 20)) == []


def test_a_process_that_has_lost_the_lease_places_no_stop(server, log, options):
    server.client.hset(EPOCHS_KEY, "0", 3)
    former, owner = HeldShards(replace(options, handover=None)), HeldShards(options)
    former.load(0, epoch=3)
    first = advance(former, log, 0, 8)
    server.client.hset(EPOCHS_KEY, "0", 4)
    owner.load(0, epoch=4)
    advance(owner, log, 0, 8)
    late = len(alerts(advance(owner, log, 8, 11)))  # a step that has begun before the stop
    stop(server, log)
    advance(former, log, 8, 11)
    assert server.client.hgetall(f"{stops_key(0)}:places") == {}
    assert (len(alerts(first)), late > 0, alerts(advance(owner, log, 11, 20))) == (3, True, [])
    assert server.client.hvals(f"{stops_key(0)}:places") == [log[10].position.encode()]


def test_a_pause_that_was_matched_stops_nothing_any_more(server, log, options):
    held = HeldShards(options)
    advance(held, log, 0, 17)
    stop(server, log)
    advance(held, log, 17, 20)
    assert server.client.hgetall(f"{stops_key(0)}:places") == {}
