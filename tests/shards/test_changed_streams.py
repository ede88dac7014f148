"""A stream that changes its declaration, or ends, at a place of the log."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.rows import rows_of as rows_of_blocks
from shards.state import ShardState
from streams import AutoLateness, ConstraintsOn, LatenessChange, PatternOn, StreamDeclaration, StreamOff, StreamOn, Tick
from tests.builders.shards import bodies, event, log_of, run_inline, saved_measures


def stream(end=("End",), **members):
    return StreamOn(StreamDeclaration(name="orders", end_events=end, **members))


def pattern(name, text, **members):
    return PatternOn(name=name, version=1, text=f"PATTERN {name} EVENT {text}", **members)


PAIR = pattern("pair", "SEQ(A a, U u)")
NEVER = pattern("never", "SEQ(A a, NOT X)")
SOON = pattern("soon", "SEQ(A a, NOT X) WITHIN 5 s EMIT TIMEOUTS")
ROUTED = pattern("routed", "SEQ(A a, U u) WHERE [customer]", route="customer")
OFF = StreamOff("orders")


def rows_of(*steps):
    return run_inline(log_of(steps))


def alerts_of(*steps):
    return [alert["bindings"] for alert in bodies(rows_of(*steps), "alert")]


def alerts_before_the_end(*steps):
    """Without what only the end of the input decides."""
    return [alert["bindings"] for alert in bodies(ShardState(0).apply(log_of(steps)[0]), "alert")]


def reasons(*steps):
    return [letter["code"] for letter in bodies(rows_of(*steps), "dead-letter")]


def watermark(*steps):
    state = ShardState(0)
    state.apply(log_of(steps)[0])
    measures = state.measures()["orders"]
    return measures["watermark_us"], measures["waiting"]


# --- lateness -----------------------------------------------------------------------------------------------------


def test_a_smaller_lateness_releases_at_its_place_what_need_not_wait():
    events = [event(2, "U"), event(1, "A"), event(4, "Z", "m")]
    assert alerts_before_the_end(stream(lateness=5), PAIR, events) == []
    changed = (stream(lateness=5), PAIR, events, stream(lateness=2))
    assert alerts_before_the_end(*changed) == [{"a": ["e1"], "u": ["e2"]}]
    assert watermark(*changed) == (2_000_000, 1)


def test_a_larger_lateness_does_not_take_the_watermark_back():
    steps = (stream(lateness=2), PAIR, [event(10, "X", "m")], stream(lateness=8))
    assert watermark(*steps) == (8_000_000, 1)
    assert reasons(*steps, [event(7, "A")]) == ["late-event"]
    assert watermark(*steps, [event(17, "X", "m")]) == (9_000_000, 2)


def test_without_lateness_everything_leaves_and_later_events_are_matched_as_they_come():
    steps = (stream(lateness=9), PAIR, [event(5, "U"), event(3, "A")], stream())
    assert alerts_before_the_end(*steps) == [{"a": ["e3"], "u": ["e5"]}]
    assert watermark(*steps) == (5_000_000, 0)
    assert reasons(*steps, [event(1, "A")]) == []


def test_a_first_lateness_begins_at_the_newest_time():
    steps = (stream(), PAIR, [event(10, "X", "m")], stream(lateness=4))
    assert watermark(*steps) == (10_000_000, 0)
    assert reasons(*steps, [event(9, "A")]) == ["late-event"]
    assert watermark(*steps, [event(12, "A")]) == (10_000_000, 1)


def test_the_policy_for_late_events_changes_at_its_place():
    first, second = [event(10, "X", "m"), event(1, "A")], [event(2, "A"), event(3, "U")]
    steps = (stream(lateness=2, late="drop"), PAIR, first, stream(lateness=2, late="process"), second)
    state = ShardState(0)
    assert [alert["bindings"] for alert in bodies(state.apply(log_of(steps)[0]), "alert")] == [
        {"a": ["e2"], "u": ["e3"]}
    ]
    measures = state.measures()["orders"]
    assert (measures["late_dropped"], measures["late_processed"]) == (1, 2)


def test_waiting_events_of_a_further_key_leave_too():
    keys = {"customer": "data.customer"}
    events = [event(2, "U", "k2", customer="c"), event(1, "A", "k1", customer="c"), event(4, "Z", "m")]
    steps = (stream(keys=keys, lateness=5), ROUTED, events, stream(keys=keys))
    assert alerts_before_the_end(*steps) == [{"a": ["e1"], "u": ["e2"]}]


# --- ends of traces -----------------------------------------------------------------------------------------------


def test_a_shorter_idle_timeout_ends_traces_at_its_place():
    steps = (stream(idle_timeout=60), NEVER, [event(1, "A"), event(20, "X", "m")])
    assert alerts_before_the_end(*steps) == []
    assert alerts_before_the_end(*steps, stream(idle_timeout=10)) == [{"a": ["e1"]}]


def test_a_longer_idle_timeout_counts_from_the_newest_event_of_a_trace():
    steps = (stream(idle_timeout=10), NEVER, [event(1, "A"), event(8, "X", "m")], stream(idle_timeout=30))
    assert alerts_before_the_end(*steps, [event(30, "X", "m")]) == []
    assert alerts_before_the_end(*steps, [event(31, "X", "m")]) == [{"a": ["e1"]}]


def test_a_first_idle_timeout_counts_from_its_place_for_open_traces():
    steps = (stream(), NEVER, [event(1, "A"), event(20, "X", "m")], stream(idle_timeout=10))
    assert alerts_before_the_end(*steps, [event(29, "X", "m")]) == []
    assert alerts_before_the_end(*steps, [event(30, "X", "m")]) == [{"a": ["e1"]}]


def test_without_an_idle_timeout_open_traces_stay_open():
    steps = (stream(idle_timeout=10), NEVER, [event(1, "A")], stream())
    assert alerts_before_the_end(*steps, [event(1_000, "X", "m")]) == []


def test_other_end_events_end_open_traces_from_their_place_on():
    steps = (stream(), NEVER, [event(1, "A")], stream(end=("Stop",)))
    assert alerts_before_the_end(*steps, [event(2, "End")]) == []
    assert alerts_before_the_end(*steps, [event(2, "Stop")]) == [{"a": ["e1"]}]


def test_end_events_of_constraints_stay_beside_those_of_the_stream():
    rules = {"constraints": [{"prior": ["A", "U"]}], "end": ["Gone"], "settings": {"reopen": "new_transaction"}}
    followed = ConstraintsOn(name="orders", version=1, document=rules)
    steps = (stream(), followed, NEVER, [event(1, "A")], stream(end=("Stop",)))
    assert alerts_before_the_end(*steps, [event(2, "Gone")]) == [{"a": ["e1"]}]
    assert alerts_before_the_end(*steps, [event(2, "Stop")]) == [{"a": ["e1"]}]


def test_events_that_wait_are_matched_under_the_changed_declaration():
    steps = (stream(lateness=5), NEVER, [event(1, "A"), event(2, "End")], stream(end=("Stop",), lateness=5))
    assert alerts_before_the_end(*steps, [event(20, "X", "m")]) == []


# --- the end of a stream ------------------------------------------------------------------------------------------


def test_nothing_is_left_of_a_stream_that_ends():
    steps = (stream(lateness=5), PAIR, [event(1, "A")], OFF)
    state = ShardState(0)
    assert state.apply(log_of(steps)[0]) == []
    assert state.measures() == {}
    assert b"orders" not in state.dump()


def test_events_of_a_stream_that_has_ended_are_dead_letters():
    assert reasons(stream(), PAIR, OFF, [event(1, "A")], [event(2, "U")]) == ["control-record", "control-record"]


def test_a_stream_that_comes_back_knows_nothing():
    events = [event(1, "A")], [event(2, "U")]
    assert alerts_of(stream(), PAIR, events[0], OFF, stream(key="data.x"), events[1]) == []
    assert alerts_of(stream(), PAIR, events[0], OFF, stream(key="data.x"), PAIR, events[0], events[1]) == [
        {"a": ["e1"], "u": ["e2"]}
    ]


def test_other_streams_stay():
    other = log_of([StreamOn(StreamDeclaration(name="other"))], stream="other")[0]
    state = ShardState(0)
    state.apply(other)
    state.apply([entry for entry in log_of([stream(), stream(), OFF])[0] if entry.position != "1-1"])
    assert state.measures().keys() == {"other"}


def test_the_end_of_a_stream_that_is_not_declared_is_a_dead_letter():
    assert reasons(OFF) == ["control-record"]


# --- laws ---------------------------------------------------------------------------------------------------------

_KEYS = {"customer": "data.customer"}
declarations = st.builds(
    lambda end, late, idle_timeout: stream(end, keys=_KEYS, idle_timeout=idle_timeout, **late),
    st.sampled_from([("End",), ("X",), ()]),
    st.one_of(
        st.just({}),
        st.builds(
            lambda s, late: {"lateness": s, "late": late}, st.integers(0, 6), st.sampled_from(["drop", "process"])
        ),
        st.builds(lambda s: {"lateness": s}, st.integers(0, 6)),
        st.builds(
            lambda least, more, start: {"lateness": AutoLateness(at_least=least, at_most=least + more, start=start)},
            st.integers(0, 2),
            st.integers(0, 6),
            st.integers(0, 8),
        ),
    ),
    st.sampled_from([None, None, 2, 5, 12]),
)
happenings = st.builds(
    lambda name, key, time, customer: (name, key, time, customer),
    st.sampled_from(["A", "U", "L", "X", "End"]),
    st.sampled_from("kmn"),
    st.integers(0, 5),
    st.sampled_from("cd"),
)
others = st.sampled_from(
    [
        PAIR,
        NEVER,
        SOON,
        ROUTED,
        pattern("finer", "SEQ(A a, U u) WHERE [key, customer]"),
        ConstraintsOn(name="orders", version=1, document={"constraints": [{"prior": ["A", "U"]}]}),
        ConstraintsOn(
            name="orders",
            version=2,
            document={
                "constraints": [{"response": ["A", "U"]}],
                "end": ["L"],
                "settings": {"reopen": "new_transaction"},
            },
        ),
        OFF,
    ]
)
decided = st.builds(
    lambda number, bound: LatenessChange(number=number, bound_us=bound * 1_000_000),
    st.integers(1, 9),
    st.integers(0, 9),
)


@st.composite
def changing_logs(draw):
    """Batches between changed declarations, measured bounds, patterns, constraints, ticks and ends of the stream."""
    steps, number, time = (
        [draw(declarations), *draw(st.lists(others.filter(lambda step: step != OFF), max_size=3))],
        0,
        0,
    )
    for kind in draw(st.lists(st.sampled_from("eeeeddotm"), min_size=1, max_size=14)):
        if kind == "d":
            steps.append(draw(declarations))
        elif kind == "o":
            steps.append(draw(others))
        elif kind == "m":
            steps.append(draw(decided))
        elif kind == "t":
            steps.append(Tick(time_us=(time + draw(st.integers(0, 8))) * 1_000_000, cause="events"))
        else:
            batch = []
            for name, key, ahead, customer in draw(st.lists(happenings, min_size=1, max_size=6)):
                number, time = number + 1, max(time, time + ahead - 2)
                at = max(0, time - draw(st.integers(0, 5)))
                one = event(at, name, key, customer=customer)
                batch.append(type(one)(id=f"n{number}", type=name, time_us=one.time_us, key=key, data=one.data))
            steps.append(batch)
    return steps


def told(rows):
    return sorted((row.kind, row.id, orjson.dumps(orjson.loads(row.body), option=orjson.OPT_SORT_KEYS)) for row in rows)


@given(changing_logs(), st.data())
@settings(max_examples=200, deadline=None)
def test_cuts_repeats_and_reloads_change_nothing(steps, data):
    (log,) = log_of(steps).values()
    whole, state = ShardState(0), ShardState(0)
    expected, found, done = whole.apply(log), [], 0
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        found += state.apply(log[data.draw(st.integers(0, done)) : end])
        if data.draw(st.booleans()):
            state = ShardState.load(state.dump())
        done = end
    assert told(found) == told(expected)
    assert saved_measures(state) == saved_measures(whole)
    assert told(rows_of_blocks(state.finish())) == told(rows_of_blocks(whole.finish()))


def test_an_older_version_of_constraints_after_a_newer_one_is_refused():
    older, newer = (
        ConstraintsOn(name="orders", version=version, document={"constraints": [{"prior": names}]})
        for version, names in ((1, ["A", "U"]), (2, ["U", "A"]))
    )
    (letter,) = bodies(rows_of(stream(), newer, older), "dead-letter")
    assert "version 1 of stream 'orders' comes after version 2" in letter["reason"]
    assert bodies(rows_of(stream(), older, newer, newer), "dead-letter") == []


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_an_older_version_that_comes_again_is_refused_also_where_it_was_known(is_reloaded):
    older, newer = (
        ConstraintsOn(name="orders", version=version, document={"constraints": [{"prior": names}]})
        for version, names in ((1, ["A", "U"]), (2, ["U", "A"]))
    )
    (log,) = log_of((stream(), older, newer, older, [event(1, "A")])).values()
    state = ShardState(0)
    assert state.apply(log[:3]) == []
    if is_reloaded:
        state = ShardState.load(state.dump())
    (letter,) = bodies(state.apply(log), "dead-letter")
    assert "version 1 of stream 'orders' comes after version 2" in letter["reason"]


@pytest.mark.parametrize("member", ["key", "keys", "ties"])
def test_what_decides_how_events_are_read_cannot_change(member):
    changes = {"key": "data.x", "keys": {"c": "data.c"}, "ties": "simultaneous"}
    (letter,) = bodies(rows_of(stream(), stream(**{member: changes[member]})), "dead-letter")
    assert letter["reason"].startswith(f"stream 'orders': the {member} of a declared stream cannot change")
