"""Patterns of a lane, compiled together: which engine runs each, types and states numbered through, conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nfa.automata.guard_view import GuardView
from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton, is_plain_next, is_shareable
from nfa.conditions.predicates import PredicateTable
from nfa.conditions.residuals import split_condition
from nfa.guards import TRACE_END, Guard
from nfa.runs.program import atoms_to_test, every_event
from nfa.shared import MOST_ALIASES, SharedPattern, SharedTransition
from nfa.syntax import Atom, Pattern
from nfa.traces import Want


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPattern:
    """A pattern with its automaton and what a guard sees of it; ``is_shared`` says which engine runs it."""

    automaton: PatternAutomaton
    view: GuardView
    is_shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Patterns compiled together.

    Attributes:
        patterns: The index is the pattern's number in all tables.
        types: The event types that matter; the index is the type's code. One more code, ``len(types)``, stands for
            every other type. ``TRACE_END`` is always among them.
        codes: Code by event type.
        predicates: The distinct unary conditions of steps and of what guards tell apart.
        transitions: Of each pattern as the shared-node engine takes them; none where the run engine has it.
        state_range: (patterns + 1,) int32, columns of a guard's tables that belong to each pattern's states.
        negation_range: (patterns + 1,) int32, columns behind them that belong to the NOTs that each pattern ends with.
    """

    patterns: tuple[CompiledPattern, ...]
    types: tuple[str, ...]
    codes: Mapping[str, int]
    predicates: PredicateTable
    transitions: tuple[tuple[SharedTransition, ...], ...]
    state_range: NDArray[np.int32]
    negation_range: NDArray[np.int32]

    @property
    def run_numbers(self) -> list[int]:
        """Numbers of the patterns that the run engine runs."""
        return [number for number, pattern in enumerate(self.patterns) if not pattern.is_shared]

    def shared_pattern(self, number: int, match_limit: int) -> SharedPattern | None:
        """A pattern as the shared-node engine takes it; None where the run engine has it."""
        compiled = self.patterns[number]
        if not compiled.is_shared:
            return None
        automaton = compiled.automaton
        return SharedPattern(
            states=len(automaton.states),
            terms=compiled.view.terms_of_state.tolist(),
            depth=automaton.depths,
            transitions=self.transitions[number],
            within_us=automaton.pattern.within_us or 0,
            is_next=is_plain_next(automaton.pattern),
            limit=match_limit,
            may_repeat=automaton.may_repeat,
        )

    def negation_columns(self, number: int) -> dict[Atom, int]:
        """Columns of a guard's tables for the NOTs that a pattern ends with."""
        first = int(self.negation_range[number])
        return {atom: first + place for place, atom in enumerate(self.patterns[number].view.negations)}

    def wants(self) -> list[Want]:
        """Rows that the shared-node engine has to see."""
        return [
            Want(type_code=step.type_code, predicate=step.predicate, opens=step.source == 0)
            for transitions in self.transitions
            for step in transitions
        ]


def compile_pattern(automaton: PatternAutomaton, view: GuardView, *, is_log_ordered: bool) -> CompiledPattern:
    """Choose the engine of a pattern: the shared-node engine wherever partial matches need no memory of their own."""
    return CompiledPattern(automaton=automaton, view=view, is_shared=is_log_ordered and _has_shared_form(automaton))


def is_run_by_shared_engine(pattern: Pattern, *, is_log_ordered: bool) -> bool:
    """Whether ``compile_pattern`` chooses the shared-node engine for a pattern."""
    return is_log_ordered and _has_shared_form(build_automaton(pattern))


def _has_shared_form(automaton: PatternAutomaton) -> bool:
    is_unary = automaton.pattern.where is None and all(split_condition(atom)[1] is None for atom in automaton.atoms)
    return is_unary and len(automaton.aliases) <= MOST_ALIASES and is_shareable(automaton)


def lay_out(
    patterns: Sequence[CompiledPattern],
    guards: Iterable[Guard],
    end_events: frozenset[str],
) -> Layout:
    """Number types and states through.

    Args:
        patterns: In the order of their numbers.
        guards: Whose types and symbols matter too.
        end_events: Types that end a trace.
    """
    listening = list(guards)
    extra_types = frozenset[str]().union(*(guard.types for guard in listening))
    atoms = [atom for pattern in patterns for atom in atoms_to_test(pattern.automaton)]
    steps = [symbol.step for guard in listening for symbol in guard.symbols]
    named = {name for atom in atoms if not atom.is_any_type for name in atom.types}
    state_range = np.cumsum([0, *(len(pattern.automaton.states) for pattern in patterns)]).astype(np.int32)
    negations = [len(pattern.view.negations) for pattern in patterns]
    types = tuple(sorted(named | extra_types | end_events | {TRACE_END}))
    codes = {name: code for code, name in enumerate(types)}
    predicates = PredicateTable.of([*atoms, *steps])
    return Layout(
        patterns=tuple(patterns),
        types=types,
        codes=codes,
        predicates=predicates,
        transitions=tuple(
            tuple(_shared_transitions(pattern.automaton, codes, predicates)) if pattern.is_shared else ()
            for pattern in patterns
        ),
        state_range=state_range,
        negation_range=np.cumsum([state_range[-1], *negations]).astype(np.int32),
    )


def _shared_transitions(
    automaton: PatternAutomaton, codes: Mapping[str, int], predicates: PredicateTable
) -> Iterator[SharedTransition]:
    aliases, goes_on = automaton.aliases, automaton.goes_on
    rows = [predicates.row_of(atom) for atom in automaton.atoms]
    for transition in automaton.transitions:
        atom = automaton.atoms[transition.atom]
        chosen = every_event(codes) if atom.is_any_type else [codes[name] for name in dict.fromkeys(atom.types)]
        for code in chosen:
            yield SharedTransition(
                type_code=code,
                source=transition.source,
                target=transition.target,
                alias=aliases.index(atom.alias),
                predicate=rows[transition.atom],
                accepts=automaton.accepting[transition.target],
                goes_on=goes_on[transition.target],
            )
