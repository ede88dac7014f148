"""Finds why rules, or a workflow, are broken or leave no place for a remainder."""

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
    """A minimal reason why rules do not let ``remainder`` complete after ``state``; None if they do.

    Order and occurrence alone must allow it.
    """
    if outlook.keeps_rules(state, remainder):
        return None
    known = outlook.constraint_set
    settings = replace(known.settings, types=known.settings.types | known.types)

    def clashes(parts: Sequence[Part], part: Remainder) -> bool:
        some = Outlook(ConstraintSet.of(parts, symbols=known.symbols, settings=settings), outlook.ties)
        kept = set(some.constraint_set.rules)
        places = tuple(place for rule, place in zip(known.rules, state.places, strict=True) if rule in kept)
        return not some.can_complete(replace(state, places=places), part)

    return least_clash(known.parts, remainder, clashes)


def least_clash(
    parts: Sequence[Part], remainder: Remainder, clashes: Callable[[Sequence[Part], Remainder], bool]
) -> Clash:
    """The minimal clash of some constraints with a remainder; ``clashes`` is monotone, and true for all of them."""
    gaps = _least(remainder.gaps, lambda some: clashes(parts, replace(remainder, gaps=tuple(some))))
    whole = replace(remainder, gaps=tuple(gaps))
    kept = _least(parts, lambda some: clashes(some, whole))
    atoms = _least(range(len(whole.atoms)), lambda some: clashes(kept, whole.only(frozenset(some))))
    return Clash(constraints=tuple(kept), remainder=whole.only(frozenset(atoms)))


def _least(items: Iterable[_Item], clashes: Callable[[Sequence[_Item]], bool]) -> list[_Item]:
    """A minimal part (by inclusion) of ``items`` that still clashes, in their order; large groups are dropped first."""
    kept = list(items)
    size = len(kept)
    while size:
        begin = 0
        while begin < len(kept):
            fewer = kept[:begin] + kept[begin + size :]
            if clashes(fewer):
                kept = fewer
            else:
                begin += size
        size //= 2
    return kept
