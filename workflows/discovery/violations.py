"""Counts the past traces that break each part of a constraint set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from constraints import Clause, ConstraintSet, End, Part, Prior, Rule, RuleAutomaton


@dataclass(frozen=True, slots=True)
class _Trace:
    types: Sequence[str]
    first: Mapping[str, int]
    last: Mapping[str, int]

    @classmethod
    def of(cls, types: Sequence[str]) -> _Trace:
        last = {name: place for place, name in enumerate(types)}
        first = {name: len(types) - 1 - place for place, name in enumerate(reversed(types))}
        return cls(types, first, last)


_Check: TypeAlias = Callable[[_Trace], bool]


def count_violations(constraint_set: ConstraintSet, traces: Iterable[Sequence[str]]) -> dict[Part, int | None]:
    """Count the finished traces that break each part of a constraint set. The settings of the set are ignored.

    A trace is given as its event types in order. The count is None for a part with a symbol (a type with a condition),
    because event types alone do not decide it.
    """
    variants = Counter(map(tuple, traces))
    checks = {
        part: _check(part) for part in constraint_set.parts if constraint_set.symbols.keys().isdisjoint(part.names)
    }
    broken: dict[Part, int | None] = {part: 0 if part in checks else None for part in constraint_set.parts}
    for types, count in variants.items():
        trace = _Trace.of(types)
        for part, is_broken in checks.items():
            if is_broken(trace):
                broken[part] = (broken[part] or 0) + count
    return broken


def _check(part: Part) -> _Check:
    """Return a function that checks whether a finished trace breaks ``part``."""
    if isinstance(part, Rule):
        return partial(_breaks_rule, RuleAutomaton.of(part))
    if isinstance(part, End):
        return lambda trace: trace.first.get(part.type, len(trace.types)) < len(trace.types) - 1
    if isinstance(part, Prior):
        return lambda trace: trace.last.get(part.earlier, -1) > trace.first.get(part.later, len(trace.types))
    clause = part if isinstance(part, Clause) else part.clause
    return lambda trace: clause.head not in trace.first and clause.body <= trace.first.keys()


def _breaks_rule(automaton: RuleAutomaton, trace: _Trace) -> bool:
    place = automaton.start
    for name in trace.types:
        place = automaton.step(place, frozenset((name,)))
    return place not in automaton.accepting
