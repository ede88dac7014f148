"""When the timekeeper appends ticks; each shard gets every tick once."""

from dataclasses import replace
from typing import Any

import pytest

from service.processes.timekeeper import Timekeeper, due_tick, needs_ticks
from service.stores import StreamTimes, Submission, pattern_draft
from service.stores.conditions import ANY
from streams import Event, EventBatch, RecordKind, StreamDeclaration, Tick, decode_control

SECOND = 1_000_000
QUIET = StreamDeclaration(name="orders", quiet_after=40)


def times(newest_s, appended_s, ticked_s=None):
    ticked_us = None if ticked_s is None else ticked_s * SECOND
    return StreamTimes(newest_us=newest_s * SECOND, appended_us=appended_s * SECOND, ticked_us=ticked_us)


@pytest.mark.parametrize(
    ("known", "now_s", "expected"),
    [
        (times(5, 1_000), 1_000, (5, "events")),
        (times(5, 1_000, 4), 1_000, (5, "events")),
        (times(5, 1_000, 5), 1_039, None),
        (times(5, 1_000, 5), 1_040, (45, "clock")),
        (times(5, 1_000, 45), 1_049, None),
        (times(5, 1_000, 45), 1_050, (55, "clock")),
        (times(990, 1_000, 990), 1_050, (1_040, "clock")),
        (times(1_020, 1_000, 1_020), 1_050, (1_050, "clock")),
        (times(2_000, 1_000, 2_000), 1_050, None),
        (times(45, 1_060, 55), 1_061, None),
    ],
)
def test_time_comes_from_events_and_from_the_clock_where_there_are_none(known, now_s, expected):
    tick = due_tick(QUIET, known, now_s * SECOND)
    assert (None if tick is None else (tick.time_us // SECOND, tick.cause)) == expected


def test_an_older_event_in_a_quiet_stream_does_not_set_its_clock_back():
    known = replace(times(5, 3_000, 2_005), risen_us=1_000 * SECOND)
    assert due_tick(QUIET, known, 3_039 * SECOND) is None
    assert due_tick(QUIET, known, 3_040 * SECOND) == Tick(time_us=2_045 * SECOND, cause="clock")


def test_when_the_newest_time_rose_is_stored_beside_the_last_append(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders", quiet_after=40))
    submit(stores, "orders", 10 * SECOND)
    first = stores.stream_times.read()[1]["orders"]
    submit(stores, "orders", 5 * SECOND)
    second = stores.stream_times.read()[1]["orders"]
    assert first.risen_us == first.appended_us == second.risen_us
    assert second.appended_us > first.appended_us
    submit(stores, "orders", 11 * SECOND)
    third = stores.stream_times.read()[1]["orders"]
    assert third.risen_us == third.appended_us > second.appended_us


def test_the_clock_stands_still_for_a_stream_that_does_not_ask_for_it():
    stream = StreamDeclaration(name="orders", lateness=1)
    assert due_tick(stream, times(5, 1_000, 5), 9_000 * SECOND) is None


@pytest.mark.parametrize(
    ("declared", "known", "expected"),
    [
        ({}, times(5, 1_000), (5 * SECOND, "events")),
        ({}, times(5, 1_000, 5), (5 * SECOND + 1, "clock")),
        ({}, StreamTimes(newest_us=5, appended_us=0, ticked_us=6), None),
        ({}, StreamTimes(newest_us=5, appended_us=1_000 * SECOND + 1, ticked_us=5), None),
        ({"lateness": 0}, times(5, 1_000, 5), None),
        ({"quiet_after": 1}, StreamTimes(newest_us=5, appended_us=1_000 * SECOND, ticked_us=6), (SECOND + 5, "clock")),
    ],
)
def test_the_last_event_that_derived_ones_are_made_of_is_passed_after_a_second(declared, known, expected):
    tick = due_tick(StreamDeclaration(name="orders", **declared), known, 1_001 * SECOND, derived=[])
    assert (None if tick is None else (tick.time_us, tick.cause)) == expected


@pytest.mark.parametrize(
    ("ticked_s", "now_s", "expected"),
    [(None, 1_039, None), (None, 1_040, 1_000), (1_000, 1_049, None), (1_000, 1_050, 1_010)],
)
def test_without_events_time_follows_the_clock_at_a_distance_where_the_stream_asks_for_it(ticked_s, now_s, expected):
    known = StreamTimes(
        newest_us=None, appended_us=1_000 * SECOND, ticked_us=None if ticked_s is None else ticked_s * SECOND
    )
    tick = due_tick(QUIET, known, now_s * SECOND)
    assert (None if tick is None else (tick.time_us // SECOND, tick.cause)) == (
        None if expected is None else (expected, "clock")
    )
    assert due_tick(StreamDeclaration(name="orders"), known, now_s * SECOND, derived=[]) is None


def test_a_stream_without_events_is_ticked_by_the_clock_and_then_by_its_events(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders", quiet_after=1e-6))
    keeper = Timekeeper(stores)
    assert keeper.look() == {}
    (tick,) = keeper.look().values()
    now_us, found = stores.stream_times.read()
    assert (tick.cause, found["orders"]) == (
        "clock",
        StreamTimes(newest_us=None, appended_us=None, ticked_us=tick.time_us),
    )
    assert 0 <= now_us - tick.time_us < 60 * SECOND
    assert keeper.look() == {}
    submit(stores, "orders", now_us + 60 * SECOND)
    assert keeper.look() == {"orders": Tick(time_us=now_us + 60 * SECOND, cause="events")}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (StreamTimes(newest_us=6, appended_us=0, ticked_us=6), 7),  # of an event that came late
        (StreamTimes(newest_us=6, appended_us=1_000 * SECOND + 1, ticked_us=6), None),
        (StreamTimes(newest_us=7, appended_us=0, ticked_us=6), None),  # another source holds it back
        (StreamTimes(newest_us=5, appended_us=0, ticked_us=6), None),
    ],
)
def test_a_derived_event_of_the_time_that_its_source_has_reached_is_passed_after_a_second(made, expected):
    known = StreamTimes(newest_us=5, appended_us=0, ticked_us=6)
    tick = due_tick(StreamDeclaration(name="orders"), known, 1_001 * SECOND, derived=[made])
    assert (None if tick is None else tick.time_us) == expected


def test_derived_streams_are_told_by_the_sink_only():
    stream = StreamDeclaration(name="hints", derived=True, idle_timeout=1)
    assert not needs_ticks(stream, is_shared=True)
    assert needs_ticks(StreamDeclaration(name="orders"), is_shared=True)


def test_a_stream_without_events_has_no_time(stores):
    for name in ("orders", "returns", "gifts", "alone"):
        stores.registry.declare_stream(StreamDeclaration(name=name))
    fed = {"orders": "all", "returns": "back", "back": "all", "gifts": "presents"}
    for name in ("all", "back", "presents"):
        stores.registry.declare_stream(StreamDeclaration(name=name, derived=True))
    for name, into in fed.items():
        text = f"PATTERN p_{name} EVENT A a INTO {into}"
        stores.registry.put_pattern(name, pattern_draft(name=f"p_{name}", text=text, into=into), 0)
    keeper = Timekeeper(stores)
    assert keeper.look() == {}
    submit(stores, "orders", 7 * SECOND)
    submit(stores, "alone", 9 * SECOND)
    told = Tick(time_us=7 * SECOND, cause="events")
    assert keeper.look() == {"orders": told}
    assert keeper.look() == {}
    submit(stores, "returns", 8 * SECOND)
    assert keeper.look() == {"returns": Tick(time_us=8 * SECOND, cause="events")}


def test_a_stream_is_ticked_while_events_derived_from_it_may_wait(stores):
    for name in ("orders", "returns"):
        stores.registry.declare_stream(StreamDeclaration(name=name))
    for name in ("all", "some"):
        stores.registry.declare_stream(StreamDeclaration(name=name, derived=True))
    for stream, name, into in (("orders", "p", "all"), ("all", "q", "some"), ("returns", "r", "some")):
        draft = pattern_draft(name=name, text=f"PATTERN {name} EVENT A a INTO {into}", into=into)
        stores.registry.put_pattern(stream, draft, 0)
    keeper, patterns = Timekeeper(stores), stores.registry.pattern_operators

    def ticked(second: int) -> set[str]:
        for stream in ("orders", "returns"):
            submit(stores, stream, second * SECOND)
        return set(keeper.look())

    assert ticked(1) == {"orders", "returns"}
    patterns.move("q", "retire")
    patterns.move("r", "retire")
    assert ticked(2) == {"orders", "returns"}  # events in the stream some may wait for both
    patterns.remove("p")
    assert ticked(3) == {"orders", "returns"}
    draft = pattern_draft(name="back", text="PATTERN back EVENT A a INTO all", into="all")
    stores.registry.put_pattern("some", draft, 0)  # a cycle with the retired pattern q
    assert ticked(4) == {"returns"}
    stores.registry.removal.remove("some", ANY, is_cascading=True)
    assert ticked(5) == {"orders", "returns"}  # events of the stream all may come from both
    stores.registry.removal.remove("all", ANY, is_cascading=True)
    assert ticked(6) == set()


def with_version(stores, stream, into):
    text = f"PATTERN p EVENT A a {f'INTO {into}' if into else ''}".strip()
    stores.registry.put_pattern(stream, pattern_draft(name="p", text=text, into=into), 0)


def change(stores):
    with_version(stores, "orders", "")


def move(stores):
    stores.registry.pattern_operators.remove("p")
    with_version(stores, "returns", "")


def sketch(stores):
    stores.registry.pattern_operators.remove("p")
    draft = pattern_draft(name="p", text="PATTERN p EVENT A a", state="draft")
    stores.registry.put_pattern("returns", draft, 0)


@pytest.mark.parametrize("replaced", [change, move, sketch])
def test_a_stream_is_ticked_while_events_of_a_former_version_may_wait(stores, replaced):
    for name in ("orders", "returns"):
        stores.registry.declare_stream(StreamDeclaration(name=name))
    stores.registry.declare_stream(StreamDeclaration(name="all", derived=True))
    keeper = Timekeeper(stores)
    with_version(stores, "orders", "all")
    replaced(stores)
    submit(stores, "orders", 1 * SECOND)
    assert set(keeper.look()) == {"orders"}
    draft = pattern_draft(name="q", text="PATTERN q EVENT A a INTO all", into="all")
    stores.registry.put_pattern("returns", draft, 0)
    submit(stores, "orders", 2 * SECOND)
    assert "orders" not in keeper.look()


def test_only_streams_with_event_time_are_told():
    declared: list[dict[str, Any]] = [{}, {"lateness": 0}, {"idle_timeout": 1}, {"quiet_after": 1}]
    assert [needs_ticks(StreamDeclaration(name="s", **one)) for one in declared] == [False, True, True, True]


def submit(stores, stream, *times_us):
    events = [Event(id=f"e{time_us}", type="A", time_us=time_us, key=f"k{time_us}") for time_us in times_us]
    submission = Submission(
        stream=stream,
        batch=EventBatch.from_events(events),
        dead_letters=[],
        answer={},
        fingerprint="",
        token=f"{stream}{times_us}",
    )
    stores.log.append_events(submission)


def ticks(stores, stream):
    found = []
    for shard in range(stores.log.shards()):
        entries = [entry for entry in stores.log.read_range(shard) if entry.kind is RecordKind.TICK]
        found.append([decode_control(entry.kind, entry.body) for entry in entries if entry.stream == stream])
    return found


def test_every_shard_is_told_the_newest_time_once(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders", lateness=5))
    stores.registry.declare_stream(StreamDeclaration(name="plain"))
    keeper, other = Timekeeper(stores), Timekeeper(stores)
    assert keeper.look() == {}
    submit(stores, "plain", 9 * SECOND)
    submit(stores, "orders", 7 * SECOND, 3 * SECOND)
    told = Tick(time_us=7 * SECOND, cause="events")
    assert keeper.look() == {"orders": told}
    assert (keeper.look(), other.look()) == ({}, {})
    submit(stores, "orders", 4 * SECOND)
    assert other.look() == {}
    assert ticks(stores, "orders") == [[told]] * 3
    assert ticks(stores, "plain") == [[]] * 3


def test_times_are_noted_with_the_events(stores):
    submit(stores, "orders", 7 * SECOND, 253_402_300_799_999_999)
    submit(stores, "orders", 3 * SECOND)
    now_us, found = stores.stream_times.read()
    assert found["orders"].newest_us == 253_402_300_799_999_999
    assert found["orders"].ticked_us is None
    assert 0 <= now_us - found["orders"].appended_us < 60 * SECOND


def test_an_older_tick_is_not_appended(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders", lateness=5))
    layout = stores.log.layout
    outcomes = [
        stores.stream_times.tick("orders", Tick(time_us=time_us, cause="clock"), layout) for time_us in (5, 9, 9, 7)
    ]
    assert outcomes == [True, True, False, False]
    assert [[tick.time_us for tick in shard] for shard in ticks(stores, "orders")] == [[5, 9]] * 3


def test_a_stream_with_a_pattern_on_a_further_key_is_ticked(stores):
    stores.registry.declare_stream(StreamDeclaration(name="orders", keys={"shop": "data.shop"}))
    text = "PATTERN p EVENT SEQ(A a, NOT B) WHERE [shop] WITHIN 4 s"
    batch = EventBatch.from_events([Event(id="e", type="X", time_us=9 * SECOND, key="k", data={})])
    submission = Submission(stream="orders", batch=batch, dead_letters=(), answer={}, fingerprint="", token="t")
    stores.log.append_events(submission)
    assert not Timekeeper(stores).look()
    stores.registry.put_pattern("orders", pattern_draft(name="p", text=text, route="shop"), 0)
    assert Timekeeper(stores).look() == {"orders": Tick(time_us=9 * SECOND, cause="events")}
