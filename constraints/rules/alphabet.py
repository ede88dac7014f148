"""Finds the kinds of events that can still occur in a trace. Rules and atoms do not distinguish events of one kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from constraints.model import ConstraintSet
from constraints.remainder import Remainder
from nfa import OTHER

MAX_SYMBOLS = 6  # maximum number of symbols per type; each combination of symbols is an event kind


@dataclass(frozen=True, slots=True)
class EventKind:
    """A class of events of one type that rules and atoms do not distinguish.

    The type ``OTHER`` represents all unnamed types. The events show the names in ``shown``. Atoms with indices in
    ``binds`` may bind them. If ``is_last``, no event follows.
    """

    type: str
    shown: frozenset[str]
    binds: frozenset[int]
    is_last: bool


def event_kinds(
    constraint_set: ConstraintSet, names: frozenset[str], remainder: Remainder, impossible: frozenset[str]
) -> frozenset[EventKind] | None:
    """Return all kinds of events of conforming traces, and sometimes more.

    An event shows its type and any combination of the type's symbols that is closed under implication. Only ``names``
    are distinguished, and events with ``impossible`` names are left out. The result is None if some type has too many
    symbols.
    """
    symbols: dict[str, list[str]] = {}
    for name in names & constraint_set.symbols.keys():
        symbols.setdefault(constraint_set.type_of(name), []).append(name)
    if any(len(of_type) > MAX_SYMBOLS for of_type in symbols.values()):
        return None
    types = {constraint_set.type_of(name) for name in names}.union(
        (gap.type for gap in remainder.gaps), *(atom.types for atom in remainder.atoms if not atom.is_any_type)
    )
    kinds = {
        _kind(constraint_set, name, combination, names, remainder)
        for name in types - impossible
        for combination in _combinations(constraint_set, sorted(symbols.get(name, ())), impossible)
    }
    if _has_others(constraint_set, impossible | types):
        kinds.add(_kind(constraint_set, OTHER, frozenset(), names, remainder))
    return frozenset(kinds)


def _combinations(
    constraint_set: ConstraintSet, symbols: list[str], impossible: frozenset[str]
) -> Iterator[frozenset[str]]:
    distinguished = frozenset(symbols)
    for size in range(len(symbols) + 1):
        for selection in combinations(symbols, size):
            combination = frozenset(selection)
            implied = constraint_set.shown_with(combination)
            if implied & distinguished <= combination and not implied & impossible:
                yield combination


def _kind(
    constraint_set: ConstraintSet, name: str, combination: frozenset[str], names: frozenset[str], remainder: Remainder
) -> EventKind:
    binds = frozenset(
        index
        for index, atom in enumerate(remainder.atoms)
        if atom.is_any_type or (name in atom.types and constraint_set.shown_by(atom) & names <= combination | {name})
    )
    return EventKind(name, (combination | {name}) & names, binds, name in constraint_set.closing_ends)


def _has_others(constraint_set: ConstraintSet, types: frozenset[str]) -> bool:
    settings = constraint_set.settings
    return settings.unknown_types == "ignore" or not constraint_set.types | settings.types <= types
