"""A stream changes and goes, with everything that is on it, on a real server."""

from functools import partial
from typing import Any, cast

import orjson
import pytest

from service.errors import PreconditionFailed, RegistryContended, StreamInUse, UnknownStream
from service.registering.registration import Registration
from service.settings import Limits
from service.stores import Condition, EventFilter, FeedMark, OperatorDraft, RegisteredWebhook, pattern_draft, tag_of
from service.stores.log.event_log import Submission
from service.stores.registry.removal import StreamRemoval
from shards import ALERT
from streams import (
    CLOSED_US,
    DERIVED_PROMISES_KEY,
    STREAM_TIMES_KEY,
    Event,
    EventBatch,
    Input,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    Tick,
    TraceEnd,
    decode_control,
)
from tests.builders.races import during_commit
from tests.builders.service import as_old_as_the_log, put_constraints, sink_row

pytestmark = pytest.mark.redis

ORDERS = StreamDeclaration(name="orders", keys={"c": "data.c"}, end_events=("Z",))


@pytest.fixture
def registry(stores):
    stores.registry.declare_stream(ORDERS)
    stores.registry.declare_stream(StreamDeclaration(name="orders2"))
    return stores.registry


@pytest.fixture
def library(stores, settings, clock):
    return Registration(stores, settings, clock)


def event(number, key="k"):
    return Event(id=f"e{number}", type="A", time_us=number, key=key, data={"c": "x"})


def post(stores, *events, stream="orders", token="t", key=None):
    return stores.log.append_events(
        Submission(
            stream=stream,
            batch=EventBatch.from_events(events),
            dead_letters=[],
            answer={"accepted": len(events), "rejected": []},
            fingerprint="f",
            token=token,
            idempotency_key=key,
            since_ms=stores.registry.since_ms(stream) if key else None,
            keys={"c": ("c",)},
            ids=[one.id.encode().ljust(12) for one in events],
        )
    )


def webhook(stores, stream="orders", name="desk"):
    stores.webhooks.put(
        RegisteredWebhook(
            id=f"wh_{name}",
            url="https://x",
            secret="s",
            stream=stream,
            pattern=None,
            is_enabled=True,
            registered_us=1,
            name=name,
        )
    )


def fill(stores):
    """Everything that can be on a stream."""
    registry = stores.registry
    registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a", route="c"), 1)
    registry.put_pattern("orders", pattern_draft(name="old", text="PATTERN old EVENT A a"), 1)
    registry.pattern_operators.move("old", "retire")
    registry.put_pattern("orders2", pattern_draft(name="far", text="PATTERN far EVENT A a"), 1)
    registry.operators("tally").put(
        "orders", OperatorDraft(kind="tally", name="t", inputs=(Input("orders", ""),), body={}), 1
    )
    put_constraints(registry, "orders", {"constraints": [{"prior": ["A", "B"]}]}, (), 1)
    registry.event_types.put("orders", "A", {"type": "object"}, 1)
    webhook(stores)
    webhook(stores, "orders2", "other")
    stores.feeds.begin("f", FeedMark(checkpoint="c"), "orders")
    post(stores, event(1))
    stores.stream_times.tick("orders", Tick(time_us=9, cause="clock"), stores.log.layout)
    stores.client.hset(STREAM_TIMES_KEY, "orders:closed", CLOSED_US + 1)


USES = [
    ("constraints", "orders", ""),
    ("event-type", "A", ""),
    ("feed", "f", ""),
    ("pattern", "old", "retired"),
    ("pattern", "p", "active"),
    ("tally", "t", "active"),
    ("webhook", "desk", ""),
]


def listed(uses):
    return sorted((use.kind, use.name, use.state) for use in uses)


def keys_of(client, stream):
    """Keys and fields that name a stream, but for those of results and answers."""
    found = set()
    for key in client.scan_iter(match="forestall:*"):
        name = key.decode()
        if f":{stream}" in name and "idempotency" not in name:
            found.add(name)
        if client.type(key) == b"hash":
            found |= {f"{name}/{field.decode()}" for field in client.hkeys(key) if stream in field.decode().split(":")}
    return found


def test_a_stream_without_anything_goes_and_every_shard_says_so(registry, stores):
    assert registry.removal.remove("orders", Condition(), is_cascading=False) == []
    with pytest.raises(UnknownStream):
        registry.stream("orders")
    for shard in range(stores.log.shards()):
        last = list(stores.log.read_range(shard))[-1]
        assert (last.stream, decode_control(last.kind, last.body)) == ("orders", StreamOff("orders"))


def test_what_is_on_a_stream_is_named_and_keeps_it(registry, stores):
    fill(stores)
    assert listed(registry.removal.uses("orders", Condition())) == USES
    with pytest.raises(StreamInUse, match="the stream 'orders' is in use: ") as refused:
        registry.removal.remove("orders", Condition(), is_cascading=False)
    named = sorted((use["kind"], use["name"]) for use in cast("Any", refused.value.details["uses"]))
    assert named == [(kind, name) for kind, name, state in USES if state != "retired"]
    assert registry.stream("orders") == ORDERS


