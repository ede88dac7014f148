"""Derived events reach the log once, whatever fails, and the time of their streams follows behind them."""

from dataclasses import replace

import orjson
import pytest

from service import LogResharding, Stores
from service.stores import DerivedPart
from service.stores.conditions import ANY
from service.stores.log import derived
from streams import DERIVED_PROMISES_KEY, LAYOUT_KEY, Event, EventBatch, RecordKind, StreamDeclaration
from tests.builders.service import stats_row

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def declared(stores, client):
    stores.registry.declare_stream(StreamDeclaration(name="late", derived=True))
    yield
    client.flushall()


def part(shard, after, *numbers):
    events = [Event(id=f"{shard}-{number}", type="T", time_us=number, key=f"k{number % 7}") for number in numbers]
    return DerivedPart(shard=shard, after=after, until="9-0", events=EventBatch.from_events(events))


def found(stores):
    """Ids of the events in the log, sorted."""
    entries = [entry for shard in range(stores.log.shards()) for entry in stores.log.read_range(shard)]
    batches = [EventBatch.from_bytes(entry.body) for entry in entries if entry.kind is RecordKind.EVENTS]
    return sorted(event.id for batch in batches for event in batch.to_events())


def ticks(stores, shard=0):
    entries = [entry for entry in stores.log.read_range(shard) if entry.kind is RecordKind.TICK]
    return [(entry.stream, orjson.loads(entry.body)["time"]) for entry in entries]


def test_a_micro_batch_that_is_written_again_goes_on_behind_its_marks(stores, monkeypatch):
    parts = [part(0, "5-0", 1, 2, 3), part(1, "7-0", 1, 2)]
    assert stores.derived.write({"late": parts[:1]}).events == 3
    assert stores.derived.write({"late": parts}).events == 2
    assert stores.derived.write({"late": parts}).events == 0
    assert found(stores) == ["0-1", "0-2", "0-3", "1-1", "1-2"]
    assert stores.derived.write({"late": [part(0, "6-0", 9)]}).events == 1
    assert stores.derived.write({"late": parts}).events == 0, "an older micro-batch is in the log already"
    assert stores.backlog.read().waiting.events == 6


def test_ranges_that_are_matched_are_passed_over_also_where_a_new_checkpoint_cuts_them_anew(stores):
    stores.derived.write({"late": [part(0, "5-0", 1, 2)]})
    stores.pipeline_status.note([stats_row(0, "9-0")])
    assert stores.derived.write({"late": [part(0, "6-0", 1, 2)]}).events == 0
    assert stores.derived.write({"late": [replace(part(0, "9-0", 3), until="10-0"), part(1, "6-0", 4)]}).events == 2
    assert found(stores) == ["0-1", "0-2", "0-3", "1-4"]


@pytest.mark.parametrize("cut", range(1, 9))
def test_chunks_are_appended_once_wherever_a_try_ends(stores, monkeypatch, cut):
    monkeypatch.setattr(derived, "CHUNK_EVENTS", 2)
    parts = [part(0, "5-0", 1, 2, 3), part(1, "7-0"), part(2, "7-0", 1, 2, 3, 4)]
    append, calls = stores.derived._append, []

    def failing(**given):
        calls.append(given)
        if len(calls) == cut // 2 + 1:
            if cut % 2:
                append(**given)  # it landed, and its answer was lost
            raise ConnectionError
        return append(**given)

    monkeypatch.setattr(stores.derived, "_append", failing)
    try:
        stores.derived.write({"late": parts})
    except ConnectionError:
        stores.derived.write({"late": parts})
    assert found(stores) == ["0-1", "0-2", "0-3", "2-1", "2-2", "2-3", "2-4"]


def test_events_go_to_the_shards_of_their_keys(stores):
    stores.derived.write({"late": [part(0, "5-0", *range(1, 30))]})
    for shard in range(stores.log.shards()):
        for entry in stores.log.read_range(shard):
            if entry.kind is RecordKind.EVENTS:
                hashes = EventBatch.from_bytes(entry.body).key_hashes
                assert (hashes % stores.log.shards() == shard).all()


def test_a_full_log_takes_them(client, server_url, settings):
    limits = settings.limits.model_copy(update={"max_backlog_events": 1})
    stores = Stores(client, server_url, settings.model_copy(update={"limits": limits}))
    assert stores.derived.write({"late": [part(0, "5-0", 1, 2, 3)]}).events == 3


def test_time_follows_the_slowest_shard_once_all_have_promised(stores):
    store = stores.derived
    assert store.promises("late") == [None] * 3
    assert not store.write({}, {"late": {0: 50, 1: 40}}).ticks
    assert not store.write({}, {"late": {2: None}}).ticks
    assert store.promises("late") == [50, 40, None]
    assert store.write({}, {"late": {2: 60}}).ticks
    assert not store.write({}, {"late": {2: 90}}).ticks
    assert store.write({}, {"late": {1: 70}}).ticks
    assert not store.write({}, {"late": {1: 70}}).ticks
    assert not store.write({}, {"late": {1: None}}).ticks
    for shard in range(3):
        assert ticks(stores, shard) == [("late", 40), ("late", 50)]
    store.forget("late")
    assert store.promises("late") == [None] * 3


