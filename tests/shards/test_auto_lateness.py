"""A bound of out-of-orderness that follows the events: shards observe, one decider decides, the log records it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import RoundPlan, Variant
from shards.inline import InlineShards
from shards.rows import rows_of
from shards.state import ShardState
from streams import (
    BLOCK_EVENTS,
    AutoLateness,
    Event,
    EventBatch,
    Lags,
    LatenessChange,
    PatternOn,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    Tick,
)
from tests.builders.shards import bodies, event, log_of, run_inline
from tests.shards.rounds import rounds_of

SECOND = 1_000_000
PAIR = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)")
ROUTED = PatternOn(
    name="routed", version=1, text="PATTERN routed EVENT SEQ(A a, U u) WHERE [customer]", route="customer"
)


AUTO = AutoLateness(start=4)


def stream(lateness=AUTO, **members):
    return StreamOn(StreamDeclaration(name="orders", lateness=lateness, **members))


def change(number, seconds):
    return LatenessChange(number=number, bound_us=seconds * SECOND)


def state_of(*steps):
    state = ShardState(0)
    state.apply(log_of(steps)[0])
    return state


def bound_of(state, label="orders"):
    return (state.measures()[label].get("lateness_us") or 0) / SECOND


def bound_s(*steps, label="orders"):
    return bound_of(state_of(*steps), label)


def summary(state):
    (found,) = state.observations()
    return found.summary


# --- what a place does --------------------------------------------------------------------------------------------


def test_a_stream_begins_with_its_start_and_follows_what_is_decided():
    assert bound_s(stream()) == 4
    assert bound_s(stream(), change(1, 9)) == 9
    assert bound_s(stream(), change(1, 9), change(2, 2)) == 2


def test_what_is_decided_takes_effect_like_a_changed_lateness():
    steps = (stream(), PAIR, [event(2, "U"), event(1, "A"), event(4, "Z", "m")])
    assert bodies(state_of().apply(log_of(steps)[0]), "alert") == []
    (alert,) = bodies(state_of().apply(log_of((*steps, change(1, 2)))[0]), "alert")
    assert alert["bindings"] == {"a": ["e1"], "u": ["e2"]}
    watermark = state_of(*steps, change(1, 2), change(2, 50), [event(7, "A")]).measures()["orders"]["watermark_us"]
    assert watermark == 2 * SECOND, "it does not go back"


def test_a_decision_is_kept_within_what_is_declared_there():
    assert bound_s(stream(AutoLateness(at_least=3, at_most=8)), change(1, 1)) == 3
    assert bound_s(stream(AutoLateness(at_least=3, at_most=8)), change(1, 100)) == 8


def test_a_change_of_other_members_keeps_the_bound_and_other_limits_move_it():
    assert bound_s(stream(), change(1, 9), stream(late="drop")) == 9
    assert bound_s(stream(), change(1, 9), stream(AutoLateness(at_most=7))) == 7


def test_from_a_declared_bound_it_goes_on_from_there_and_back():
    assert bound_s(stream(12), stream()) == 12
    assert bound_s(stream(None), stream()) == 4
    fixed = state_of(stream(), stream(12), change(3, 50), [event(20, "A")])
    assert fixed.measures()["orders"]["watermark_us"] == 8 * SECOND
    assert fixed.observations() == []
    assert "lateness_us" not in fixed.measures()["orders"]
    back = state_of(stream(), change(2, 9), stream(12), change(3, 50), stream(), [event(1, "A")])
    assert summary(back)["bound_us"] == 12 * SECOND
    assert summary(state_of(stream(), change(3, 50), stream(12), stream(), [event(1, "A")]))["number"] == 3


def test_a_further_key_that_is_used_later_has_the_same_bound():
    keys = {"customer": "data.customer"}
    steps = (stream(keys=keys), change(1, 9), ROUTED)
    assert bound_s(*steps, label="orders@customer") == 9
    assert bound_s(*steps, change(2, 5), label="orders@customer") == 5


def test_a_decision_for_a_stream_that_is_gone_is_a_dead_letter():
    rows = run_inline(log_of((stream(), StreamOff("orders"), change(1, 9))))
    (letter,) = bodies(rows, "dead-letter")
    assert "is not declared" in letter["reason"]


# --- what it observes ---------------------------------------------------------------------------------------------


def test_a_place_observes_lags_against_all_that_it_knows_of_time():
    state = state_of(stream(), [event(10, "A"), event(8, "A")], Tick(time_us=20 * SECOND, cause="events"))
    state.apply(log_of([stream()] * 5 + [[event(19, "A"), event(3, "A")]])[0][5:])
    lags = Lags.from_json(summary(state)["lags"])
    assert (lags.events, lags.largest_us) == (4, 17 * SECOND)
    assert state.observations() == []


def test_what_is_read_again_is_not_observed_again():
    (log,) = log_of((stream(), [event(10, "A"), event(8, "A")])).values()
    state = ShardState(0)
    state.replay(log)
    assert state.observations() == []


def test_further_keys_do_not_count_events_twice():
    keys = {"customer": "data.customer"}
    state = state_of(stream(keys=keys), ROUTED, [event(3, "A", customer="c"), event(1, "U", customer="c")])
    assert summary(state)["lags"]["events"] == 2


lists_of_times = st.lists(st.lists(st.integers(0, 30), max_size=8), min_size=1, max_size=6)


@given(lists_of_times, st.data())
@settings(deadline=None, max_examples=40)
def test_observations_of_any_cut_add_up(times, data):
    (log,) = log_of([stream(), *([event(at, "A") for at in some] for some in times if some)]).values()
    whole, state, found, done = ShardState(0), ShardState(0), Lags(), 0
    whole.apply(log)
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        state.apply(log[done:end])
        for one in state.observations():
            found.merge(Lags.from_json(one.summary["lags"]))
        if data.draw(st.booleans()):
            state = ShardState.load(state.dump())
        done = end
    assert [found] == ([Lags.from_json(summary(whole)["lags"])] if found.events else [Lags()])


@pytest.mark.parametrize("shards", [1, 3])
def test_rounds_of_a_run_take_the_decisions_of_one_shard(shards):
    events = EventBatch.from_events(
        [replace(one, key=f"k{one.time_us // SECOND // 2 % 40}") for one in disordered()[3_000:9_000]]
    )
    records = [("orders", stream(AutoLateness(start=3))), ("orders", PAIR)]
    inline = InlineShards(1)
    for name, record in records:
        inline.append_record(name, record)
    rows = rows_of(inline.feed_and_decide("orders", events, {}) + inline.finish())
    expected = sorted(row.id for row in rows if row.kind == "alert")
    assert inline.decided["orders"] > 2
    plan = RoundPlan(variants=(Variant(name="tested", records=tuple(records)),))
    found = [
        orjson.loads(body) for one in rounds_of(plan, {"orders": events}, shards) for body in one.bodies.to_pylist()
    ]
    if shards == 1:
        assert sorted(one["id"] for one in found if "bindings" in one) == expected
    letters = [one for one in found if one.get("code") == "late-event"]
    assert len(letters) <= late(inline), "a shard's time is that of its own events"
    assert expected


# --- laws ---------------------------------------------------------------------------------------------------------


@st.composite
def logs_in_time(draw):
    """Batches none of whose events is late, between decided bounds."""
    steps, bound, newest, watermark, number = [stream(keys={"customer": "data.customer"}), PAIR, ROUTED], 4, 0, 0, 0
    for decided in range(1, draw(st.integers(2, 6))):
        batch = []
        for _ in range(draw(st.integers(1, 8))):
            number += 1
            at = draw(st.integers(watermark, max(watermark, newest) + 4))
            newest, watermark = max(newest, at), max(watermark, max(newest, at) - bound)
            batch.append(
                Event(
                    id=f"n{number}",
                    type=draw(st.sampled_from("AU")),
                    time_us=at * SECOND + number,
                    key=draw(st.sampled_from("klmnop")),
                    data={"customer": draw(st.sampled_from("cde"))},
                )
            )
        bound = draw(st.integers(0, 12))
        steps += [batch, change(decided, bound)]
        watermark = max(watermark, newest - bound)
        if watermark == newest - bound:
            watermark += 1  # times of one second differ by some microseconds
    return steps


def said(rows):
    return sorted((row.kind, row.id, orjson.loads(row.body)["key"]) for row in rows)


@given(logs_in_time(), st.data())
@settings(deadline=None, max_examples=15)
def test_shards_cuts_and_reloads_change_nothing_where_decisions_are_at_the_same_places(steps, data):
    def run(shards):
        states, found = {}, []
        for shard, log in log_of(steps, shards=shards).items():
            state, done = ShardState(shard), 0
            while done < len(log):
                end = data.draw(st.integers(done + 1, len(log))) if shards > 1 else len(log)
                found += state.apply(log[done:end])
                if shards > 1 and data.draw(st.integers(0, 3)) == 0:
                    state = ShardState.load(state.dump())
                done = end
            states[shard] = state
        for state in states.values():
            found += rows_of(state.finish())
        assert all(state.measures()["orders"]["late_dead_lettered"] == 0 for state in states.values())
        return said(found)

    expected = run(1)
    assert run(data.draw(st.sampled_from([3, 8]))) == expected


# --- disorder that grows and shrinks ------------------------------------------------------------------------------


def disordered(seed=7):
    """Events, one per second of event time, in the order of arrival: delayed by up to 2 s, then 62 s, then 2 s."""
    random, arrivals = Random(seed), []
    for number in range(24_000):
        grown = min(max(0, number - 3_000), 3_000) / 50 if number < 9_000 else 0
        arrivals.append((number + random.uniform(0, 2 + grown), number))
    return [event(number, "AU"[number % 2], f"k{number % 40}") for _, number in sorted(arrivals)]


def followed(declared, events, *, shards=1, block=BLOCK_EVENTS):
    """The shards when all events are matched, and the bound after each block."""
    inline, bounds = InlineShards(shards), []
    inline.append_record("orders", StreamOn(declared))
    for first in range(0, len(events), block):
        inline.feed("orders", EventBatch.from_events(events[first : first + block]))
        inline.decide()
        inline.settle()
        bounds.append(max(map(bound_of, inline.states)))
    return inline, bounds


def late(inline):
    return sum(state.measures()["orders"]["late_dead_lettered"] for state in inline.states)


@pytest.mark.parametrize("shards", [1, 3])
def test_where_disorder_grows_and_shrinks_few_events_are_late_and_the_bound_comes_down(shards):
    events = disordered()
    declared = StreamDeclaration(name="orders", lateness=AutoLateness(start=3))
    inline, bounds = followed(declared, events, shards=shards)
    fixed, _ = followed(StreamDeclaration(name="orders", lateness=3), events, shards=shards)
    assert late(fixed) > 3_000
    assert late(inline) < 100
    assert max(bounds) > 50
    assert bounds[2_500 // BLOCK_EVENTS] <= 3
    assert bounds[-1] < 3
    assert len(set(bounds)) < 40, "changes are few"
    waits = sum(bounds) / len(bounds)
    assert waits < 0.6 * max(bounds), "no bound that was always large enough would wait as little"


def test_a_restart_of_shards_and_deciders_changes_nothing():
    events = disordered()[3_000:9_000]
    declared = StreamDeclaration(name="orders", lateness=AutoLateness(start=3))
    expected, bounds = followed(declared, events)
    inline, found = InlineShards(1), []
    inline.append_record("orders", StreamOn(declared))
    for first in range(0, len(events), BLOCK_EVENTS):
        inline.feed("orders", EventBatch.from_events(events[first : first + BLOCK_EVENTS]))
        inline.decide()
        inline.states[0] = ShardState.load(inline.states[0].dump())
        inline.settle()
        found.append(bound_of(inline.states[0]))
    assert found == bounds
    assert late(inline) == late(expected)
