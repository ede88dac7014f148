"""The library engine over events, as ``forestall match`` reports it."""

from __future__ import annotations

import orjson
import pytest

from constraints import parse_constraints
from nfa import Prune, parse_patterns
from service.errors import ProjectRefused
from service.runs.stream_report import LISTS
from service.runs.stream_run import StreamRun, stream_plan
from streams import LATEST_US, AutoLateness, Event, EventBatch, Late, StreamDeclaration
from tests.references.patterns.outcome import reference_matches
from tests.references.runs import match_document, match_documents
from tests.service.runs.reports import report_on, shown
from workflows import (
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    derive_constraints,
    generate_events,
    order_fulfilment,
)

PATTERNS = parse_patterns(
    """
    PATTERN EP1 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
                              SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)
    PATTERN Q1 EVENT SEQ(CheckInventory c, UseRemoteStock u, GenerateInvoice i [price > 200])
    PATTERN Q3 EVENT SEQ(OR(SEQ(OrderFromSupplier o, GenerateQuote q [price > 200]),
                            SEQ(UseRemoteStock u, GenerateInvoice i)), FinishOrder f)
    """
)


def trace(types: str) -> list[Event]:
    return [Event(id=f"e{n}", type=name, time_us=n, key="k", data={"v": n}) for n, name in enumerate(types, 1)]


def test_the_order_workload_matches_as_the_reference_says_with_and_without_pruning() -> None:
    orders = OrderSettings(cancel=0.3)
    workload = OrderWorkload(orders=orders, stream=SimulationSettings(traces=400, concurrent=100))
    events = list(generate_events(workload, 7))
    constraint_set = derive_constraints(order_fulfilment())
    pruned = report_on(PATTERNS, events, constraint_set)
    unpruned = report_on(PATTERNS, events, constraint_set, prune=Prune.OFF)
    assert pruned.matches == unpruned.matches
    expected = reference_matches(PATTERNS, events, constraint_set.end_events)
    assert pruned.matches == match_documents(pruned) == list(map(match_document, expected))
    assert {match["pattern"] for match in pruned.matches} == {"EP1", "Q1", "Q3"}
    assert unpruned.bodies("endings") == []
    assert pruned.bodies("deviations") == []
    assert pruned.stats.peak_held < 0.8 * unpruned.stats.peak_held
    ended = [(one["pattern"], one["key"]) for one in pruned.bodies("endings")]
    assert sorted(ended) == sorted({(pattern.name, event.key) for pattern in PATTERNS for event in events})


def test_the_document_is_the_contract() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, OR(B b, C c))")
    constraint_set = parse_constraints(["exclusive(A, X)"]).constraint_set
    document = shown(report_on(patterns, trace("ACBX"), constraint_set))
    assert orjson.loads(orjson.dumps(document)) == document
    assert document["matches"] == [
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"], "c": ["e2"]},
            "start": "1970-01-01T00:00:00.000001Z",
            "end": "1970-01-01T00:00:00.000002Z",
            "detected_at": "1970-01-01T00:00:00.000002Z",
        },
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"], "b": ["e3"]},
            "start": "1970-01-01T00:00:00.000001Z",
            "end": "1970-01-01T00:00:00.000003Z",
            "detected_at": "1970-01-01T00:00:00.000003Z",
        },
    ]
    (deviation,) = document["deviations"]
    assert (deviation["key"], deviation["event"], deviation["event_type"], deviation["kind"]) == (
        "k",
        "e4",
        "X",
        "occurrence",
    )
    assert deviation["constraints"] == ["exclusive(A, X)"]
    assert document["stats"]["events"] == 4
    lists = {"matches", "timeouts", "endings", "ended", "deviations", "corrections"}
    assert set(document) == lists | {"overflow", "stats"}


