"""What constraints do to the rows of a stream: endings, deviations, early alerts and corrections."""

from collections import Counter
from dataclasses import replace

from shards.state import ShardState
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, bodies, event, log_of, run_inline

STREAM = StreamOn(StreamDeclaration(name="orders", end_events=("End",)))
PAIR = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u [x > 3])")
EITHER = ConstraintsOn(name="rules", version=1, document={"exclusive": [["L", "U"]]})


def rows_of(*steps):
    return run_inline(log_of(steps))


def test_an_ending_names_event_constraints_and_atom():
    rows = rows_of(STREAM, EITHER, PAIR, [event(1, "A"), event(2, "L")])
    (ending,) = bodies(rows, "ending")
    assert {name: value for name, value in ending.items() if name != "reason"} == {
        "id": rows[0].id,
        "stream": "orders",
        "pattern": "pair",
        "version": 1,
        "key": "k",
        "event": "e2",
        "event_type": "L",
        "time": "1970-01-01T00:00:02.000000Z",
        "form": "p2",
        "constraints": ["exclusive(L, U)"],
        "atom": "U u [x > 3]",
    }
    assert "exclusive(L, U)" in ending["reason"]
    assert "U u [x > 3]" in ending["reason"]


def test_of_many_endings_the_newest_are_told_and_the_others_counted_by_their_reasons():
    also = PatternOn(name="also", version=3, text="PATTERN also EVENT SEQ(A a, U u)")
    events = [event(n, kind, key) for n, (key, kind) in enumerate([(k, t) for k in "klmno" for t in "AL"], 1)]
    steps = log_of([STREAM, EITHER, PAIR, also, events])
    endings = bodies(run_inline(steps), "ending")
    state = ShardState(0)
    state.limit_endings(3)
    rows = run_inline(steps, {0: state})
    assert len(endings) == 10
    assert bodies(rows, "ending") == endings[-3:]
    counts = bodies(rows, "ending-count")
    assert {(one["pattern"], one["version"], one["form"], one["atom"]): one["count"] for one in counts} == Counter(
        (one["pattern"], one["version"], one["form"], one["atom"]) for one in endings[:-3]
    )
    assert [row.id for row in rows if row.kind == "ending-count"] == [one["id"] for one in counts]
    assert len({row.id for row in rows}) == len(rows)


def test_a_deviation_names_the_event_that_no_conforming_trace_has():
    rows = rows_of(STREAM, EITHER, PAIR, [event(1, "A"), event(2, "L"), event(3, "U", x=1)])
    (deviation,) = bodies(rows, "deviation")
    assert {name: value for name, value in deviation.items() if name != "reason"} == {
        "type": "deviation",
        "id": rows[-1].id,
        "stream": "orders",
        "key": "k",
        "event": "e3",
        "event_type": "U",
        "time": "1970-01-01T00:00:03.000000Z",
        "version": 1,
        "kind": "occurrence",
        "constraints": ["exclusive(L, U)"],
        "symbols": [],
        "allowed": [],
        "released": 1,
    }
    assert "exclusive(L, U)" in deviation["reason"]
    assert "U came, after L" in deviation["reason"]


def test_a_deviation_names_the_conditions_that_its_event_meets():
    rules = ConstraintsOn(name="rules", version=1, document={"prior": [["Q [v > 9]", "Approve"]]})
    rows = rows_of(STREAM, rules, PAIR, [event(1, "Approve"), event(2, "Q", v=5), event(3, "Q", v=10)])
    (deviation,) = bodies(rows, "deviation")
    assert (deviation["event"], deviation["kind"], deviation["symbols"]) == ("e3", "order", ["Q [v > 9]"])


def test_an_event_that_nobody_names_deviates_under_its_own_name():
    document = {"prior": [["A", "B"]], "settings": {"unknown_types": "deviate", "types": ["End"]}}
    rows = rows_of(STREAM, ConstraintsOn(name="rules", version=1, document=document), [event(1, "Odd")])
    (deviation,) = bodies(rows, "deviation")
    assert (deviation["kind"], deviation["event_type"], deviation["constraints"]) == ("unknown_type", "Odd", [])
    assert deviation["reason"] == "Odd is not an event of the process"


def test_alerts_of_a_trace_that_deviated_say_so():
    rows = rows_of(STREAM, EITHER, PAIR, [event(1, "L"), event(2, "U", x=1), event(3, "A"), event(4, "U", x=5)])
    (alert,) = bodies(rows, "alert")
    assert (alert["bindings"], alert["deviating"]) == ({"a": ["e3"], "u": ["e4"]}, True)


