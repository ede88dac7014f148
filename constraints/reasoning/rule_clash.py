"""Finds why rules, or a workflow, are broken or leave no place for a remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from constraints.model import ConstraintSet, Part
from constraints.reasoning.outlook import Outlook
from constraints.remainder import NOTHING, Remainder
from nfa import MonitorState

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastClash:
    """A minimal clash with rules or with a workflow: without any one constraint, atom or gap, the rest is possible.

    Rules come after the constraints that exclude events which they would need; in a clash with a workflow, the
    hand-written constraints that take part are mostly none. The atoms of ``remainder`` have no place, and its gaps
    matter; it has neither if no trace can continue.
    """

    constraints: tuple[Part, ...]
    remainder: Remainder


def find_rule_clash(outlook: Outlook, state: MonitorState, remainder: Remainder = NOTHING) -> LeastClash | None:
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
) -> LeastClash:
    """The minimal clash of some constraints with a remainder; ``clashes`` is monotone, and true for all of them."""
    gaps = _least(remainder.gaps, lambda some: clashes(parts, replace(remainder, gaps=tuple(some))))
    whole = replace(remainder, gaps=tuple(gaps))
    kept = _least(parts, lambda some: clashes(some, whole))
    atoms = _least(range(len(whole.atoms)), lambda some: clashes(kept, whole.only(frozenset(some))))
    return LeastClash(constraints=tuple(kept), remainder=whole.only(frozenset(atoms)))


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
