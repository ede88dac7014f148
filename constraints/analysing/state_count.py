"""Computes an upper bound of the number of states of a monitor.

A monitor state is a set of names that a conforming trace may have shown. The bit tables decide which sets are possible
(constraint-aware CEP, section 4.3). They ignore longer clauses and cycles of orders, so the true number may be smaller.
Groups of names that no constraint connects are counted separately, and their numbers are multiplied. Events with equal
timestamps are assumed to be ordered.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import prod
from typing import NamedTuple

from constraints.model import ConstraintSet, Part, Rule
from constraints.reasoning.reasoner import ALL_NAMES
from constraints.rules.automaton import RuleAutomaton
from constraints.sets import overlapping, union


class _Effect(NamedTuple):
    """The effect of the first event with a name on a monitor state, as masks of names.

    The event shows some names, makes names certain to occur, excludes names from the trace, and blocks later names.
    """

    shown: int
    certain: int
    excluded: int
    blocked: int
    is_single: bool  # no event can show another name with it


def count_states(constraint_set: ConstraintSet, limit: int) -> int:
    """Return an upper bound of the number of monitor states, or ``limit + 1`` if the bound is larger."""
    count = prod(len(RuleAutomaton.of(rule).places) for rule in constraint_set.rules)
    names = frozenset(name for part in constraint_set.parts if not isinstance(part, Rule) for name in part.names)
    groups = _groups(constraint_set, names)
    if len(groups) > 1 and constraint_set.end_events:  # an end event connects all groups
        names -= constraint_set.end_events
        groups = _groups(constraint_set, names)
        count *= 1 + len(constraint_set.end_events)
    for group in groups:
        if count > limit:
            break
        count *= _count(constraint_set, group, limit // count)
    return min(count, limit + 1)


def _groups(constraint_set: ConstraintSet, names: frozenset[str]) -> list[frozenset[str]]:
    """Divide ``names`` into independent groups.

    Two names are in the same group if a constraint or a common event type connects them, directly or through other
    names.
    """
    marks: dict[str, list[Part | str]] = {name: [constraint_set.type_of(name)] for name in sorted(names)}
    for part in constraint_set.parts:
        for name in names.intersection(() if isinstance(part, Rule) else part.names):
            marks[name].append(part)
    return list(map(frozenset, overlapping(marks)))


def _count(constraint_set: ConstraintSet, group: frozenset[str], limit: int) -> int:
    """Count the subsets of ``group`` that can be exactly the names that a trace has shown so far.

    Counting stops soon after ``limit``.
    """
    bits = {name: 1 << place for place, name in enumerate(sorted(group))}
    effects = [_effect(constraint_set, name, bits) for name in bits]
    certain = _mask(constraint_set.horn_closure(()), bits)
    waiting = [(0, certain, _excluded(constraint_set, certain, bits), 0)]
    reached = {0}
    while waiting and len(reached) <= limit:
        seen, certain, excluded, blocked = waiting.pop()
        for effect in effects:
            after = seen | effect.shown
            if after in reached or (effect.is_single and effect.shown & blocked):
                continue
            state = (after, certain | effect.certain, excluded | effect.excluded, blocked | effect.blocked)
            if not state[1] & state[2] and not state[1] & ~after & state[3]:
                reached.add(after)
                waiting.append(state)
    return len(reached)


def _effect(constraint_set: ConstraintSet, name: str, bits: dict[str, int]) -> _Effect:
    shown_names = constraint_set.shown_with((name,))
    certain = _mask(constraint_set.horn_closure(shown_names), bits)
    blocked = 0
    for shown_name in shown_names:
        blocked |= _mask(constraint_set.earlier.get(shown_name, ()), bits)
        if shown_name in constraint_set.end_events:
            blocked = ALL_NAMES
    event_type = constraint_set.type_of(name)
    is_single = all(symbol.type != event_type for symbol in constraint_set.symbols.values())
    return _Effect(_mask(shown_names, bits), certain, _excluded(constraint_set, certain, bits), blocked, is_single)


def _excluded(constraint_set: ConstraintSet, certain: int, bits: dict[str, int]) -> int:
    excluded = 0
    for clause in constraint_set.clauses:
        if clause.head is None and len(clause.body) == 1:
            excluded |= _mask(clause.body, bits)
        elif clause.head is None and len(clause.body) == 2:
            for first, second in combinations(sorted(clause.body), 2):
                excluded |= bits.get(second, 0) if certain & bits.get(first, 0) else 0
                excluded |= bits.get(first, 0) if certain & bits.get(second, 0) else 0
    return excluded


def _mask(names: Iterable[str], bits: dict[str, int]) -> int:
    return union(bits.get(name, 0) for name in names)
