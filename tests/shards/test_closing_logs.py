"""Derived events with keys of their own are processed in the order of time after the operator that derives them stops.

Another operator feeds the same stream directly. The stream then waits for the log until every shard has closed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, RowBlock, ShardState
from shards.blob import pack, seal, unpack
from shards.entries import StoredEntry
from shards.stops import stop_note
from streams import (
    CLOSED_US,
    ControlRecord,
    Event,
    EventBatch,
    PatternOff,
    PatternOn,
    PatternPause,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    Tick,
    key_hash,
    shard_of,
)

SECOND_US = 1_000_000
MOST_ROUNDS = 20
Said: TypeAlias = tuple[str, ControlRecord]
KEYED = "PATTERN far EVENT A a RETURN a.c AS c, a.n AS n INTO d KEY c TYPE M"
DIRECT = "PATTERN near EVENT A a RETURN a.n AS n INTO d TYPE M"
FAR: Said = ("s", PatternOn(name="far", version=1, text=KEYED))
CONTROL: Sequence[Said] = [
    *((name, StreamOn(StreamDeclaration(name=name))) for name in "st"),
    *((name, StreamOn(StreamDeclaration(name=name, derived=True))) for name in ("d", "e", "other")),
    FAR,
    (
        "d",
        PatternOn(name="pairs", version=1, text="PATTERN pairs EVENT SEQ(M a, STRICT M b) RETURN a.n AS a, b.n AS b"),
    ),
    ("d", PatternOn(name="quiet", version=1, text="PATTERN quiet EVENT SEQ(M a, WITHIN 3 s NOT M) RETURN a.n AS a")),
]
NEAR: Said = ("t", PatternOn(name="near", version=1, text=DIRECT))
STOPS: dict[str, Sequence[Said]] = {
    "retired": [("s", PatternOff("far"))],
    "paused": [("s", PatternPause("far"))],
    "another stream": [("s", PatternOn(name="far", version=2, text=KEYED.replace("INTO d", "INTO other")))],
    "another key": [("s", PatternOn(name="far", version=2, text=KEYED.replace("KEY c ", "")))],
    "no stream": [("s", PatternOn(name="far", version=2, text="PATTERN far EVENT A a"))],
    "source removed": [("s", PatternOff("far")), ("s", StreamOff("s"))],
}


def event(number: int, key: str = "k", **data: Any) -> EventBatch:
    one = Event(id=f"e{number}", type="A", time_us=number * SECOND_US, key=key, data={"n": number, **data})
    return EventBatch.from_events([one])


def said(run: InlineShards, records: Iterable[Said]) -> None:
    for stream, record in records:
        run.append_record(stream, record)


def found(rows: Iterable[RowBlock]) -> list[tuple[str, tuple[int, ...]]]:
    bodies = [orjson.loads(row.body) for block in rows for row in block if row.kind == "alert"]
    return sorted((body["pattern"], tuple(body["returns"].values())) for body in bodies)


def late(run: InlineShards) -> int:
    return sum(state.measures()["d"]["late_processed"] or 0 for state in run.states)


def settled(run: InlineShards) -> list[RowBlock]:
    """Match all entries as ``InlineShards.settle`` does, but fail if the shards never stop appending entries."""
    rows: list[RowBlock] = []
    for _ in range(MOST_ROUNDS):
        if not any(run.waiting):
            return rows
        for shard, entries in enumerate(run.waiting):
            rows += run.step(shard, entries)
    pytest.fail(f"after {MOST_ROUNDS} rounds, the shards still append entries")


def passed(run: InlineShards, seconds: int, streams: str = "st") -> list[RowBlock]:
    said(run, [(name, Tick(time_us=seconds * SECOND_US, cause="events")) for name in streams])
    return settled(run)


def reload(run: InlineShards) -> None:
    run.states = [ShardState.load(state.dump()) for state in run.states]


@pytest.mark.parametrize("shards", [1, 8])
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("is_near_first", [True, False])
def test_events_in_the_log_are_matched_in_order_when_their_operator_stops(
    shards: int, stop: str, is_near_first: bool
) -> None:
    run = InlineShards(shards)
    said(run, CONTROL)
    said(run, [NEAR] if is_near_first else [])
    settled(run)
    for number in (1, 3):
        run.feed("s", event(number, key=f"s{number}", c="k"))
    said(run, [NEAR] if not is_near_first and stop == "another key" else [])
    said(run, STOPS[stop])
    said(run, [NEAR] if not is_near_first and stop != "another key" else [])
    for number in (2, 4):
        run.feed("t", event(number))
    rows: list[RowBlock] = []
    for shard, entries in enumerate(run.waiting):
        rows += run.step(shard, entries)
    reload(run)
    rows += settled(run)
    run.feed("t", event(5))
    rows += settled(run)
    rows += passed(run, 60, "t" if stop == "source removed" else "st")
    assert found(rows) == [*(("pairs", (n, n + 1)) for n in (1, 2, 3, 4)), ("quiet", (5,))]
    assert late(run) == 0
    assert [state.measures()["d"]["waiting"] for state in run.states] == [0] * shards


@pytest.mark.parametrize("shards", [1, 8])
def test_a_stream_whose_log_is_closed_waits_for_it_no_longer(shards: int) -> None:
    run = InlineShards(shards)
    said(run, [*CONTROL, NEAR])
    run.feed("s", event(1, key="s", c="k"))
    said(run, STOPS["retired"])
    run.feed("t", event(2))
    for shard, entries in enumerate(run.waiting):
        run.step(shard, entries)
    assert [state.promises() for state in run.states] == [{"d": CLOSED_US + 1}] * shards
    assert found(settled(run)) == [("pairs", (1, 2))]
    assert [state.promises() for state in run.states] == [{}] * shards
    run.feed("t", event(3))
    assert found(settled(run)) == [("pairs", (2, 3))]
    said(run, [FAR])
    run.feed("s", event(5, key="s", c="k"))
    run.feed("t", event(4))
    assert found(settled(run)) == []
    assert found(passed(run, 6)) == [("pairs", (3, 4)), ("pairs", (4, 5))]


@pytest.mark.parametrize("shards", [1, 8])
def test_an_operator_that_begins_again_before_the_log_is_closed_is_waited_for(shards: int) -> None:
    run = InlineShards(shards)
    said(run, [*CONTROL, NEAR])
    run.feed("s", event(1, key="s", c="k"))
    said(run, STOPS["paused"])
    for shard, entries in enumerate(run.waiting):
        run.step(shard, entries)
    said(run, [FAR])
    run.feed("s", event(2, key="s", c="k"))
    run.feed("t", event(3))
    said(run, [("d", Tick(time_us=CLOSED_US, cause="events"))])  # as if it had been appended before
    rows = settled(run)
    assert max(state.promises()["d"] or 0 for state in run.states) < CLOSED_US
    rows += passed(run, 60)
    assert found(rows) == [("pairs", (1, 2)), ("pairs", (2, 3)), ("quiet", (3,))]
    assert late(run) == 0


def begun(*, is_running: bool = True) -> tuple[InlineShards, int, str, int]:
    """Return a run with two shards, the shard of the key k, a key of the other shard, and this shard."""
    run = InlineShards(2)
    said(run, [record for record in (*CONTROL, NEAR) if is_running or record != FAR])
    settled(run)
    home = int(shard_of(key_hash("k"), 2))
    return run, home, next(key for key in "abcdef" if shard_of(key_hash(key), 2) != home), 1 - home


@pytest.mark.parametrize("ticks", [0, 1, 2])
def test_a_closing_tick_of_an_earlier_stop_does_not_close_the_log_after_a_later_one(ticks: int) -> None:
    run, home, key, source = begun()
    said(run, STOPS["paused"])
    rows = [*run.step(home, 1), *run.step(source, 1)] if ticks == 2 else []  # the first tick precedes the start
    said(run, [FAR])
    run.feed("s", event(2, key=key, c="k"))
    said(run, STOPS["paused"])
    if ticks:  # the shards read the first stop, or the first tick, so that the next tick follows the second stop
        rows += [*run.step(home, 1), *run.step(source, 1)]
    else:  # one shard reads the first stop, the other one both stops
        rows += [*run.step(source, 1), *run.step(home, 3)]
    for number in (1, 3):
        run.feed("t", event(number))
    for shard in (home, source):
        rows += run.step(shard, run.waiting[shard])
    rows += [*settled(run), *passed(run, 60)]
    assert found(rows) == [("pairs", (1, 2)), ("pairs", (2, 3)), ("quiet", (3,))]


def test_a_repeated_closing_tick_has_no_effect() -> None:
    run, *_ = begun()
    said(run, [*STOPS["paused"], *[("d", Tick(time_us=CLOSED_US + 1, cause="events"))] * 2])
    for shard in range(2):
        run.step(shard, 3)
    assert [state.promises() for state in run.states] == [{"d": CLOSED_US + 2}] * 2


@pytest.mark.parametrize("is_running", [True, False])
def test_a_shard_that_stops_an_operator_early_waits_for_what_others_derive(is_running: bool) -> None:
    run, home, key, source = begun(is_running=is_running)
    said(run, [FAR])
    run.feed("s", event(2, key=key, c="k"))
    said(run, STOPS["paused"])
    for number in (1, 3):
        run.feed("t", event(number))
    rows = stopped(run, home)
    for shard in (home, source):
        rows += run.step(shard, run.waiting[shard])
    rows += settled(run)
    assert found(rows) == [("pairs", (1, 2)), ("pairs", (2, 3))]
    assert [state.promises() for state in run.states] == [{}] * 2


def test_feeds_follow_the_log_if_a_shard_stops_an_operator_early() -> None:
    run, home, key, source = begun()
    run.feed("s", event(1, key=key, c="k"))
    said(run, [("t", PatternPause("near")), *STOPS["paused"]])  # so the last operator to stop is the one that re-keys
    rows = stopped(run, home, 1)
    for shard in (home, source):
        rows += run.step(shard, run.waiting[shard])
    rows += passed(run, 60)
    assert found(rows) == [("quiet", (1,))]
    assert [state.feeds for state in run.states] == [run.states[0].feeds] * 2


def stopped(run: InlineShards, shard: int, number: int = 0) -> list[RowBlock]:
    """Stop the operator in a shard before the log reaches one of its pauses."""
    pauses = [entry for entry in run._waiting[shard] if entry.kind == PatternPause.KIND]
    if not pauses:
        return []
    pause, first = pauses[number % len(pauses)], run._waiting[shard][0]
    records = orjson.dumps([[pause.stream, pause.kind, pause.body.decode()]]).decode()
    note = stop_note(pause.position, records, StoredEntry(position=first.position, kind="", stream="", body=b""))
    return run.states[shard].advance([note])


@pytest.mark.parametrize("shards", [1, 8])
def test_events_of_a_stream_without_sources_are_matched_once_all_have_arrived(shards: int) -> None:
    run = InlineShards(shards)
    said(run, CONTROL)
    for number in (2, 1):
        run.feed("s", event(number, key=f"s{number}", c="k"))
    said(run, STOPS["source removed"])
    assert found(settled(run)) == [("pairs", (1, 2))]
    assert [state.measures()["d"]["waiting"] for state in run.states] == [0] * shards


def test_a_state_of_a_former_release_does_not_wait_but_closes_the_log() -> None:
    run = InlineShards(2)
    said(run, [*CONTROL, NEAR])
    run.feed("s", event(1, key="s", c="k"))
    passed(run, 2)
    said(run, STOPS["retired"])
    for shard, entries in enumerate(run.waiting):
        run.step(shard, entries)
    _, head, sections = unpack(run.states[0].dump())
    for place in head["places"]:
        for member in ("waits_for_log", "closing_us", "is_closing"):
            place.get("derived", {}).pop(member, None)
    run.states[0] = ShardState.load(b"".join(seal(pack(head, sections))))
    assert [state.promises() for state in run.states] == [{"d": CLOSED_US + 1}] * 2
    settled(run)
    assert [state.promises() for state in run.states] == [{}] * 2


def test_a_closing_tick_of_a_former_version_closes_the_log_at_once() -> None:
    run = InlineShards(2)
    said(run, [*CONTROL, NEAR, *STOPS["paused"], ("d", Tick(time_us=CLOSED_US, cause="events"))])
    for shard, entries in enumerate(run.waiting):
        run.step(shard, entries)
    assert [state.promises() for state in run.states] == [{}] * 2


@pytest.mark.parametrize("is_split", [True, False])
def test_events_of_a_direct_feed_that_has_stopped_wait_for_their_time(is_split: bool) -> None:
    run = InlineShards(1)
    said(run, [*CONTROL[:-3], *CONTROL[-2:], NEAR, STOPS["another key"][0]])
    for number in (1, 3, 5):
        run.feed("s", event(number))
    said(run, [("s", PatternOff("far"))])
    rows = settled(run) if is_split else []
    for number in (2, 4, 6):
        run.feed("t", event(number))
        rows += settled(run) if is_split else []
    assert found([*rows, *settled(run)]) == [("pairs", (n, n + 1)) for n in range(1, 6)]


VERSIONS: dict[str, Sequence[ControlRecord]] = {
    "s": [FAR[1], PatternPause("far"), STOPS["another key"][0][1]],
    "t": [NEAR[1], PatternPause("near")],
}


def random_steps(random: Random) -> list[Said | tuple[str, EventBatch]]:
    steps: list[Said | tuple[str, EventBatch]] = []
    share = random.choice((0.6, 0.8))
    for number in range(1, random.randint(8, 40)):
        stream = random.choice("st")
        if random.random() < share:
            steps.append((stream, event(number, key=random.choice("klmno"), c=random.choice("klm"))))
        else:
            steps.append((stream, random.choice(VERSIONS[stream])))
    return steps


def given_steps(run: InlineShards, steps: Iterable[Said | tuple[str, EventBatch]]) -> None:
    for stream, step in steps:
        if isinstance(step, EventBatch):
            run.feed(stream, step)
        else:
            run.append_record(stream, step)


@settings(max_examples=100, deadline=None)
@given(shards=st.sampled_from([1, 3, 8]), seed=st.integers(0, 2**32))
def test_any_split_gives_what_a_run_without_events_in_transit_gives(shards: int, seed: int) -> None:
    random = Random(seed)
    steps = random_steps(random)
    is_backlog = random.random() < 0.5
    results = []
    for is_settled in (True, False):
        run = InlineShards(shards)
        said(run, [*CONTROL, NEAR])
        rows = settled(run)
        for part in [steps] if is_backlog and not is_settled else [[step] for step in steps]:
            given_steps(run, part)
            if is_settled:
                rows += settled(run)
                continue
            for shard in random.choices(range(shards), k=random.randint(0, shards * len(part))):
                rows += run.step(shard, random.randint(1, 6))
                if random.random() < 0.1:
                    reload(run)
        rows += passed(run, 1_000)
        rows += passed(run, 2_000)
        assert late(run) == 0
        assert [state.measures()["d"]["waiting"] for state in run.states] == [0] * shards
        results.append(found(rows))
    assert results[0] == results[1]


@settings(max_examples=60, deadline=None)
@given(shards=st.sampled_from([2, 3]), seed=st.integers(0, 2**32))
def test_events_are_in_order_and_the_log_is_closed_whatever_shards_stop_early(shards: int, seed: int) -> None:
    random = Random(seed)
    run = InlineShards(shards)
    said(run, [record for record in (*CONTROL, NEAR) if record != FAR or random.random() < 0.5])
    rows = settled(run)
    given_steps(run, random_steps(random))
    for shard in random.choices(range(shards), k=random.randint(0, 40)):
        rows += stopped(run, shard, random.randint(0, 9)) if random.random() < 0.3 else []
        rows += run.step(shard, random.randint(1, 8))
        if random.random() < 0.1:
            reload(run)
    rows += passed(run, 1_000)
    assert [pair for pattern, pair in found(rows) if pattern == "pairs" and pair[0] > pair[1]] == []
    assert late(run) == 0
    assert [state.measures()["d"]["waiting"] for state in run.states] == [0] * shards
    assert [state.feeds for state in run.states] == [run.states[0].feeds] * shards
