"""Why something is impossible: a minimal set of constraints and atoms that cannot go together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from constraints.model import Clause, ConstraintSet, Part, Prior, Require
from constraints.reasoner import Reasoner
from constraints.reference import Verdict, alive
from constraints.remainder import NOTHING, Remainder

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Leave out any one constraint or atom, and the rest is possible.

    Attributes:
        verdict: What ``alive`` says of these constraints and atoms.
        constraints: What is required first, the constraint that cannot be kept last.
        remainder: The atoms in conflict.
        events: Types already seen that take part.
    """

    verdict: Verdict
    constraints: tuple[Part, ...]
    remainder: Remainder
    events: frozenset[str]


def find_clash(
    constraint_set: ConstraintSet, seen: frozenset[str] = frozenset(), remainder: Remainder = NOTHING
) -> Clash | None:
    """A minimal reason why ``remainder`` cannot complete after ``seen``; None if it can.

    Among minimal reasons it prefers those that follow from seen and needed types in few steps, then those that concern
    early atoms.
    """
    if _is_alive(constraint_set.parts, seen, remainder):
        return None
    parts = _minimal(
        _nearest_first(constraint_set, seen | remainder.types), lambda some: not _is_alive(some, seen, remainder)
    )
    indices = range(len(remainder.atoms))
    atoms = _minimal(indices, lambda some: not _is_alive(parts, seen, remainder.only(frozenset(some))))
    clashing, core = remainder.only(frozenset(atoms)), ConstraintSet.of(parts)
    return Clash(
        verdict=alive(core, seen, clashing),
        constraints=_chained(core, seen | clashing.types),
        remainder=clashing,
        events=frozenset(name for name in seen & core.types if alive(core, seen - {name}, clashing)),
    )


def _is_alive(parts: Sequence[Part], seen: frozenset[str], remainder: Remainder) -> bool:
    reasoner = Reasoner(ConstraintSet.of(parts))
    return reasoner.is_alive(reasoner.mask(seen), reasoner.goal(remainder))


def _minimal(items: Sequence[_Item], clashes: Callable[[list[_Item]], bool]) -> list[_Item]:
    """A smallest-by-inclusion part of ``items`` that still clashes, in their order; early items are preferred.

    ``clashes`` is monotone and holds for all items. Each round finds the shortest beginning that clashes with what is
    kept; its last item is needed whatever else is left out.
    """
    kept: list[_Item] = []
    candidates = list(items)
    while not clashes(kept):
        length = bisect_left(range(len(candidates)), True, key=lambda size: clashes([*candidates[:size], *kept]))
        kept.insert(0, candidates[length - 1])
        del candidates[length - 1 :]
    return kept


def _nearest_first(constraint_set: ConstraintSet, known: frozenset[str]) -> list[Part]:
    """Constraints that say all there is to say if the types ``known`` occur, by the number of requirements in between.

    Each required type is derived once, in as few steps as can be. At the same distance the plainer reason comes first:
    the trace is over, never, no longer.
    """
    distances, derivation = _derivation(constraint_set, known)
    others = [part for part in constraint_set.parts if not _is_definite(part) and distances.keys() >= set(part.names)]
    return sorted(
        [*derivation, *others], key=lambda part: (max(distances[name] for name in part.names), isinstance(part, Prior))
    )


def _chained(core: ConstraintSet, known: frozenset[str]) -> tuple[Part, ...]:
    """The parts in reading order: requirements as they follow one from another, then the rest."""
    _, derivation = _derivation(core, known)
    return (*derivation, *(part for part in core.parts if part not in derivation))


def _derivation(constraint_set: ConstraintSet, known: frozenset[str]) -> tuple[dict[str, int], list[Part]]:
    """The Horn closure of ``known``: in how many steps each type follows, and one constraint for each that does."""
    distances = dict.fromkeys(known, 0)
    derivation: list[Part] = []
    for step in range(1, len(constraint_set.clauses) + 1):
        found: dict[str, Part] = {}
        for part in filter(_is_definite, constraint_set.constraints):
            *body, head = part.names
            if head not in distances and distances.keys() >= set(body):
                found.setdefault(head, part)
        if not found:
            break
        distances.update(dict.fromkeys(found, step))
        derivation.extend(found.values())
    return distances, derivation


def _is_definite(part: Part) -> bool:
    return isinstance(part, Require) or (isinstance(part, Clause) and part.head is not None)
