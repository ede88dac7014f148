"""A guard's answers about a pattern's terms, read as answers about the states of its automaton.

A state of the automaton stands for pattern states of one or more terms: those alternatives that are still open, with
the atoms that it has bound of what each must have. It can complete if one of them can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.automata.progress import Outline, Progress
from nfa.automata.query import AtomKey, PatternState, Query
from nfa.syntax import Atom, Conjunction, Disjunction, Repeat, Sequence

_ROOT = 0
Part = tuple[frozenset[AtomKey], frozenset[AtomKey]]
"""Atoms of one alternative of a part, and those of them that are bound."""


@dataclass(frozen=True, slots=True)
class GuardView:
    """The states of one pattern's automaton.

    Attributes:
        query: What guards are asked about.
        pattern_states: For each state of the automaton the pattern states that it stands for.
        is_free: Whether nothing more is needed in some alternative, so that no guard can rule the state out.
    """

    query: Query
    pattern_states: tuple[tuple[PatternState, ...], ...]
    is_free: tuple[bool, ...]

    def live(self, of_query: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which states can still complete, from a guard's answers in the order of ``query.states``."""
        places = {state: place for place, state in enumerate(self.query.states)}
        found = [
            is_free or any(of_query[places[state]] for state in states)
            for is_free, states in zip(self.is_free, self.pattern_states, strict=True)
        ]
        return np.array(found, np.bool_)


def guard_view(automaton: PatternAutomaton, query: Query) -> GuardView:
    """How the states of an automaton look to a guard."""
    terms = {frozenset(term.keys): index for index, term in enumerate(query.terms)}
    places = [{key: place for place, key in enumerate(term.keys)} for term in query.terms]
    pattern_states = []
    is_free = []
    for progress in automaton.states:
        found: dict[PatternState, None] = {}
        is_complete = False
        for keys, bound in _parts(automaton.outline, _ROOT, progress, ()):
            term = terms[keys]
            if bound == keys:
                is_complete = True
            else:
                found[PatternState(term, frozenset(places[term][key] for key in bound))] = None
        pattern_states.append(tuple(found))
        is_free.append(is_complete)
    return GuardView(query, tuple(pattern_states), tuple(is_free))


def _parts(outline: Outline, number: int, progress: Progress, iterations: tuple[int, ...]) -> Iterator[Part]:
    """Alternatives of a part that are still open, with what is bound of each."""
    node, children = outline.nodes[number], outline.children[number]
    match node:
        case Atom():
            yield from _atom_parts(outline, number, progress, iterations)
        case Disjunction():
            for place, child in enumerate(children):
                if progress is None or progress[0] == place:
                    yield from _parts(outline, child, None if progress is None else progress[1], iterations)
        case Sequence():
            place, inner = (-1, None) if progress is None else progress
            several = [
                _finished(outline, child, iterations)
                if at < place
                else list(_parts(outline, child, inner if at == place else None, iterations))
                for at, child in enumerate(children)
                if child >= 0
            ]
            yield from _joined(several)
        case Conjunction():
            inners = [None] * len(children) if progress is None else progress[1]
            yield from _joined(
                [list(_parts(outline, child, inner, iterations)) for child, inner in zip(children, inners, strict=True)]
            )
        case Repeat():
            done, inner = (-1, None) if progress is None else progress[:2]
            several = []
            for iteration in range(node.min):
                within = (*iterations, iteration)
                if iteration < done:
                    several.append(_finished(outline, children[0], within))
                else:
                    several.append(list(_parts(outline, children[0], inner if iteration == done else None, within)))
            yield from _joined(several)


def _atom_parts(outline: Outline, number: int, progress: Progress, iterations: tuple[int, ...]) -> Iterator[Part]:
    atom = outline.nodes[number]
    assert isinstance(atom, Atom)
    if atom.is_any_type:
        yield frozenset(), frozenset()
        return
    for name in dict.fromkeys(atom.types):
        keys = frozenset({(outline.atom_numbers[number], iterations, name)})
        yield keys, keys if progress is not None else frozenset()


def _finished(outline: Outline, number: int, iterations: tuple[int, ...]) -> list[Part]:
    """Every alternative of a part, with all of it bound."""
    return [(keys, keys) for keys, _ in _parts(outline, number, None, iterations)]


def _joined(several: list[list[Part]]) -> Iterator[Part]:
    for parts in product(*several):
        keys = frozenset().union(*(part[0] for part in parts))
        bound = frozenset().union(*(part[1] for part in parts))
        yield keys, bound