def test_a_cascade_leaves_nothing_of_it_and_everything_else(registry, stores, client):
    fill(stores)
    before = keys_of(client, "orders2")
    assert listed(registry.removal.remove("orders", Condition(), is_cascading=True)) == USES
    assert keys_of(client, "orders") == {"forestall:routes/orders"}
    assert keys_of(client, "orders2") == before
    assert [pattern.name for pattern in registry.patterns()] == ["far"]
    assert registry.operators("").all() == []
    assert [one.name for one in stores.webhooks.all()] == ["other"]
    assert stores.feeds.mark("f") is None
    assert registry.constraints.all() == []
    assert stores.stream_times.read()[1] == {}


def test_a_stream_comes_back_from_nothing(registry, stores):
    fill(stores)
    registry.removal.remove("orders", Condition(), is_cascading=True)
    again = StreamDeclaration(name="orders", key="data.id")
    assert registry.declare_stream(again)
    assert post(stores, event(1), token="again").dropped == 0
    assert registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1)[0].version == 2
    assert put_constraints(registry, "orders", {"constraints": []}, (), 1)[0].version == 1
    wanted = EventFilter(stream="orders", since_ms=registry.since_ms("orders"))
    assert [one["id"] for one in stores.event_pages(wanted, "0", 10).items] == ["e1"]


def test_nothing_is_appended_to_a_stream_that_went(registry, stores):
    registry.removal.remove("orders", Condition(), is_cascading=False)
    ends = [len(list(stores.log.read_range(shard))) for shard in range(stores.log.shards())]
    for append in (
        lambda: post(stores, event(1)),
        lambda: stores.announcements.append("orders", TraceEnd(key="k"), "k"),
        lambda: registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1),
        lambda: put_constraints(registry, "orders", {"constraints": []}, (), 1),
    ):
        with pytest.raises(UnknownStream, match="'orders'"):
            append()
    assert not stores.stream_times.tick("orders", Tick(time_us=9, cause="clock"), stores.log.layout)
    assert [len(list(stores.log.read_range(shard))) for shard in range(stores.log.shards())] == ends


def test_an_idempotency_key_may_be_used_again(registry, stores, client):
    post(stores, event(1), key="k")
    answer = client.get("forestall:idempotency:orders:k")
    registry.removal.remove("orders", Condition(), is_cascading=False)
    registry.declare_stream(ORDERS)
    client.set("forestall:idempotency:orders:k", answer, px=80_000_000)  # whether a removal leaves it or not
    assert post(stores, event(1), key="k").earlier is None
    assert post(stores, event(1), key="k").earlier is not None


def test_a_removal_forgets_no_answer_of_the_stream_declared_again(registry, stores, monkeypatch):
    committed = StreamRemoval._committed

    def followed(self, *arguments):
        is_removed = committed(self, *arguments)
        registry.declare_stream(ORDERS)
        post(stores, event(1), key="k")
        return is_removed

    monkeypatch.setattr(StreamRemoval, "_committed", followed)
    registry.removal.remove("orders", Condition(), is_cascading=False)
    assert post(stores, event(1), key="k").earlier is not None


def test_answers_of_an_older_release_count_until_the_stream_is_declared_again(registry, stores, client):
    life_ms = Limits().idempotency_life_s * 1_000
    post(stores, event(1), key="k")
    answer = orjson.loads(client.get("forestall:idempotency:orders:k"))
    del answer["since"]
    client.set("forestall:idempotency:orders:k", orjson.dumps(answer), px=life_ms - 5_000)
    as_old_as_the_log(client, "orders")
    assert post(stores, event(1), key="k").earlier == answer["answer"]
    registry.removal.remove("orders", Condition(), is_cascading=False)
    registry.declare_stream(ORDERS)
    assert post(stores, event(1), key="k").earlier is None


def test_an_interrupted_removal_is_completed_by_the_next_one(registry, library, stores, client, monkeypatch):
    promised = stores.derived._fields("orders")
    client.hset(DERIVED_PROMISES_KEY, mapping=dict.fromkeys(promised, "1"))
    body = orjson.dumps({"id": "a", "pattern": "p", ALERT.timed_by: "2026-01-01T00:00:00Z"})
    stores.alerts.append([sink_row(kind=ALERT.name, stream="orders", id="a", body=body)], [], 0)
    counts = partial(stores.hours.read, ALERT, {"stream": "orders", "subject": None}, 0, 2**53)
    assert len(counts()[0]) == 1
    with monkeypatch.context() as patch:
        patch.setattr(stores.derived, "forget", None)
        with pytest.raises(TypeError):
            library.remove_stream("orders")
    for stream in ("orders", "unknown"):
        with pytest.raises(UnknownStream):
            library.remove_stream(stream)
    assert client.hmget(DERIVED_PROMISES_KEY, promised) == [None] * len(promised)
    assert counts()[0] == []