def test_endings_carry_event_and_reason() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    constraint_set = parse_constraints(["exclusive(L, U)"]).constraint_set
    report = report_on(patterns, trace("AAL"), constraint_set)
    assert shown(report)["endings"] == [
        {
            "pattern": "p",
            "key": "k",
            "event": "e3",
            "reason": "L ends it: exclusive(L, U) means that U u can no longer come",
        }
    ]


def test_the_document_of_constraints_says_how_to_prune_unless_the_call_does() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    parsed = parse_constraints({"exclusive": [["L", "U"]], "settings": {"prune": "shadow"}}).constraint_set
    events = trace("ALUAU")
    shadow, state, off = (report_on(patterns, events, parsed, prune=prune) for prune in (None, Prune.STATE, Prune.OFF))
    remarks = [(one["bindings"]["a"], "would_be_lost" in one, "deviating" in one) for one in shadow.matches]
    assert remarks == [(["e1"], True, True), (["e1"], True, True), (["e4"], False, True)]
    assert shadow.stats.shadow_lost == 2
    assert [match["bindings"]["a"] for match in state.matches] == [["e4"]]
    assert [one["bindings"] for one in off.matches] == [one["bindings"] for one in shadow.matches]
    deviations = [report.bodies("deviations") for report in (shadow, state, off)]
    assert [[one["event"] for one in some] for some in deviations] == [["e3"]] * 3
    assert [some[0]["released"] for some in deviations[1:]] == [1, 0]
    listed = shown(shadow)["matches"][0]
    assert (listed["would_be_lost"], listed["deviating"]) == (True, True)
    assert "would_be_lost" not in shown(state)["matches"][0]


def test_violations_that_are_ignored_are_counted() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    document = {"exclusive": [["L", "U"]], "settings": {"on_violation": "ignore"}}
    report = report_on(patterns, trace("ALUAU"), parse_constraints(document).constraint_set)
    assert (report.matches, report.bodies("deviations")) == ([], [])
    assert report.stats.ignored_violations == 2


def test_what_constraints_decided_early_is_taken_back_when_they_are_broken() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, NOT X)")
    constraint_set = parse_constraints(["prior(X, Z)"]).constraint_set
    document = shown(report_on(patterns, trace("AZX"), constraint_set))
    (match,) = document["matches"]
    assert (match["decided_by"], match["detected_at"]) == ("constraint", "1970-01-01T00:00:00.000002Z")
    assert document["corrections"] == [
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"]},
            "event": "e3",
            "event_type": "X",
            "time": "1970-01-01T00:00:00.000003Z",
        }
    ]
    assert [found["kind"] for found in document["deviations"]] == ["order"]
    assert document["stats"]["corrections"] == 1


def test_events_of_one_time_are_not_held_against_an_unordered_stream() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    constraint_set = parse_constraints(["prior(A, L)"]).constraint_set
    events = [
        Event(id=f"e{n}", type=name, time_us=time, key="k") for n, (name, time) in enumerate([("L", 1), ("A", 1)])
    ]
    ordered, unordered = (report_on(patterns, events, constraint_set, ties=ties) for ties in ("log", "simultaneous"))
    assert [one["kind"] for one in ordered.bodies("deviations")] == ["order"]
    assert unordered.bodies("deviations") == []


def test_matches_are_sorted_by_end_start_and_bindings() -> None:
    patterns = parse_patterns("PATTERN p EVENT AND(A x, A y)")
    found = [match["bindings"] for match in report_on(patterns, trace("AAA")).matches]
    assert found == [
        {"x": ["e1"], "y": ["e2"]},
        {"x": ["e2"], "y": ["e1"]},
        {"x": ["e1"], "y": ["e3"]},
        {"x": ["e3"], "y": ["e1"]},
        {"x": ["e2"], "y": ["e3"]},
        {"x": ["e3"], "y": ["e2"]},
    ]


def test_progress_ends_at_the_number_of_events() -> None:
    told: list[int] = []
    run = StreamRun(stream_plan(StreamDeclaration(name="file"), None, ()))
    run.feed(EventBatch.from_events(trace("ABA")), told.append)
    assert told == [3]


