"""Streams that follow a workflow exactly: nothing but the constraint document is needed."""

import pytest

from constraints import ConstraintSet, ProcessAutomaton, following, parse_constraints, to_document
from nfa import parse_pattern
from shards.kinds.patterns.rules import rules_of
from shards.state import ShardState
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import bodies, event, log_of, run_inline
from tests.references.patterns.outcome import reference_matches
from workflows import (
    Activity,
    ExclusiveChoice,
    Loop,
    ModelFormat,
    Parallel,
    ProcessTree,
    Sequence,
    WorkflowModel,
    compile_workflow,
)

STREAM = StreamOn(StreamDeclaration(name="orders", end_events=("End",)))
PAIR = PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)")
RETRY = Loop(body=Activity("Try"), redo=Activity("Again"))
FIRST = Sequence((RETRY, ExclusiveChoice((Activity("L"), Activity("U"))), Activity("End")))
SECOND = Sequence((Parallel((Activity("A"), Activity("L"))), Activity("U"), Activity("End")))


def followed(tree: ProcessTree, version: int, own: ConstraintSet | None = None) -> ConstraintsOn:
    """The record of a stream that follows a tree exactly."""
    compiled = compile_workflow(WorkflowModel(name="order", format=ModelFormat.TREE, source=tree))
    constraint_set = following(
        own or ConstraintSet(end_events=frozenset({"End"})),
        workflow="order",
        version=version,
        constraints=compiled.extraction.constraints,
        end_events=frozenset(compiled.extraction.end),
        automaton=compiled.automaton,
    )
    return ConstraintsOn(name="orders", version=version, document=to_document(constraint_set))


def rows_of(*steps):
    return run_inline(log_of(steps))


RETRIES = PatternOn(name="retries", version=1, text="PATTERN retries EVENT SEQ(Again x, Try t, L l)")


def test_the_automaton_is_in_the_document_and_comes_back():
    record = followed(FIRST, 1)
    process = parse_constraints(record.document).constraint_set.process
    assert process is not None
    automaton = process.automaton
    assert isinstance(automaton, ProcessAutomaton)
    assert automaton.accepts(["Try", "Again", "Try", "L", "End"])
    assert rules_of(record.document) is rules_of(dict(record.document))


def test_the_workflow_ends_what_its_constraints_alone_cannot():
    """After a Try that is not followed by Again, retrying is over: only the state of the automaton knows."""
    again = PatternOn(name="again", version=1, text="PATTERN again EVENT SEQ(Try t, Again x)")
    rows = rows_of(STREAM, followed(FIRST, 1), again, [event(1, "Try"), event(2, "U")])
    (ending,) = bodies(rows, "ending")
    assert (ending["event"], ending["event_type"], ending["pattern"]) == ("e2", "U", "again")
    assert ending["atom"] == "Again x"
    assert "order" in ending["reason"]


def test_an_event_that_the_workflow_does_not_allow_deviates_with_what_it_would_have():
    rows = rows_of(STREAM, followed(FIRST, 1), PAIR, [event(1, "Try"), event(2, "Try")])
    (deviation,) = bodies(rows, "deviation")
    assert (deviation["event"], deviation["kind"], deviation["allowed"]) == ("e2", "workflow", ["Again", "L", "U"])
    assert "order" in deviation["reason"]


def test_traces_that_began_earlier_finish_under_their_version():
    first, second = followed(FIRST, 1), followed(SECOND, 2)
    rows = rows_of(
        STREAM,
        first,
        PAIR,
        [event(1, "Try", key="old")],
        second,
        [event(2, "U", key="old"), event(3, "A", key="new"), event(4, "L", key="new"), event(5, "U", key="new")],
        [event(6, "Again", key="old"), event(7, "Try", key="new")],
    )
    told = [(row["key"], row["event"], row["version"]) for row in bodies(rows, "deviation")]
    assert told == [("old", "e6", 1)]  # the second version knows nothing of Try, so that may come
    (alert,) = bodies(rows, "alert")
    assert (alert["key"], alert["bindings"]) == ("new", {"a": ["e3"], "u": ["e5"]})


BATCHES = [
    [event(1, "Try", key="a"), event(2, "Try", key="b"), event(3, "Again", key="a")],
    [event(4, "Try", key="a"), event(5, "U", key="b")],
    [event(6, "L", key="a"), event(7, "Again", key="b")],
    [event(8, "End", key="a"), event(9, "End", key="b"), event(10, "A", key="c")],
]


@pytest.mark.parametrize("cut", range(1, 10))
def test_saved_state_goes_on_as_if_it_had_not_been_saved(cut):
    """Patterns, two versions of the workflow, one of them followed by open traces only, and a batch in between."""
    own = parse_constraints({"end": ["End"], "response": [["A", "L"]]}).constraint_set
    first, second = followed(FIRST, 1, own), followed(SECOND, 2)
    (log,) = log_of((STREAM, RETRIES, PAIR, first, *BATCHES[:2], second, *BATCHES[2:])).values()
    whole = ShardState(0)
    expected = whole.apply(log)
    state = ShardState(0)
    found = list(state.apply(log[:cut]))
    body = state.dump()
    loaded = ShardState.load(body)
    assert loaded.dump() == body
    found += loaded.apply(log[cut:])
    assert [(row.kind, row.id, row.body) for row in found] == [(row.kind, row.id, row.body) for row in expected]
    assert loaded.dump() == whole.dump()


def test_alerts_of_conforming_traces_are_those_without_the_workflow():
    texts = [PAIR.text, RETRIES.text, "PATTERN never EVENT SEQ(Try t, NOT Again)"]
    patterns = [PatternOn(name=parse_pattern(text).name, version=1, text=text) for text in texts]
    traces = {"x": "Try Again Try L End", "y": "Try U End", "z": "Try Again Try Again Try L End"}
    events = [
        event(100 * number + place, name, key=key)
        for number, (key, words) in enumerate(traces.items())
        for place, name in enumerate(words.split())
    ]
    rows = rows_of(STREAM, followed(FIRST, 1), *patterns, events[:5], events[5:])
    assert bodies(rows, "deviation") == []
    found = sorted((row["pattern"], row["key"], bound(row["bindings"])) for row in bodies(rows, "alert"))
    matches = reference_matches([parse_pattern(text) for text in texts], events, frozenset({"End"}))
    assert found == sorted((match.pattern, match.key, bound(match.bindings)) for match in matches)
    assert len(found) > 5


def bound(bindings):
    return sorted((alias, list(ids)) for alias, ids in bindings.items())