def test_only_the_process_that_holds_the_log_appends_while_it_is_divided(stores, client, server_url, settings):
    late = Stores(client, server_url, settings)
    assert late.log.shards() == 3
    token = stores.log.layout.hold()
    with pytest.raises(LogResharding):
        late.derived.write({"late": [part(0, "5-0", 1)]})
    assert stores.derived.write({"late": [part(0, "5-0", 1)]}).events == 1
    stores.log.layout.release(token)
    client.hset(LAYOUT_KEY, "shards", 6)
    with pytest.raises(LogResharding):
        late.derived.write({"late": [part(0, "6-0", 2)]})
    assert found(stores) == ["0-1"]


def declared_again(stores, client):
    """The stream is removed and declared again; returns a time of the log after that."""
    stores.registry.removal.remove("late", ANY, is_cascading=True)
    stores.registry.declare_stream(StreamDeclaration(name="late", derived=True))
    return stores.registry.since_ms("late")


def test_events_and_promises_of_a_stream_that_was_removed_are_of_no_later_one_of_its_name(stores, client):
    born = declared_again(stores, client)
    old, new = f"{born - 1}-0", f"{born + 1}-0"
    both = replace(part(0, f"{born - 9}-0", 1, 2, 3), until=new, positions=(old, new, old))
    assert stores.derived.write({"late": [both]}).events == 1
    assert stores.derived.write({"late": [both]}).events == 0, "marks count what is left out"
    assert found(stores) == ["0-2"]
    assert stores.derived.write({"late": [replace(part(1, "5-0", 4), until=old, positions=(old,))]}).events == 0
    shards = range(stores.log.shards())
    assert not stores.derived.write({}, {"late": dict.fromkeys(shards, 99)}, dict.fromkeys(shards, old)).ticks
    assert stores.derived.promises("late") == [None] * len(shards)
    assert stores.derived.write({}, {"late": dict.fromkeys(shards, 5)}, dict.fromkeys(shards, new)).ticks
    assert [time for _, time in ticks(stores)] == [5]


def test_promises_to_a_stream_that_was_removed_are_none_to_a_later_one_of_its_name(stores, client):
    assert not stores.derived.write({}, {"late": {0: 50, 1: 50}}).ticks
    declared_again(stores, client)
    client.hset(DERIVED_PROMISES_KEY, mapping={"0:late": "50@1", "1:late": "50@1"})  # kept by a script before that
    assert not stores.derived.write({}, {"late": {2: 99}}).ticks
    assert (ticks(stores), stores.derived.promises("late")) == ([], [None, None, 99])
    stores.registry.removal.remove("late", ANY, is_cascading=True)
    assert not stores.derived.write({}, {"late": dict.fromkeys(range(3), 99)}).ticks
    assert ticks(stores) == []


def test_events_and_promises_of_several_streams_are_written_together(stores):
    stores.registry.declare_stream(StreamDeclaration(name="lost", derived=True))
    promised = {"late": {0: 5, 1: 6, 2: 7}, "lost": {0: 8, 1: 9}}
    written = stores.derived.write({"late": [part(0, "5-0", 1)], "lost": [part(1, "5-0", 2)]}, promised)
    assert (written.events, written.ticks) == (2, 1)
    assert (found(stores), ticks(stores)) == (["0-1", "1-2"], [("late", 5)])


def test_promises_follow_the_last_chunk(stores, monkeypatch):
    monkeypatch.setattr(derived, "CHUNK_EVENTS", 2)
    append, calls = stores.derived._append, []

    def noted(**given):
        calls.append(orjson.loads(given["promising"]))
        return append(**given)

    monkeypatch.setattr(stores.derived, "_append", noted)
    stores.derived.write({"late": [part(0, "5-0", 1, 2, 3)]}, {"late": {0: 4}})
    assert calls == [[], [["late", [[0, "4", ""]]]]]


def following(number, *numbers):
    """The part whose range follows that of the number before."""
    return replace(part(0, f"{number}-0", *numbers), until=f"{number + 1}-0")


def test_a_mark_that_another_process_has_moved_is_read_again(stores, client, server_url, settings):
    other = Stores(client, server_url, settings)
    stores.derived.write({"late": [following(1, 1)]})
    assert other.derived.write({"late": [following(2, 2)]}).events == 1
    assert stores.derived.write({"late": [following(2, 2)]}).events == 0
    assert stores.derived.write({"late": [following(3, 3)]}).events == 1
    assert found(stores) == ["0-1", "0-2", "0-3"]