def test_columns_of_return_are_there_for_patterns_that_have_them() -> None:
    patterns = parse_patterns(
        "PATTERN p EVENT SEQ(A a, B+ b) RETURN a.v, count(b) AS n, sum(b.v) AS total PATTERN q EVENT SEQ(A a, B b)"
    )
    document = shown(report_on(patterns, trace("ABB")))
    found = [match.get("returns") for match in document["matches"] if match["pattern"] == "p"]
    assert found == [
        {"a.v": 1, "n": 1, "total": 2.0},
        {"a.v": 1, "n": 2, "total": 5.0},
        {"a.v": 1, "n": 1, "total": 3.0},
    ]
    assert all("returns" not in match for match in document["matches"] if match["pattern"] == "q")


def test_timeouts_tell_what_is_missing() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B b, C c) WITHIN 5 us EMIT TIMEOUTS")
    document = shown(report_on(patterns, trace("ABXXXXX"), lists=["timeouts"]))
    assert document["timeouts"] == [
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"], "b": ["e2"]},
            "missing": ["c"],
            "start": "1970-01-01T00:00:00.000001Z",
            "due": "1970-01-01T00:00:00.000006Z",
        }
    ]


def test_what_is_not_asked_for_is_counted_and_not_listed() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u) WITHIN 5 us EMIT TIMEOUTS")
    constraint_set = parse_constraints(["exclusive(L, U)"]).constraint_set
    events = [*trace("AU"), *(Event(id=f"m{n}", type=name, time_us=n, key="m") for n, name in enumerate("AL", 3))]
    whole, nothing = (report_on(patterns, events, constraint_set, lists=sections) for sections in (LISTS, ()))
    assert (len(whole.matches), len(whole.bodies("endings"))) == (1, 1)
    assert (nothing.matches, nothing.bodies("timeouts"), nothing.bodies("endings")) == ([], [], [])
    assert whole.stats == nothing.stats


def test_deviations_that_are_not_asked_for_are_counted_and_not_explained() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    constraint_set = parse_constraints(["exclusive(L, U)"]).constraint_set
    whole, nothing = (report_on(patterns, trace("LU"), constraint_set, lists=lists) for lists in (LISTS, ()))
    assert (len(whole.bodies("deviations")), nothing.bodies("deviations")) == (1, [])
    assert whole.stats.deviations == nothing.stats.deviations == 1


def test_what_is_beyond_a_limit_is_counted_once_per_event() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B b) LIMIT 2")
    document = shown(report_on(patterns, trace("AAAB")))
    assert len(document["matches"]) == 2
    (overflow,) = document["overflow"]
    assert (overflow["pattern"], overflow["dropped"], overflow["runs"]) == ("p", 1, 0)
    assert {"key", "event", "time"} < set(overflow)
    assert document["stats"]["overflow"] == 1


def test_an_open_input_leaves_undecided_what_is_to_come() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, NOT B) WITHIN 3 us")
    whole, beginning = (report_on(patterns, trace("AXXXA"), is_open=is_open) for is_open in (False, True))
    assert [match["bindings"]["a"] for match in whole.matches] == [["e1"], ["e5"]]
    found = [(match["bindings"]["a"], match["detected_at"]) for match in beginning.matches]
    assert found == [(["e1"], "1970-01-01T00:00:00.000004Z")]


def test_equal_times_are_ordered_by_the_log_or_not_at_all() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B b)")
    events = [Event(id=f"e{n}", type=name, time_us=7, key="k") for n, name in enumerate("AB", 1)]
    ordered, unordered = (report_on(patterns, events, ties=ties) for ties in ("log", "simultaneous"))
    assert [match["bindings"] for match in ordered.matches] == [{"a": ["e1"], "b": ["e2"]}]
    assert unordered.matches == []


