"""Finds the reason why rules, or a workflow, are broken or make a remainder impossible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from constraints.model import ConstraintSet, Part
from constraints.reasoning.clash import Clash
from constraints.reasoning.outlook import Outlook
from constraints.remainder import NOTHING, Remainder
from nfa import MonitorState

_Item = TypeVar("_Item")


def find_rule_clash(outlook: Outlook, state: MonitorState, remainder: Remainder = NOTHING) -> Clash | None:
    """Find a minimal reason why rules prevent ``remainder`` from completing after ``state``, or None if they do not.

    The caller has checked that order and occurrence constraints alone allow the remainder.
    """
    if outlook.keeps_rules(state, remainder):
        return None
    constraint_set = outlook.constraint_set
    settings = replace(constraint_set.settings, types=constraint_set.settings.types | constraint_set.types)

    def clashes(parts: Sequence[Part], part: Remainder) -> bool:
        reduced = Outlook(ConstraintSet.of(parts, symbols=constraint_set.symbols, settings=settings), outlook.ties)
        kept_rules = set(reduced.constraint_set.rules)
        places = tuple(
            place for rule, place in zip(constraint_set.rules, state.places, strict=True) if rule in kept_rules
        )
        return not reduced.can_complete(replace(state, places=places), part)

    return least_clash(constraint_set.parts, remainder, clashes)


def least_clash(
    parts: Sequence[Part], remainder: Remainder, clashes: Callable[[Sequence[Part], Remainder], bool]
) -> Clash:
    """Return the minimal clash of ``parts`` with a remainder.

    ``clashes`` decides whether some parts clash. It must be monotone, and true for all parts.
    """
    gaps = _least(remainder.gaps, lambda subset: clashes(parts, replace(remainder, gaps=tuple(subset))))
    whole = replace(remainder, gaps=tuple(gaps))
    minimal = _least(parts, lambda subset: clashes(subset, whole))
    atoms = _least(range(len(whole.atoms)), lambda subset: clashes(minimal, whole.only(frozenset(subset))))
    return Clash(constraints=tuple(minimal), remainder=whole.only(frozenset(atoms)))


def _least(items: Iterable[_Item], clashes: Callable[[Sequence[_Item]], bool]) -> list[_Item]:
    """Return a minimal subset of ``items`` that clashes; a smaller one may exist.

    Large groups are removed first to save time.
    """
    minimal = list(items)
    size = len(minimal)
    while size:
        begin = 0
        while begin < len(minimal):
            fewer = minimal[:begin] + minimal[begin + size :]
            if clashes(fewer):
                minimal = fewer
            else:
                begin += size
        size //= 2
    return minimal
