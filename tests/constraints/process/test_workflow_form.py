"""Constraint sets that follow a workflow: as values, and as documents."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from constraints import (
    Clause,
    ConstraintSet,
    End,
    Exclusive,
    InvalidConstraints,
    Prior,
    Process,
    ProcessAutomaton,
    Require,
    Rule,
    Settings,
    following,
    parse_constraints,
    to_document,
)
from constraints.documents.workflow_form import written_automaton
from nfa import Symbol, parse_step
from tests.builders.constraints import random_set
from tests.builders.exact import followed, of_words, random_automaton

KNOWN = followed(of_words("ABF ACF"), [Prior("X", "A"), Rule("response", ("A", "X")), End("Z")])


def test_following_joins_and_own_takes_apart() -> None:
    own = ConstraintSet.of(
        [Prior("X", "A"), End("F"), Exclusive("B", "C")], settings=Settings(completion="not_assumed")
    )
    automaton = of_words("ABF ACF")
    known = following(
        own,
        workflow="order",
        version=3,
        constraints=[Prior("A", "B"), Clause(frozenset("BC"), None), Clause(frozenset("B"), "A"), Prior("X", "A")],
        end_events=["F"],
        automaton=automaton,
    )
    assert known.constraints == (Prior("X", "A"), Exclusive("B", "C"), Prior("A", "B"), Require("B", "A"))
    assert known.process == Process(
        workflow="order",
        version=3,
        derived=frozenset({Prior("A", "B"), Require("B", "A")}),
        derived_ends=frozenset(),
        automaton=automaton,
    )
    assert known.own == own
    assert known.is_exact
    assert not own.is_exact
    assert own.own is own
    again = following(known, workflow="other", version=1, constraints=(), end_events="G", automaton=None)
    assert again.own == own
    assert again.end_events == {"F", "G"}
    assert not again.is_exact
    assert again.in_tables is again


def test_the_workflow_stays_with_parts_of_a_set() -> None:
    process = KNOWN.process
    assert process is not None
    some = KNOWN.of_parts(part for part in KNOWN.parts if part != Prior("A", "B"))
    assert some.process is not None
    assert some.process.automaton is process.automaton
    assert some.process.derived == process.derived - {Prior("A", "B")}
    assert some.own == KNOWN.own
    assert KNOWN.of_parts(KNOWN.parts) == KNOWN
    assert replace(KNOWN, end_events=KNOWN.end_events | {"Q"}).own.end_events == {"Q", "Z"}
    assert KNOWN.in_tables.process == replace(process, automaton=None)
    assert hash(KNOWN) == hash(followed(of_words("ABF ACF"), KNOWN.own.parts))


def test_document_and_back() -> None:
    random = Random(3)
    for number in range(40):
        steps = random.sample(["A [v > 1]", "B [v = 'x']"], random.randrange(3))
        symbols = {symbol.name: symbol for symbol in (Symbol(parse_step(step)) for step in steps)}
        parts = [*random_set(random, "ABX", 3).parts, *(Prior("X", name) for name in symbols)]
        own = ConstraintSet.of(parts, symbols=symbols, settings=Settings(unknown_types="deviate"))
        automaton = random_automaton(random, "ABC", 6)
        derived = (Prior("A", "B [odd]"), Require("B", "C"), Clause(frozenset("ABC"), None))
        known = following(
            own,
            workflow="an `order`",
            version=number + 1,
            constraints=derived,
            end_events=["C"],
            automaton=automaton if number % 2 else None,
        )
        text = json.dumps(to_document(known))
        for written in (text, json.loads(text), json.dumps(json.loads(text), indent=1)):
            assert parse_constraints(written).constraint_set == known


def test_the_form_that_the_service_stores() -> None:
    document: Any = to_document(KNOWN)
    assert document["constraints"] == [{"prior": ["X", "A"]}, {"response": ["A", "X"]}]
    assert document["end"] == ["Z"]
    workflow = document["workflow"]
    assert (workflow["name"], workflow["version"], workflow["end"]) == ("order", 1, ["F"])
    assert {"exclusive": ["B", "C"]} in workflow["constraints"]
    automaton = workflow["automaton"]
    assert (automaton["letters"], automaton["states"]) == (["A", "B", "C", "F"], 4)
    table = np.frombuffer(zlib.decompress(base64.b64decode(automaton["table"])), "<i4").reshape(4, 4)
    assert table.tolist() == [[1, -1, -1, -1], [-1, 2, 2, -1], [-1, -1, -1, 3], [-1, -1, -1, -1]]
    assert zlib.decompress(base64.b64decode(automaton["accepting"])) == bytes([0, 0, 0, 1])
    assert "automaton" not in to_document(KNOWN.in_tables)["workflow"]  # type: ignore[operator]


def test_a_workflow_may_stand_alone_and_in_yaml() -> None:
    found = parse_constraints('workflow:\n  name: order\n  version: 2\n  constraints: ["prior(A, B)"]\n  end: [B]\n')
    known = found.constraint_set
    assert known.process == Process(
        workflow="order", version=2, derived=frozenset({Prior("A", "B")}), derived_ends=frozenset("B")
    )
    assert known.own == ConstraintSet()


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def table(*numbers: int) -> str:
    return packed(np.array(numbers, "<i4").tobytes())


Change = Callable[[dict[str, Any]], object]

# what is changed in a workflow of one letter and two states, where the problem is, what it says
REFUSED: list[tuple[Change, str, str]] = [
    (lambda w: w.update(name=3), "workflow, name", "the name of a workflow is a text"),
    (lambda w: w.update(name=" "), "workflow, name", "of 1 to 200 characters"),
    (lambda w: w.update(version=0), "workflow, version", "a number from 1 on; got 0"),
    (lambda w: w.update(version=True), "workflow, version", "a number from 1 on"),
    (lambda w: w.update(nmae="x"), "workflow, nmae", "not a member of a workflow; use one of name, version"),
    (lambda w: w.update(end="A"), "workflow, end", "end is a list"),
    (lambda w: w.update(constraints=["prior(A)"]), "workflow, constraints, entry 1", "takes 2 event types"),
    (lambda w: w.update(constraints=["response(A, B)"]), "workflow, constraints, entry 1", "orders and clauses follow"),
    (lambda w: w.update(constraints=["end(A)"]), "workflow, constraints, entry 1", "end events in a list of their own"),
    (lambda w: w.update(end=["A", "B [v > 1]"]), "workflow, end, entry 2", "an end event is an event type"),
    (lambda w: w.update(automaton=[]), "workflow, automaton", "a mapping of letters, states, table, accepting"),
    (lambda w: w["automaton"].pop("states"), "workflow, automaton", "a mapping of letters, states"),
    (lambda w: w["automaton"].update(letters="A"), "workflow, automaton", "a list of at most 2000 event types"),
    (lambda w: w["automaton"].update(letters=["B", "A"]), "workflow, automaton", "letters are sorted, each once"),
    (lambda w: w["automaton"].update(letters=["A", "A"]), "workflow, automaton", "letters are sorted, each once"),
    (lambda w: w["automaton"].update(letters=[1]), "workflow, automaton", "an event type is a text"),
    (lambda w: w["automaton"].update(letters=["A"] * 2001), "workflow, automaton", "at most 2000 event types"),
    (lambda w: w["automaton"].update(states=0), "workflow, automaton", "states is a number from 1 to 100000"),
    (lambda w: w["automaton"].update(states=100_001), "workflow, automaton", "states is a number from 1 to 100000"),
    (
        lambda w: w["automaton"].update(states=100_000, letters=[f"{n:04}" for n in range(300)]),
        "workflow, automaton",
        "more than 20000000 cells",
    ),
    (lambda w: w["automaton"].update(table=5), "workflow, automaton", "table is a text in base64"),
    (lambda w: w["automaton"].update(table="!"), "workflow, automaton", "it cannot be unpacked"),
    (lambda w: w["automaton"].update(table="abcd"), "workflow, automaton", "it cannot be unpacked"),
    (lambda w: w["automaton"].update(table=table(1)), "workflow, automaton", "does not have the 8 bytes"),
    (lambda w: w["automaton"].update(table=packed(bytes(10**7))), "workflow, automaton", "does not have the 8 bytes"),
    (lambda w: w["automaton"].update(table=table(2, -1)), "workflow, automaton", "leads to states 0 to 1, or nowhere"),
    (lambda w: w["automaton"].update(table=table(1, -2)), "workflow, automaton", "leads to states 0 to 1, or nowhere"),
    (
        lambda w: w["automaton"].update(accepting=packed(bytes([0, 2]))),
        "workflow, automaton",
        "accepting holds 0 and 1",
    ),
    (lambda w: w["automaton"].update(accepting=packed(bytes([1, 0]))), "workflow, automaton", "completed from state 1"),
]


@pytest.mark.parametrize(("change", "where", "message"), REFUSED)
def test_refused(change: Change, where: str, message: str) -> None:
    automaton = ProcessAutomaton.of("A", [{"A": 1}, {}], [1])
    workflow: dict[str, Any] = {"name": "w", "version": 1, "automaton": written_automaton(automaton)}
    assert parse_constraints({"workflow": workflow}).constraint_set.is_exact
    change(workflow)
    with pytest.raises(InvalidConstraints) as caught:
        parse_constraints({"workflow": workflow, "constraints": []})
    (problem,) = caught.value.problems
    assert problem.where == where
    assert message in problem.message


def test_what_is_no_workflow_and_too_many_constraints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConstraints, match="a workflow is a mapping such as"):
        parse_constraints({"workflow": "order"})
    monkeypatch.setattr("constraints.documents.document.MAX_DERIVED", 1)
    with pytest.raises(InvalidConstraints, match="there are more than 1 constraints of the workflow"):
        parse_constraints({"workflow": (workflow := {"name": "w", "constraints": ["prior(A, B)"], "end": ["B"]})})
    monkeypatch.setattr("constraints.documents.document.MAX_DERIVED", 2)
    assert parse_constraints({"workflow": workflow}).constraint_set.process is not None
