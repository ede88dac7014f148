"""Queries to automaton tables: the states and transitions of all patterns of a stream, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.matching import IS_ACCEPTING, Program
from nfa.predicates import ALWAYS, PredicateTable
from nfa.query import PatternState, Query


@dataclass(frozen=True, slots=True)
class Automaton:
    """Patterns compiled together.

    Attributes:
        queries: The patterns; the index is the pattern's number in all tables.
        types: The event types that matter; the index is the type's code. One more code, ``len(types)``, stands for
            every other type.
        program: Tables for the kernel; state numbers count through the queries' states.
        predicates: The distinct step conditions.
    """

    queries: tuple[Query, ...]
    types: tuple[str, ...]
    program: Program
    predicates: PredicateTable

    @property
    def other_type(self) -> int:
        """Code of every type that no pattern and no guard knows."""
        return len(self.types)

    @property
    def width(self) -> int:
        """Most atoms of any term."""
        return max((len(term.atoms) for query in self.queries for term in query.terms), default=0)

    def state_of(self, index: int) -> PatternState:
        """The pattern state behind a state number."""
        pattern = int(self.program.state_pattern[index])
        return self.queries[pattern].states[index - int(self.program.state_range[pattern])]


def compile_automaton(queries: Sequence[Query], extra_types: frozenset[str], end_events: frozenset[str]) -> Automaton:
    """Compile patterns for the kernel.

    Args:
        queries: The patterns, in the order of their numbers.
        extra_types: Types that a guard listens to.
        end_events: Types that end a trace.
    """
    types = tuple(sorted(end_events.union(extra_types, *(query.types for query in queries))))
    codes = {name: code for code, name in enumerate(types)}
    starts = np.cumsum([0, *(len(query.states) for query in queries)]).astype(np.int32)
    predicates = PredicateTable.of(queries)
    rows: list[tuple[int, ...]] = []
    for number, query in enumerate(queries):
        rows += _transitions(number, query, int(starts[number]), codes, predicates)
    rows.sort()
    table = np.array(rows, np.int32).reshape(len(rows), 8)
    listen = np.searchsorted(table[:, 0], np.arange(len(types) + 2)).astype(np.int32)
    counts = [len(query.states) for query in queries]
    is_end = np.array([*(name in end_events for name in types), False], np.bool_)
    program = Program(
        listen=listen,
        pattern=_column(table, 1),
        source=_column(table, 3),
        target=_column(table, 4),
        atom=_column(table, 5),
        predicate=_column(table, 6),
        term=_column(table, 7),
        depth=np.array([len(state.bound) for query in queries for state in query.states], np.int32),
        state_pattern=np.repeat(np.arange(len(queries), dtype=np.int32), counts),
        state_range=starts,
        is_end=is_end,
        is_notable=is_end | (np.diff(listen) > 0),
    )
    return Automaton(tuple(queries), types, program, predicates)


def _column(table: NDArray[np.int32], index: int) -> NDArray[np.int32]:
    return np.ascontiguousarray(table[:, index])


def _transitions(
    number: int, query: Query, start: int, codes: dict[str, int], predicates: PredicateTable
) -> list[tuple[int, ...]]:
    """Rows (type, pattern, -bound after, source, target, atom, predicate, term); they sort as the kernel wants them."""
    places = {state: start + index for index, state in enumerate(query.states)}
    rows: list[tuple[int, ...]] = []
    for state, source in places.items():
        term = query.terms[state.term]
        for index, atom in enumerate(term.atoms):
            if index in state.bound or not term.before[index] <= state.bound:
                continue
            bound = state.bound | {index}
            target = places.get(PatternState(state.term, bound), IS_ACCEPTING)
            predicate = predicates.rows.get((atom.type, predicates.normal_form(atom)), ALWAYS)
            rows.append((codes[atom.type], number, -len(bound), source, target, index, predicate, state.term))
    return rows