def test_what_comes_between_reading_and_removing_is_seen(registry, stores, monkeypatch):
    planned = StreamRemoval._planned

    def slow(self, stream, mentions):
        found = planned(self, stream, mentions)
        registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT A a"), 1)
        return found

    monkeypatch.setattr(StreamRemoval, "_planned", slow)
    with pytest.raises(StreamInUse, match="the pattern p"):
        registry.removal.remove("orders", Condition(), is_cascading=False)


def test_who_is_always_too_late_is_told(registry, monkeypatch):
    monkeypatch.setattr(StreamRemoval, "_committed", lambda *_: False)
    with pytest.raises(RegistryContended):
        registry.removal.remove("orders", Condition(), is_cascading=False)


def test_a_condition_is_one_on_the_declaration(registry):
    with pytest.raises(PreconditionFailed):
        registry.removal.remove("orders", Condition(matches=("other",)), is_cascading=False)
    registry.removal.remove("orders", Condition(matches=(tag_of(ORDERS),)), is_cascading=False)


# --- changes ------------------------------------------------------------------------------------------------------


def controls(stores):
    return [decode_control(entry.kind, entry.body) for entry in stores.log.read_range(0) if entry.stream == "orders"]


def test_a_change_is_in_the_log_once(registry, library, stores):
    changed = library.change_stream("orders", {"lateness": 5.0, "description": "Orders of the shop."}).declaration
    assert (changed.lateness, changed.end_events, changed.description) == (5.0, ("Z",), "Orders of the shop.")
    assert library.change_stream("orders", {"lateness": 5.0}).declaration == changed == registry.stream("orders")
    assert controls(stores) == [StreamOn(ORDERS), StreamOn(changed)]


def test_other_end_events_are_in_the_constraint_set_too(registry, library, stores):
    library.constraint_sets.upload("orders", {"constraints": [{"prior": ["A", "B"]}]})
    library.change_stream("orders", {"end_events": ("Q",)})
    record = registry.constraints.get("orders")
    assert (record.version, record.document["end"], record.written.get("end", [])) == (2, ["Q"], [])
    assert [type(control).__name__ for control in controls(stores)] == [
        "StreamOn",
        "ConstraintsOn",
        "StreamOn",
        "ConstraintsOn",
    ]
    library.change_stream("orders", {"lateness": 3})
    assert registry.constraints.get("orders").version == 2


def test_a_pattern_that_waits_for_the_end_of_its_trace_keeps_it(registry, library):
    registry.put_pattern("orders", pattern_draft(name="p", text="PATTERN p EVENT SEQ(A a, NOT B)"), 1)
    with pytest.raises(StreamInUse, match="the pattern 'p' needs the ends of traces"):
        library.change_stream("orders", {"end_events": ()})
    assert library.change_stream("orders", {"end_events": (), "idle_timeout": 5}).declaration.end_events == ()
    with pytest.raises(StreamInUse, match="'p'"):
        library.change_stream("orders", {"idle_timeout": None})


def test_schemas_stay_when_a_stream_changes(registry, library):
    registry.event_types.put("orders", "A", {"type": "object"}, 1)
    before = registry.stream_with_schemas("orders")[1]
    library.change_stream("orders", {"lateness": 3})
    assert registry.stream_with_schemas("orders")[1] == before
    with pytest.raises(UnknownStream):
        library.change_stream("nobody", {"lateness": 3})


def removed_ms(stores):
    """The time at which the latest removal was appended to the log."""
    return max(
        int(entry.position.partition("-")[0]) for entry in stores.log.read_range(0) if entry.kind == "stream-off"
    )


def test_a_stream_declared_again_in_one_millisecond_has_another_time(registry, stores, monkeypatch):
    start_us = registry.since_ms("orders") * 1_000
    times = iter([start_us, start_us + 400, start_us + 900, start_us + 1_000])
    monkeypatch.setattr("service.stores.registry.registry.server_time_us", lambda _: next(times))
    registry.removal.remove("orders", Condition(), is_cascading=False)
    registry.declare_stream(ORDERS)
    assert registry.since_ms("orders") == start_us // 1_000 + 1


def test_a_stream_is_declared_after_a_removal_that_came_in_between(stores, monkeypatch):
    def other():
        stores.registry.declare_stream(ORDERS)
        stores.registry.removal.remove("orders", Condition(), is_cascading=False)

    during_commit(monkeypatch, other)
    assert stores.registry.declare_stream(ORDERS)
    assert stores.registry.since_ms("orders") > removed_ms(stores)