def test_finer_keys_cut_traces_apart() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B b) WHERE [order, w]")
    rows = [("A", 1), ("A", 2), ("B", 2), ("B", None)]
    events = [Event(id=f"e{n}", type=name, time_us=n, key="k", data={"w": w}) for n, (name, w) in enumerate(rows, 1)]
    found = report_on(patterns, events, key="data.order").matches
    assert [match["bindings"] for match in found] == [{"a": ["e2"], "b": ["e3"]}]


def test_an_alternative_that_was_impossible_before_does_not_explain_an_ending() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A|B x, C c)")
    constraint_set = parse_constraints(["exclusive(A, C)", "exclusive(D, C)"]).constraint_set
    (row,) = report_on(patterns, trace("XD"), constraint_set).bodies("endings")
    assert (row["event"], row["reason"]) == (
        "e2",
        "D ends it: exclusive(C, D) means that C c can no longer come",
    )


def test_a_pattern_that_needs_nothing_is_never_ended() -> None:
    patterns = parse_patterns("PATTERN p EVENT A* a PATTERN q EVENT SEQ(_ x, A? a)")
    constraint_set = parse_constraints(["exclusive(A, B)"]).constraint_set
    report = report_on(patterns, trace("BC"), constraint_set)
    assert report.bodies("endings") == []
    assert [match["pattern"] for match in report.matches] == ["q", "q"]


def out_of_order(text):
    """Events ``A3``: type and second, in the order in which they come; one key, but that of Z."""
    return [
        Event(id=one, type=one[0], time_us=int(one[1:]) * 1_000_000, key="z" if one[0] == "Z" else "k", data={})
        for one in text.split()
    ]


@pytest.mark.parametrize(
    ("options", "matches", "late"),
    [
        ({}, 0, None),
        ({"lateness": 2}, 1, 0),
        ({"lateness": 1}, 1, 0),
        ({"lateness": 0}, 0, 1),
        ({"lateness": 0, "late": "drop"}, 0, 1),
    ],
)
def test_events_are_put_in_order_as_far_as_lateness_allows(options, matches, late):
    report = report_on(parse_patterns("PATTERN p EVENT SEQ(A a, B b)"), out_of_order("B2 A1 Z9"), **options)
    assert (len(report.matches), report.late, shown(report).get("late")) == (matches, late, late)


def test_late_events_may_be_matched_at_once():
    events = out_of_order("Z9 A1 B12 Z30")
    expected: list[tuple[Late, int]] = [("process", 1), ("drop", 0)]
    for late, matches in expected:
        report = report_on(parse_patterns("PATTERN p EVENT SEQ(A a, B b)"), events, lateness=1, late=late)
        assert (len(report.matches), report.late) == (matches, 1)


def test_idle_traces_end():
    events = out_of_order("A1 B7 Z30")
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B b)\nPATTERN n EVENT SEQ(A a, NOT B)")
    report = report_on(patterns, events, idle_timeout=5, is_open=True)
    found = [(match["pattern"], match["detected_at"]) for match in report.matches]
    assert found == [("n", "1970-01-01T00:00:06.000000Z")]


def test_a_measured_lateness_is_decided_as_in_a_project() -> None:
    events = out_of_order(" ".join(f"B{second + 3} A{second}" for second in range(0, 4_000, 4)))
    report = report_on(parse_patterns("PATTERN p EVENT SEQ(A a, B b) WITHIN 4 s"), events, lateness=AutoLateness())
    assert (len(report.matches), report.late) == (1_000, 0)
    assert report.lateness is not None
    assert shown(report)["lateness"] == {"seconds": report.lateness.seconds, "changes": 0, "late": 0}


def test_events_that_cannot_be_matched_are_refused() -> None:
    run = StreamRun(stream_plan(StreamDeclaration(name="file"), None, ()))
    run.feed(EventBatch.from_events([Event(id="e", type="A", time_us=LATEST_US + 1, key="k")]))
    with pytest.raises(ProjectRefused):
        run.report(is_open=False)
