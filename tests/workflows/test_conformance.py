"""A trace conforms as far as it is the beginning of a trace of the model, and no further."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Clause, End, Prior, ProcessAutomaton, Require
from tests.builders.workflows import process_trees
from tests.references.workflows import Word, enumerate_language
from workflows import Activity, ExclusiveChoice, Parallel, ProcessTree, Sequence, Silent
from workflows.compiling import CompiledWorkflow, compile_workflow
from workflows.conformance import check_log, check_trace
from workflows.limits import CompileLimits
from workflows.model import ModelFormat, WorkflowModel
from workflows.relations.extraction import Extraction, Method

ORDER = Sequence(
    (
        Activity("Receive"),
        ExclusiveChoice(
            (Activity("Reject"), Sequence((Parallel((Activity("Pack"), Activity("Bill"))), Activity("Ship"))))
        ),
        ExclusiveChoice((Activity("Thank"), Silent())),
    )
)


def automaton_of(language: frozenset[Word]) -> ProcessAutomaton:
    """The words as a tree of their beginnings."""
    beginnings = sorted({word[:length] for word in language for length in range(len(word) + 1)}, key=len)
    number = {word: state for state, word in enumerate(beginnings)}
    moves: list[dict[str, int]] = [{} for _ in beginnings]
    for word in beginnings[1:]:
        moves[number[word[:-1]]][word[-1]] = number[word]
    return ProcessAutomaton.of({name for word in language for name in word}, moves, [number[word] for word in language])


def extraction_of(language: frozenset[Word]) -> Extraction:
    """Order and occurrence by definition."""
    events = sorted({name for word in language for name in word})
    pairs = list(product(events, repeat=2))
    orders = [(a, b) for a, b in pairs if not any(a in word[word.index(b) + 1 :] for word in language if b in word)]
    apart = [(a, b) for a, b in pairs if a < b and not any({a, b} <= set(word) for word in language)]
    needs = [(a, b) for a, b in pairs if a != b and all(b in word for word in language if a in word)]
    always = [Clause(frozenset(), name) for name in events if all(name in word for word in language)]
    ends = [name for name in events if not any(name in word[:-1] for word in language)]
    return Extraction(
        events=tuple(events),
        prior=tuple(orders),
        exclusive=tuple(apart),
        require=tuple(needs),
        horn=tuple(always),
        end=tuple(ends),
        method=Method.AUTOMATON,
    )


def compiled(tree: ProcessTree, *, has_automaton: bool = True) -> CompiledWorkflow:
    language = enumerate_language(tree, 2)
    return CompiledWorkflow(
        model=WorkflowModel(name="model", format=ModelFormat.TREE, source=tree),
        tree=tree,
        net=None,
        automaton=automaton_of(language) if has_automaton else None,
        extraction=extraction_of(language),
    )


WORDS = st.lists(st.sampled_from("ABCDE"), max_size=6).map(tuple)


@given(process_trees(200), WORDS)
@settings(max_examples=150, deadline=None)
def test_the_first_event_that_leaves_the_language_is_found(tree, word) -> None:
    language = enumerate_language(tree, 2)
    beginnings = {known[:length] for known in language for length in range(len(known) + 1)}
    found = check_trace(compiled(tree), word)
    left = [place for place in range(len(word)) if word[: place + 1] not in beginnings]

    def follow(beginning: Word) -> tuple[str, ...]:
        return tuple(sorted({known[-1] for known in beginnings if known and known[:-1] == beginning}))

    assert found.is_exact
    assert found.conforms == (not left)
    assert found.is_complete == (word in language)
    if left:
        assert (found.at, found.event) == (left[0], word[left[0]])
        assert found.allowed == follow(word[: left[0]])
        assert found.still_allowed == ()
    else:
        assert found.at is None
        assert found.still_allowed == follow(word)
    assert set(found.unknown) == set(word) - {name for known in language for name in known}


@given(process_trees(200), WORDS)
@settings(max_examples=150, deadline=None)
def test_without_an_automaton_nothing_is_refused_that_the_model_allows(tree, word) -> None:
    exact, found = check_trace(compiled(tree), word), check_trace(compiled(tree, has_automaton=False), word)
    assert not found.is_exact
    assert found.conforms or not exact.conforms
    assert found.is_complete or not exact.is_complete
    if found.at is not None:
        assert exact.at is not None
        assert exact.at <= found.at
        assert found.broken or found.event in found.unknown
    elif exact.at is None:
        assert set(exact.still_allowed) <= set(found.still_allowed)


def test_constraints_say_what_is_broken_and_what_is_missing() -> None:
    model = compiled(ORDER, has_automaton=False)
    again = check_trace(model, ["Receive", "Pack", "Bill", "Pack"])
    assert (again.at, again.event, again.broken) == (3, "Pack", (Prior("Pack", "Pack"),))
    assert again.allowed == ("Ship",)
    both = check_trace(model, ["Receive", "Reject", "Pack"])
    assert both.broken == (Prior("Pack", "Reject"),)
    assert check_trace(model, ["Receive", "Thank", "Pack"]).broken == (End("Thank"),)
    begun = check_trace(model, ["Receive", "Pack"])
    assert begun.conforms
    assert not begun.is_complete
    assert Require("Pack", "Ship") in begun.unmet
    doomed = check_trace(model, ["Receive", "Pack", "Ship"])
    assert (doomed.at, doomed.event) == (2, "Ship")
    assert set(doomed.broken) == {Require("Pack", "Bill"), Prior("Bill", "Ship")}
    strange = check_trace(model, ["Receive", "Dance"])
    assert (strange.conforms, strange.unknown, strange.broken) == (False, ("Dance",), ())


def test_a_log_is_told_by_its_most_frequent_deviations() -> None:
    complete, begun = ("Receive", "Reject"), ("Receive", "Pack")
    early, strange = ("Receive", "Ship"), ("Receive", "Dance", "Dance")
    found = check_log(compiled(ORDER), [begun, early, complete, strange, early, complete])
    assert (found.traces, found.conforming, found.complete) == (6, 3, 2)
    assert (found.fitting_share, found.complete_share) == (0.5, pytest.approx(1 / 3))
    assert [(one.event, one.traces, one.example) for one in found.deviations] == [("Ship", 2, 1), ("Dance", 1, 3)]
    assert [one.kind for one in found.deviations] == ["workflow", "unknown_type"]
    assert found.deviations[0].allowed == ("Bill", "Pack", "Reject")
    assert found.unknown == (("Dance", 1),)
    assert found.is_exact


def test_an_empty_log_conforms() -> None:
    found = check_log(compiled(ORDER), [])
    assert (found.fitting_share, found.complete_share, found.deviations) == (1.0, 1.0, ())


def test_a_trace_is_told_as_json() -> None:
    document = check_trace(compiled(ORDER), ["Receive", "Ship"]).to_document()
    assert document == {
        "conforms": False,
        "is_complete": False,
        "index": 1,
        "event": "Ship",
        "kind": "workflow",
        "allowed": ["Bill", "Pack", "Reject"],
        "still_allowed": [],
        "broken_constraints": [],
        "unmet": [],
        "unknown": [],
        "is_exact": True,
    }


@given(process_trees(200), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_trace_of_a_compiled_model_conforms(tree, has_automaton) -> None:
    limits = CompileLimits() if has_automaton else CompileLimits(max_states=1)
    model = compile_workflow(WorkflowModel(name="", format=ModelFormat.TREE, source=tree), limits)
    language = sorted(enumerate_language(tree, 2))
    found = check_log(model, language)
    assert (found.fitting_share, found.complete_share, found.deviations) == (1.0, 1.0, ())
    assert found.is_exact == (model.automaton is not None)
    for word in language:
        beginning = check_trace(model, word[:-1])
        assert beginning.conforms
        assert not word or word[-1] in beginning.still_allowed
