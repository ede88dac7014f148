"""Event time in a shard: lateness, ticks, idle traces, explicit ends; the laws that go with them."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.state import ShardState
from streams import ConstraintsOn, Event, PatternOn, Punctuation, StreamDeclaration, StreamOn, Tick, TraceEnd
from tests.builders.shards import bodies, event, log_of, run_inline, saved_measures


def stream(**changes):
    return StreamOn(StreamDeclaration(name="orders", end_events=("End",), **changes))


def pattern(name, text):
    return PatternOn(name=name, version=1, text=f"PATTERN {name} EVENT {text}")


def tick(seconds):
    return Tick(time_us=seconds * 1_000_000, cause="events")


PAIR = pattern("pair", "SEQ(A a, U u)")
NEVER = pattern("never", "SEQ(A a, NOT X)")
SOON = pattern("soon", "SEQ(A a, NOT X) WITHIN 5 s")
TIMED = pattern("timed", "SEQ(A a, U u) WITHIN 4 s EMIT TIMEOUTS")
ONCE = pattern("once", "SEQ(A a, NEXT U u, NOT L) SELECT ONCE PER KEY")


def rows_of(*steps, shards=1):
    return run_inline(log_of(steps, shards=shards))


def alerts_of(*steps):
    return [alert["bindings"] for alert in bodies(rows_of(*steps), "alert")]


def told(rows, *, without=()):
    """What rows say, whatever their order and place in the log."""
    found = []
    for row in rows:
        body = {name: value for name, value in orjson.loads(row.body).items() if name not in without}
        found.append((row.kind, row.id if "id" not in without else "", orjson.dumps(body)))
    return sorted(found)


# --- lateness -----------------------------------------------------------------------------------------------------


def test_events_are_put_in_order_as_far_as_lateness_allows():
    batch = [event(2, "U"), event(1, "A"), event(9, "Z", "m")]
    assert alerts_of(stream(), PAIR, batch) == []
    assert alerts_of(stream(lateness=1), PAIR, batch) == [{"a": ["e1"], "u": ["e2"]}]


@pytest.mark.parametrize(
    ("late", "count", "alerts"),
    [("dead_letter", "late_dead_lettered", 0), ("drop", "late_dropped", 0), ("process", "late_processed", 1)],
)
def test_late_events_follow_the_policy_and_are_counted(late, count, alerts):
    batch = [event(10, "X", "m"), event(1, "A"), event(11, "U"), event(20, "X", "m")]
    state = ShardState(0)
    rows = state.apply(log_of([stream(lateness=2, late=late), PAIR, batch])[0])
    assert len(bodies(rows, "alert")) == alerts
    measures = state.measures()["orders"]
    assert {name: measures[name] for name in measures if name.startswith("late") and measures[name]} == {count: 1}
    assert (measures["waiting"], measures["watermark_us"]) == (1, 18_000_000)
    assert len(bodies(rows, "dead-letter")) == (late == "dead_letter")


def test_a_dead_letter_of_a_late_event_says_which_and_when():
    first, second = [event(10, "X", "m")], [event(3, "A", v=1)]
    (letter,) = bodies(rows_of(stream(lateness=2), first, second), "dead-letter")
    assert (letter["code"], letter["position"], letter["watermark"]) == (
        "late-event",
        "1-3",
        "1970-01-01T00:00:08.000000Z",
    )
    assert letter["reason"].startswith(
        "event 'e3' of 1970-01-01T00:00:03.000000Z came late: events before 1970-01-01T00:00:08.000000Z were not "
        "expected any more"
    )
    assert orjson.loads(letter["event"]) == {
        "id": "e3",
        "type": "A",
        "time": "1970-01-01T00:00:03.000000Z",
        "key": "k",
        "data": {"v": 1},
    }


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_late_event_is_shown_up_to_four_thousand_characters(beyond):
    first = [event(10, "X", "m")]
    (empty,) = bodies(rows_of(stream(lateness=2), first, [event(3, "A", v="")]), "dead-letter")
    value = "x" * (4_000 - len(empty["event"]) + beyond)
    (letter,) = bodies(rows_of(stream(lateness=2), first, [event(3, "A", v=value)]), "dead-letter")
    assert (len(letter["event"]), letter["event"].endswith("…")) == (4_000 + beyond, bool(beyond))


def test_an_event_as_old_as_the_watermark_is_not_late():
    batch = [event(10, "X", "m"), event(8, "A"), event(9, "U"), event(12, "X", "m")]
    assert alerts_of(stream(lateness=2), PAIR, batch) == [{"a": ["e8"], "u": ["e9"]}]


def test_a_pattern_sees_events_that_waited_when_it_came():
    assert alerts_of(stream(lateness=5), [event(1, "A")], PAIR, [event(2, "U"), event(9, "X")]) == [
        {"a": ["e1"], "u": ["e2"]}
    ]


# --- ticks and punctuation ----------------------------------------------------------------------------------------


def test_ticks_let_time_pass_where_no_events_come():
    steps = (stream(), SOON, TIMED, [event(1, "A")])
    assert rows_of(*steps, tick(4)) == []
    rows = rows_of(*steps, tick(6))
    (alert,), (timeout,) = bodies(rows, "alert"), bodies(rows, "timeout")
    assert (alert["detected_at"], alert["decided_by"]) == ("1970-01-01T00:00:06.000000Z", "window")
    assert timeout["due"] == "1970-01-01T00:00:05.000000Z"


def test_a_tick_is_judged_by_the_lateness_and_a_promise_is_not():
    steps = (stream(lateness=3), SOON, [event(1, "A")])
    assert alerts_of(*steps, tick(8)) == []
    assert alerts_of(*steps, tick(9)) == [{"a": ["e1"]}]
    assert alerts_of(*steps, Punctuation(before_us=6_000_000)) == [{"a": ["e1"]}]
    assert alerts_of(*steps, Punctuation(before_us=5_999_999)) == []


def test_older_and_equal_ticks_change_nothing():
    state = ShardState(0)
    log = log_of([stream(lateness=1), SOON, [event(1, "A")], tick(9), tick(9), tick(4)])[0]
    assert len(state.apply(log)) == 1
    assert state.measures()["orders"]["watermark_us"] == 8_000_000


def test_an_event_behind_a_tick_is_late():
    (letter,) = bodies(rows_of(stream(lateness=1), PAIR, tick(9), [event(7, "A"), event(8, "A")]), "dead-letter")
    assert "'e7'" in letter["reason"]


# --- ends of traces -----------------------------------------------------------------------------------------------


def test_an_idle_trace_ends_and_a_later_event_opens_another():
    steps = (stream(idle_timeout=5), PAIR, NEVER)
    rows = rows_of(*steps, [event(1, "A"), event(6, "U")])
    assert [(alert["pattern"], alert["decided_by"]) for alert in bodies(rows, "alert")] == [("never", "trace_end")]
    assert alerts_of(*steps, [event(1, "A"), event(5, "U")]) == [{"a": ["e1"], "u": ["e5"]}]


def test_waiting_events_keep_a_trace_from_being_idle():
    batch = [event(1, "A"), event(7, "X", "m"), event(5, "U"), event(20, "X", "m")]
    assert {"a": ["e1"], "u": ["e5"]} in alerts_of(stream(idle_timeout=5, lateness=2), PAIR, batch)


@pytest.mark.parametrize(
    "end",
    [TraceEnd(key="k"), Punctuation(key="k"), Punctuation(keys=("j", "k")), TraceEnd(key="k", time_us=99_000_000)],
)
def test_a_record_ends_the_trace_of_its_key(end):
    steps = (stream(), PAIR, NEVER, [event(1, "A"), event(2, "A", "m")], end, [event(3, "U"), event(4, "U", "m")])
    alerts = bodies(rows_of(*steps), "alert")
    assert [(alert["pattern"], alert["key"], alert["detected_at"]) for alert in alerts] == [
        ("never", "k", "1970-01-01T00:00:02.000000Z"),
        ("pair", "m", "1970-01-01T00:00:04.000000Z"),
    ]


def test_what_a_trace_still_owes_when_it_ends_without_an_event_is_no_deviation():
    """V7: the end event breaks the promise; a timeout, or a record, leaves the trace incomplete."""
    owes = ConstraintsOn(name="rules", version=1, document={"require": [["A", "K"]], "end": ["Fin"]})
    begin = StreamOn(StreamDeclaration(name="orders", end_events=("Fin",), idle_timeout=5))
    (deviation,) = bodies(rows_of(begin, owes, [event(1, "A"), event(2, "Fin")]), "deviation")
    assert (deviation["event"], deviation["kind"]) == ("e2", "obligation")
    assert rows_of(begin, owes, [event(1, "A"), event(2, "K"), event(3, "Fin")]) == []
    assert rows_of(begin, owes, [event(1, "A")], tick(6)) == []
    assert rows_of(begin, owes, [event(1, "A")], TraceEnd(key="k"), [event(2, "Fin")], tick(9)) == rows_of(
        begin, owes, [event(2, "Fin")], tick(9)
    )


def test_unknown_types_that_deviate_do_not_make_the_end_of_a_trace_one():
    document = {"prior": [["A", "B"]], "settings": {"unknown_types": "deviate", "types": ["End"]}}
    rules = ConstraintsOn(name="rules", version=1, document=document)
    assert rows_of(stream(idle_timeout=5), rules, [event(1, "A")], tick(30), TraceEnd(key="k")) == []


def test_traces_beyond_the_cap_of_monitor_states_end_as_well():
    document = {"prior": [["A", "L"], ["U", "X"]], "settings": {"max_monitor_states": 1}}
    rules = ConstraintsOn(name="rules", version=1, document=document)
    batch = [event(1, "A"), event(2, "U"), event(3, "A", "m")]
    rows = rows_of(stream(idle_timeout=5), rules, NEVER, batch, tick(30), [event(40, "A")], tick(90))
    assert sorted((alert["key"], alert["bindings"]["a"]) for alert in bodies(rows, "alert")) == [
        ("k", ["e1"]),
        ("k", ["e40"]),
        ("m", ["e3"]),
    ]
    assert bodies(rows, "deviation") == []


# --- laws ---------------------------------------------------------------------------------------------------------

RULES = ConstraintsOn(name="rules", version=1, document={"prior": [["X", "L"]], "exclusive": [["L", "U"]]})
happenings = st.lists(
    st.tuples(st.sampled_from(["A", "U", "L", "X", "End"]), st.sampled_from("kmn"), st.integers(0, 3)),
    min_size=1,
    max_size=25,
)
patterns = st.lists(
    st.sampled_from([PAIR, NEVER, SOON, TIMED, ONCE]), min_size=1, max_size=3, unique_by=lambda p: p.name
)


def timed(drawn, *, least=0):
    events, seconds = [], 0
    for number, (event_type, key, pause) in enumerate(drawn, start=1):
        seconds += max(pause, least)
        events.append(Event(id=f"e{number}", type=event_type, time_us=seconds * 1_000_000, key=key, data={}))
    return events


@st.composite
def shuffled(draw, events, lateness):
    """An order in which no event comes more than the lateness behind the newest before it."""
    left, order, newest = list(events), [], -(10**12)
    while left:
        must = [one for one in left if one.time_us < newest - lateness * 1_000_000]
        assert not must
        oldest = min(one.time_us for one in left)
        may = [one for one in left if one.time_us - lateness * 1_000_000 <= oldest]
        one = draw(st.sampled_from(may))
        left.remove(one)
        order.append(one)
        newest = max(newest, one.time_us)
    return order


@given(patterns, happenings, st.integers(0, 6), st.booleans(), st.booleans(), st.data())
@settings(max_examples=120, deadline=None)
def test_any_order_within_the_lateness_is_the_order_of_time(chosen, drawn, lateness, has_rules, ends_idle, data):
    events = timed(drawn, least=1)
    rules = [RULES] if has_rules else []
    idle = {"idle_timeout": 4} if ends_idle else {}
    order = data.draw(shuffled(events, lateness))
    sorted_rows = rows_of(stream(**idle), *rules, *chosen, events, tick(200))
    found = rows_of(stream(lateness=lateness, **idle), *rules, *chosen, order, tick(200 + lateness))
    assert told(found) == told(sorted_rows)


@st.composite
def disordered_logs(draw):
    events = timed(draw(happenings))
    for number in draw(st.lists(st.integers(0, len(events) - 1), max_size=8)):
        events[number] = replace(events[number], time_us=draw(st.integers(0, 40)) * 1_000_000)
    late = draw(st.sampled_from(["dead_letter", "drop", "process"]))
    has_lateness = draw(st.booleans())
    declared = stream(
        lateness=draw(st.integers(0, 6)) if has_lateness else None,
        late=late if has_lateness else "dead_letter",
        idle_timeout=draw(st.sampled_from([None, 3, 8])),
    )
    steps = [declared, *([RULES] if draw(st.booleans()) else []), *draw(patterns)]
    while events:
        size = draw(st.integers(1, 5))
        steps.append(events[:size])
        events = events[size:]
        if draw(st.integers(0, 3)) == 0:
            control = st.sampled_from([tick(10), tick(25), TraceEnd(key="k"), Punctuation(before_us=12_000_000)])
            steps.append(draw(control))
    return log_of(steps)[0], has_lateness


@given(disordered_logs(), st.data())
@settings(max_examples=150, deadline=None)
def test_cuts_and_reloads_change_nothing(drawn, data):
    log, _ = drawn
    whole, state = ShardState(0), ShardState(0)
    expected, rows, done = whole.apply(log), [], 0
    while done < len(log):
        end = data.draw(st.integers(done + 1, len(log)))
        rows += state.apply(log[data.draw(st.integers(0, done)) : end])
        if data.draw(st.booleans()):
            state = ShardState.load(state.dump())
        done = end
    assert told(rows) == told(expected)
    assert saved_measures(state) == saved_measures(whole)


@given(patterns, happenings, st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_any_number_of_shards_tells_the_same(chosen, drawn, ends_idle, data):
    events = data.draw(shuffled(timed(drawn), 3))
    steps = [stream(lateness=3, **({"idle_timeout": 4} if ends_idle else {})), *chosen, events, tick(200)]
    one, many = (told(rows_of(*steps, shards=shards)) for shards in (1, 4))
    assert one == many