def test_in_shadow_mode_alerts_that_pruning_would_have_lost_say_so():
    document = {**EITHER.document, "settings": {"prune": "shadow"}}
    shadow = ConstraintsOn(name="rules", version=1, document=document)
    batch = [event(1, "A"), event(2, "L"), event(3, "U", x=5)]
    assert bodies(rows_of(STREAM, EITHER, PAIR, batch), "alert") == []
    (alert,) = bodies(rows_of(STREAM, shadow, PAIR, batch), "alert")
    assert (alert["bindings"], alert["would_be_lost"]) == ({"a": ["e1"], "u": ["e3"]}, True)


def test_state_can_be_loaded_when_no_trace_follows_the_constraints_that_were_watched_before():
    shadow = ConstraintsOn(name="rules", version=1, document={**EITHER.document, "settings": {"prune": "shadow"}})
    later = ConstraintsOn(name="rules", version=2, document={"prior": [["A", "U"]]})
    steps: list[Step] = [STREAM, shadow, PAIR, [event(1, "A"), event(2, "L")], later, [event(3, "End")]]
    state = ShardState(0)
    state.apply(log_of(steps)[0])
    body = state.dump()
    assert ShardState.load(body).dump() == body


NEVER = PatternOn(name="never", version=1, text="PATTERN never EVENT SEQ(A a, NOT X)")
PAST = ConstraintsOn(name="rules", version=3, document={"prior": [["X", "Z"]]})


def test_an_alert_that_constraints_decide_early_is_the_same_alert():
    batch = [event(1, "A"), event(3, "Z"), event(50, "End")]
    early, late = (rows_of(STREAM, *rules, NEVER, batch) for rules in ([PAST], []))
    (decided,), (waited,) = bodies(early, "alert"), bodies(late, "alert")
    assert (decided["detected_at"], decided["decided_by"]) == ("1970-01-01T00:00:03.000000Z", "constraint")
    assert (waited["detected_at"], waited["decided_by"]) == ("1970-01-01T00:00:50.000000Z", "trace_end")
    assert decided["id"] == waited["id"]


def test_a_match_that_waits_ends_when_what_must_not_come_has_to():
    rules = ConstraintsOn(name="rules", version=1, document={"require": [["R", "X"]], "prior": [["A", "R"]]})
    (ending,) = bodies(rows_of(STREAM, rules, NEVER, [event(1, "A"), event(2, "R")]), "ending")
    assert (ending["event"], ending["atom"], ending["constraints"]) == ("e2", "NOT X", ["require(R, X)"])
    assert "X" in ending["reason"]


def test_a_correction_takes_an_early_alert_back():
    rows = rows_of(STREAM, PAST, NEVER, [event(1, "A"), event(3, "Z")], [event(5, "X")])
    (alert,), (deviation,), (correction,) = (bodies(rows, kind) for kind in ("alert", "deviation", "correction"))
    assert (deviation["event"], deviation["kind"]) == ("e5", "order")
    assert correction["reason"].startswith("X must not follow")
    assert {name: value for name, value in correction.items() if name != "reason"} == {
        "type": "correction",
        "id": rows[-1].id,
        "stream": "orders",
        "pattern": "never",
        "version": 1,
        "key": "k",
        "alert": alert["id"],
        "bindings": {"a": ["e1"]},
        "event": "e5",
        "event_type": "X",
        "time": "1970-01-01T00:00:05.000000Z",
    }
    assert [row.kind for row in rows][-1] == "correction"


def test_constraints_do_not_end_a_pattern_that_is_not_guarded():
    free = replace(PAIR, is_guarded=False)
    batch = [event(1, "A"), event(2, "L"), event(3, "U", x=5)]
    rows = rows_of(STREAM, EITHER, free, batch)
    assert [row.kind for row in rows] == ["alert", "deviation"]
    back = replace(PAIR, version=2)
    assert [row.kind for row in rows_of(STREAM, EITHER, free, back, batch)] == ["ending", "deviation"]


def test_whether_a_pattern_is_guarded_is_kept_with_the_state():
    log = log_of([STREAM, EITHER, replace(PAIR, is_guarded=False), [event(1, "A")], [event(2, "L")]])[0]
    state = ShardState(0)
    state.apply(log[:-1])
    assert ShardState.load(state.dump()).apply(log) == []
