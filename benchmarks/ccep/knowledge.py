"""Three forms of knowledge about the workflow: the four constraints in the paper, all constraints, or its language.

The oracles decide by definition: constraint oracles with ``tests.references.alive``, language oracles with the words of
the language. The matcher gets guards that are built for speed. Oracles and guards must agree.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from benchmarks.ccep.occupancy import State
from constraints import ConstraintSet, Exclusive, Prior, following, remainder_of
from nfa import PatternState, Query, Term
from tests.references.alive import alive
from tests.references.workflows import Word, enumerate_language
from workflows import ModelFormat, OrderSettings, WorkflowModel, compile_workflow, derive_constraints, order_fulfilment

END_EVENTS = frozenset({"RejectOrder", "CancelOrder", "FinishOrder"})
NAMED = ConstraintSet(
    (
        Exclusive("UseLocalStock", "UseRemoteStock"),
        Exclusive("CancelOrder", "FinishOrder"),
        Prior("GenerateQuote", "SendQuote"),
        Prior("GenerateInvoice", "SendInvoice"),
    )
)

Seen: TypeAlias = frozenset[str]
Suffixes: TypeAlias = frozenset[Word]


def extracted() -> ConstraintSet:
    """Return all pairwise constraints of the workflow: 235 priors, 20 exclusions, 278 requirements, 3 end events."""
    return derive_constraints(order_fulfilment())


def known_exactly(quotes: int | None) -> ConstraintSet:
    """Return the workflow's language as an automaton: 31 states with the loop left open, 41 with three quotes."""
    tree = order_fulfilment(OrderSettings(quotes=quotes))
    compiled = compile_workflow(WorkflowModel(name="order", format=ModelFormat.TREE, source=tree))
    return following(
        ConstraintSet(),
        workflow="order",
        version=1,
        constraints=compiled.extraction.constraints,
        end_events=frozenset(compiled.extraction.end),
        automaton=compiled.automaton,
    )


class ConstraintOracle:
    """An oracle for a constraint set, by definition.

    Its states are the sets of seen types that the constraints mention.
    """

    start: Seen = frozenset()

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self._set = constraint_set
        self._types = constraint_set.types
        self._consistent: dict[Seen, bool] = {}

    def step(self, state: Seen, event_type: str) -> Seen | None:
        """Return the seen types after one more event. If no conforming trace starts like this, return None."""
        if state & self._set.end_events or self._set.blocks(state, event_type):
            return None
        after = state | {event_type} & self._types
        if after not in self._consistent:
            self._consistent[after] = bool(alive(self._set, after))
        return after if self._consistent[after] else None

    def can_complete(self, state: Seen, query: Query, place: State) -> bool:
        """Return whether some conforming continuation completes a pattern state."""
        return bool(alive(self._set, state, remainder_of(query, PatternState(*place))))


class LanguageOracle:
    """An oracle for the workflow's words, with three quotes each: exact mode with the loop unrolled.

    A state is the set of suffixes that can still follow.
    """

    def __init__(self) -> None:
        self.start: Suffixes = enumerate_language(order_fulfilment(), 3)

    def step(self, state: Suffixes, event_type: str) -> Suffixes | None:
        """Return the suffixes after one more event. If no word continues like this, return None."""
        return _rests(state).get(event_type)

    def can_complete(self, state: Suffixes, query: Query, place: State) -> bool:
        """Return whether some word of the workflow completes a pattern state."""
        term = query.terms[place[0]]
        return any(_is_completed(term, place[1], rest) for rest in state)


@cache
def _rests(state: Suffixes) -> dict[str, Suffixes]:
    found: dict[str, set[Word]] = {}
    for word in state:
        if word:
            found.setdefault(word[0], set()).add(word[1:])
    return {name: frozenset(words) for name, words in found.items()}


def _is_completed(term: Term, bound: frozenset[int], rest: Word) -> bool:
    """Return whether a suffix contains events for all unbound atoms, in an order that the term allows."""
    reachable = {bound}
    for name in rest:
        reachable |= {
            done | {atom}
            for done in reachable
            for atom in range(len(term.atoms))
            if atom not in done and term.atoms[atom].type == name and term.before[atom] <= done
        }
    return frozenset(range(len(term.atoms))) in reachable
