"""The layout of a lane: its patterns compiled together, with engines, conditions, type codes and state columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton, is_plain_next, is_shareable
from nfa.conditions.listening import Listening, StepsOfType, listen
from nfa.conditions.predicates import PredicateTable
from nfa.guards.protocol import TRACE_END, Guard
from nfa.registered import RunningPattern
from nfa.runs.program import GuardColumns, atoms_to_test, every_event, listened_types
from nfa.shared.engine import SharedPattern, SharedTransition
from nfa.syntax import Atom, Pattern
from nfa.traces.table import Want

_Engines: TypeAlias = Sequence[tuple[RunningPattern, bool]]
"""Patterns, each with whether the shared-node engine runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The patterns of a lane, compiled together.

    Attributes:
        patterns: The patterns. All tables use their indices as numbers.
        is_shared: For each pattern, whether the shared-node engine runs it.
        types: The relevant event types by code. One more code, ``len(types)``, represents every other type.
            ``TRACE_END`` is always included.
        codes: The code of each type.
        listening: The filter index, and the steps that listen only to events with certain attribute values.
        predicates: The distinct unary conditions of steps and of guards' symbols. Conditions that the filter index
            implies are left out.
        transitions: For each pattern, its transitions for the shared-node engine. Empty for patterns of the run engine.
        state_range: (patterns + 1,): the first column of each pattern's states in a guard's tables, then the end.
        negation_range: (patterns + 1,): the first column of each pattern's trailing NOTs, then the end. These columns
            follow the columns of all states.
        run_numbers: The numbers of the patterns that the run engine runs.
    """

    patterns: tuple[RunningPattern, ...]
    is_shared: tuple[bool, ...]
    types: tuple[str, ...]
    codes: Mapping[str, int]
    listening: Listening
    predicates: PredicateTable
    transitions: tuple[tuple[SharedTransition, ...], ...]
    state_range: NDArray[np.int32]
    negation_range: NDArray[np.int32]
    run_numbers: tuple[int, ...]

    def shared_pattern(self, number: int, match_limit: int) -> SharedPattern | None:
        """Return a pattern compiled for the shared-node engine, or None if the run engine runs it."""
        if not self.is_shared[number]:
            return None
        pattern = self.patterns[number]
        automaton = pattern.automaton
        return SharedPattern(
            states=len(automaton.states),
            terms=pattern.view.terms_of_state.tolist(),
            depth=automaton.depths,
            transitions=self.transitions[number],
            within_us=automaton.pattern.within_us or 0,
            is_next=is_plain_next(automaton.pattern),
            limit=match_limit,
            may_repeat=automaton.may_repeat,
        )

    def guard_columns(self, number: int) -> GuardColumns:
        first = int(self.negation_range[number])
        negations = {atom: first + place for place, atom in enumerate(self.patterns[number].view.negations)}
        return GuardColumns(first_state=int(self.state_range[number]), negations=negations)

    def wants(self) -> list[Want]:
        """Return the conditions (wants) under which the trace table must look up a row.

        There is a want for each step of the shared-node engine's patterns.
        """
        return [
            Want(type_code=step.type_code, predicate=step.predicate, opens=step.source == 0, cell=step.cell)
            for transitions in self.transitions
            for step in transitions
        ]


def is_run_by_shared_engine(pattern: Pattern, *, is_log_ordered: bool) -> bool:
    """Return whether the shared-node engine runs a pattern. The run engine runs the others.

    The pattern must be shareable, and events must be ordered as in the log.
    """
    return is_log_ordered and is_shareable(build_automaton(pattern))


def lay_out(
    patterns: Sequence[RunningPattern],
    guards: Iterable[Guard],
    end_events: frozenset[str],
    *,
    is_log_ordered: bool,
) -> Layout:
    """Compile patterns together, and number their states in the order of the patterns.

    The types that guards name get codes, too.
    """
    all_guards, is_shared = list(guards), [is_log_ordered and pattern.is_shareable for pattern in patterns]
    extra_types = frozenset[str]().union(*(guard.types for guard in all_guards))
    atoms = [atom for pattern in patterns for atom in atoms_to_test(pattern.automaton)]
    steps = [symbol.step for guard in all_guards for symbol in guard.symbols]
    atom_types = {name for atom in atoms if not atom.is_any_type for name in atom.types}
    state_range = np.cumsum([0, *(len(pattern.automaton.states) for pattern in patterns)]).astype(np.int32)
    negations = [len(pattern.view.negations) for pattern in patterns]
    types = tuple(sorted(atom_types | extra_types | end_events | {TRACE_END}))
    codes = {name: code for code, name in enumerate(types)}
    engines = list(zip(patterns, is_shared, strict=True))
    listening = listen(_groups(engines, codes))
    predicates = PredicateTable.of([*_tested(engines, codes, listening), *steps])
    return Layout(
        patterns=tuple(patterns),
        is_shared=tuple(is_shared),
        types=types,
        codes=codes,
        listening=listening,
        predicates=predicates,
        transitions=tuple(
            tuple(_shared_transitions(number, pattern.automaton, codes, listening, predicates)) if of_shared else ()
            for number, (pattern, of_shared) in enumerate(engines)
        ),
        state_range=state_range,
        negation_range=np.cumsum([state_range[-1], *negations]).astype(np.int32),
        run_numbers=tuple(number for number, of_shared in enumerate(is_shared) if not of_shared),
    )


def _codes_of(atom: Atom, codes: Mapping[str, int]) -> list[int]:
    return every_event(codes) if atom.is_any_type else [codes[name] for name in dict.fromkeys(atom.types)]


def _groups(engines: _Engines, codes: Mapping[str, int]) -> Iterator[StepsOfType]:
    """Yield the steps of each pattern for each type, as groups for the filter index.

    A pattern of the run engine is left out if events of any type can affect the pattern.
    """
    for number, (pattern, is_shared) in enumerate(engines):
        if not is_shared and listened_types(pattern.automaton) is None:
            continue
        by_code: dict[int, list[Atom]] = {}
        for atom in atoms_to_test(pattern.automaton):
            for code in _codes_of(atom, codes):
                by_code.setdefault(code, []).append(atom)
        for code, atoms in by_code.items():
            yield StepsOfType(pattern=number, code=code, atoms=tuple(atoms), is_apart=is_shared)


def _tested(engines: _Engines, codes: Mapping[str, int], listening: Listening) -> Iterator[Atom]:
    for number, (pattern, is_shared) in enumerate(engines):
        for atom in atoms_to_test(pattern.automaton):
            if is_shared:
                yield from (listening.reduced(number, code, atom) for code in _codes_of(atom, codes))
            else:
                yield listening.reduced_for_all(number, _codes_of(atom, codes), atom)


def _shared_transitions(
    number: int,
    automaton: PatternAutomaton,
    codes: Mapping[str, int],
    listening: Listening,
    predicates: PredicateTable,
) -> Iterator[SharedTransition]:
    aliases, goes_on = automaton.aliases, automaton.goes_on
    for transition in automaton.transitions:
        atom = automaton.atoms[transition.atom]
        for code in _codes_of(atom, codes):
            predicate = predicates.row_of(listening.reduced(number, code, atom))
            for cell in listening.cells_of(number, code, atom):
                yield SharedTransition(
                    type_code=code,
                    source=transition.source,
                    target=transition.target,
                    alias=aliases.index(atom.alias),
                    predicate=predicate,
                    accepts=automaton.accepting[transition.target],
                    goes_on=goes_on[transition.target],
                    cell=cell,
                )


NO_PATTERNS = lay_out((), (), frozenset(), is_log_ordered=True)
