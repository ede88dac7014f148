"""The end of a model closes the monitor of a trace; only end events of the stream end the transaction."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from constraints import ConstraintSet, parse_constraints, to_document
from nfa import Prune, awaited_types, parse_pattern, parse_patterns
from service.registering.joining import Derived
from service.runs.stream_report import StreamReport
from service.stores import FollowMode
from shards.state import ShardState
from streams import ConstraintsOn, Event, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import bodies, log_of, run_inline
from tests.references.patterns.outcome import reference_matches
from tests.service.runs.reports import report_on
from workflows import Conformance, check_trace, compile_workflow, count_violations, read_model

MODEL = compile_workflow(read_model(b"name: m\ntree:\n  sequence: [A, B]\n"))
TEXT = "PATTERN p EVENT SEQ(A a, X x)"
STREAM = StreamOn(StreamDeclaration(name="orders", key="key"))
CLOSING = {"end": ["B"]}
REOPENING = {"end": ["B"], "settings": {"reopen": "new_transaction"}}


def followed(mode: FollowMode) -> ConstraintSet:
    """What a stream without constraints of its own keeps to, where it follows the model."""
    return Derived.of(MODEL, "m").joined_to(ConstraintSet(), mode)


def trace(types: str, key: str = "k") -> list[Event]:
    return [Event(id=f"e{n}", type=name, time_us=n, key=key) for n, name in enumerate(types.split(), 1)]


def tried(types: str, constraint_set: ConstraintSet, prune: Prune | None = None, *end_events: str) -> StreamReport:
    patterns = parse_patterns(TEXT)
    return report_on(patterns, trace(types), constraint_set, prune=prune, is_open=True, end_events=end_events)


def deviations_of(report: StreamReport) -> list[tuple[str, str]]:
    return [(one["event"], one["kind"]) for one in report.bodies("deviations")]


@pytest.mark.parametrize("mode", ["exact", "tables"])
@pytest.mark.parametrize("prune", [Prune.OFF, Prune.SHADOW])
def test_a_match_across_the_end_is_found_where_nothing_is_pruned(mode: FollowMode, prune: Prune) -> None:
    report = tried("A B B X", followed(mode), prune)
    assert [(one["bindings"], one["deviating"]) for one in report.matches] == [({"a": ["e1"], "x": ["e4"]}, True)]
    assert deviations_of(report) == [("e3", "after_end")]


def with_bit_tables(constraint_set: ConstraintSet) -> ConstraintSet:
    return replace(constraint_set, settings=replace(constraint_set.settings, max_monitor_states=1))


@pytest.mark.parametrize("mode", ["exact", "tables", "bits"])
@pytest.mark.parametrize("prune", [*Prune])
def test_a_type_that_the_model_does_not_know_ends_nothing(mode: str, prune: Prune) -> None:
    rules = (
        with_bit_tables(followed("tables")) if mode == "bits" else followed("exact" if mode == "exact" else "tables")
    )
    report = tried("X A X B X", rules, prune)
    assert [one["bindings"]["x"] for one in report.matches] == [["e3"], ["e5"]]
    assert (deviations_of(report), report.bodies("endings")) == ([], [])
    assert deviations_of(tried("X A X B X A X", rules, prune)) == [("e6", "after_end")]


@pytest.mark.parametrize("mode", ["exact", "tables"])
def test_unknown_types_deviate_where_the_settings_say_so(mode: FollowMode) -> None:
    own = parse_constraints({"constraints": [], "settings": {"unknown_types": "deviate"}}).constraint_set
    report = tried("A B X", Derived.of(MODEL, "m").joined_to(own, mode))
    assert [one["event"] for one in report.bodies("deviations")] == ["e3"]


def test_the_end_of_a_workflow_decides_a_not_of_the_types_that_it_knows() -> None:
    rules = followed("tables")
    assert rules.decides_absences("log", awaited_types(parse_pattern("PATTERN p EVENT SEQ(A a, NOT B)")))
    assert not rules.decides_absences("log", awaited_types(parse_pattern("PATTERN p EVENT SEQ(A a, NOT X)")))
    by_hand = parse_constraints(CLOSING).constraint_set
    assert by_hand.decides_absences("log", awaited_types(parse_pattern("PATTERN p EVENT SEQ(A a, NOT X)")))


@pytest.mark.parametrize("mode", ["exact", "tables"])
def test_pruning_says_at_the_deviation_what_it_let_go_at_the_end(mode: FollowMode) -> None:
    (pattern,) = parse_patterns("PATTERN p EVENT SEQ(A a, B b)")
    report = report_on([pattern], trace("A B B"), followed(mode), is_open=True)
    assert [one["bindings"]["b"] for one in report.matches] == [["e2"]]
    assert [one["event"] for one in report.bodies("endings")] == ["e2"]
    assert deviations_of(report) == [("e3", "after_end")]
    assert report.bodies("deviations")[0]["released"] == 1


@pytest.mark.parametrize("mode", ["exact", "tables"])
def test_what_follows_the_end_is_matched_unpruned(mode: FollowMode) -> None:
    report = tried("A B A B X", followed(mode))
    assert sorted(one["bindings"]["a"] for one in report.matches) == [["e1"], ["e3"]]
    assert deviations_of(report) == [("e3", "after_end")]


@pytest.mark.parametrize("mode", ["exact", "tables"])
@pytest.mark.parametrize("types", ["A B A", "A B B"])
def test_deviation_and_conformance_say_the_same(mode: FollowMode, types: str) -> None:
    report = tried(types, followed(mode))
    assert deviations_of(report) == [("e3", "after_end")]
    assert report.bodies("deviations")[0]["allowed"] == []
    assert "the trace was over" in report.bodies("deviations")[0]["reason"]
    found: Conformance = check_trace(MODEL, types.split())
    assert (found.at, found.kind, found.allowed) == (2, "after_end", ())


def test_an_end_event_that_the_stream_declares_ends_the_transaction() -> None:
    report = tried("A B A X", followed("exact"), None, "B")
    assert deviations_of(report) == []
    assert [one["bindings"] for one in report.matches] == [{"a": ["e3"], "x": ["e4"]}]


def test_reopen_ends_the_transaction_as_the_stream_does() -> None:
    document = to_document(parse_constraints(REOPENING).constraint_set)
    assert document["settings"] == {"reopen": "new_transaction"}
    assert "settings" not in to_document(parse_constraints(CLOSING).constraint_set)
    report = tried("A B X A B A X", parse_constraints(document).constraint_set, Prune.OFF)
    assert deviations_of(report) == []
    assert [one["bindings"] for one in report.matches] == [{"a": ["e6"], "x": ["e7"]}]


def test_a_constraint_alone_is_counted_in_a_log_as_it_is_matched() -> None:
    rules = parse_constraints({"end": ["A"]}).constraint_set
    (count,) = count_violations(rules, [["A", "B"]]).values()
    assert count == len(tried("A B", rules).bodies("deviations")) == 1


@pytest.mark.parametrize("document", [CLOSING, REOPENING])
@pytest.mark.parametrize("prune", [Prune.OFF, Prune.SHADOW, Prune.STATE])
@pytest.mark.parametrize("seed", range(10))
def test_random_traces_match_as_the_reference_says_and_as_the_pipeline_does(
    document: object, prune: Prune, seed: int
) -> None:
    random = Random(seed)
    events = [Event(id=f"e{n}", type=random.choice("ABXC"), time_us=n, key=random.choice("kl")) for n in range(1, 25)]
    rules = parse_constraints(document).constraint_set
    rules = replace(rules, settings=replace(rules.settings, prune=prune))
    patterns = parse_patterns(TEXT)
    report = report_on(patterns, events, rules, is_open=True)
    if prune is not Prune.STATE:
        expected = reference_matches(patterns, events, rules.trace_ends)
        bound = [(one.key, {alias: list(ids) for alias, ids in one.bindings.items()}) for one in expected]
        assert [(one["key"], one["bindings"]) for one in report.matches] == bound
    control = (STREAM, _following(rules), PatternOn(name="p", version=1, text=TEXT))
    rows = run_inline(log_of((*control, events[:7], events[7:])))
    assert _bound(bodies(rows, "alert")) == sorted(
        tuple(one["bindings"]["a"] + one["bindings"]["x"]) for one in report.matches
    )
    told = sorted((one["key"], one["event"], one["kind"]) for one in bodies(rows, "deviation"))
    assert told == sorted((one["key"], one["event"], one["kind"]) for one in report.bodies("deviations"))
    assert told == _expected_deviations(events, rules)


def _expected_deviations(events: list[Event], rules: ConstraintSet) -> list[tuple[str, str, str]]:
    """The first event after an end event, per key; none where end events end the transaction."""
    over: set[str] = set()
    found: dict[str, str] = {}
    for event in events:
        if event.key in over and not rules.trace_ends:
            found.setdefault(event.key, event.id)
        if event.type in rules.end_events:
            over.add(event.key)
    return sorted((key, event, "after_end") for key, event in found.items())


def _following(rules: ConstraintSet) -> ConstraintsOn:
    return ConstraintsOn(name="orders", version=1, document=to_document(rules))


def _bound(alerts: object) -> list[tuple[str, ...]]:
    return sorted(tuple(one["bindings"]["a"] + one["bindings"]["x"]) for one in alerts)  # type: ignore[attr-defined]


@pytest.mark.parametrize("cut", range(1, 6))
def test_saved_state_keeps_what_ends_a_transaction(cut: int) -> None:
    rules = parse_constraints(REOPENING).constraint_set
    control = (STREAM, _following(rules), PatternOn(name="p", version=1, text=TEXT))
    (log,) = log_of((*control, trace("A B"), trace("A X")[:1], trace("A B X")[2:])).values()
    state = ShardState(0)
    found = list(state.apply(log[:cut]))
    found += ShardState.load(state.dump()).apply(log[cut:])
    assert sorted(row.id for row in found) == sorted(row.id for row in ShardState(0).apply(log))
    assert bodies(found, "deviation") == []
