"""Finds the reason for an impossible remainder: a minimal set of constraints, atoms and gaps in conflict."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from constraints.model import Clause, ConstraintSet, Part, Prior, Require, Rule
from constraints.reasoning.reasoner import Reason, Reasoner
from constraints.remainder import NOTHING, Remainder

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A minimal reason why the rest of a pattern cannot complete: without any one of its parts, the rest could.

    The parts are constraints, and the atoms and gaps of ``remainder``. An empty remainder means that no trace can
    continue.

    Attributes:
        reason: The reason that the reasoner gives; None for a clash with rules, or with a workflow.
        constraints: Requirements first, then the constraint that cannot be satisfied. A constraint that excludes
            events is listed before the rule that needs these events. If a workflow takes part, only hand-written
            constraints are listed.
        events: Names already seen that take part, as far as they are known.
        workflow: The name of the workflow, if its automaton makes the remainder impossible.
    """

    reason: Reason | None = None
    constraints: tuple[Part, ...]
    remainder: Remainder
    events: frozenset[str] = frozenset()
    workflow: str | None = None


def find_clash(
    constraint_set: ConstraintSet,
    seen: frozenset[str] = frozenset(),
    remainder: Remainder = NOTHING,
    settled: frozenset[str] | None = None,
    *,
    reasoner: Reasoner | None = None,
) -> Clash | None:
    """Find a minimal reason why ``remainder`` cannot complete after ``seen``, or return None if it can.

    ``seen`` and ``settled`` are names; see ``Reasoner.is_alive``. Pass the set's ``reasoner`` if there is one, to save
    time.

    Reasons without gaps are preferred. Among these, reasons are preferred whose constraints are few derivation steps
    away from the seen and needed names, then reasons about early atoms.
    """
    question = _Question(reasoner or Reasoner(constraint_set), constraint_set, seen, settled)
    if question.is_alive(None, remainder):
        return None
    gaps = _minimal(remainder.gaps, lambda subset: not question.is_alive(None, replace(remainder, gaps=tuple(subset))))
    forbidding = replace(remainder, gaps=tuple(gaps))
    names = seen | question.needed(forbidding)
    parts = _minimal(_nearest_first(constraint_set, names), lambda subset: not question.is_alive(subset, forbidding))
    indices = range(len(remainder.atoms))
    atoms = _minimal(indices, lambda subset: not question.is_alive(parts, forbidding.only(frozenset(subset))))
    clashing, core = forbidding.only(frozenset(atoms)), constraint_set.of_parts(parts)
    least = replace(question, reasoner=question.reasoner.with_only(parts))
    reason = least.reason(clashing)
    assert reason is not None, "each part of the clash was needed for it"
    return Clash(
        reason=reason,
        constraints=_chained(core, seen | question.needed(clashing)),
        remainder=clashing,
        events=frozenset(
            name
            for name in seen & core.names.union(gap.type for gap in clashing.gaps)
            if least.without(name).reason(clashing) is None
        ),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    reasoner: Reasoner
    constraint_set: ConstraintSet
    seen: frozenset[str]
    settled: frozenset[str] | None

    def is_alive(self, parts: Iterable[Part] | None, remainder: Remainder) -> bool:
        question = self if parts is None else replace(self, reasoner=self.reasoner.with_only(parts))
        return question.reason(remainder) is None

    def reason(self, remainder: Remainder) -> Reason | None:
        reasoner = self.reasoner
        settled = None if self.settled is None else reasoner.mask(self.settled)
        return reasoner.reason(reasoner.mask(self.seen), reasoner.goal(remainder), settled)

    def needed(self, remainder: Remainder) -> frozenset[str]:
        return self.reasoner.names(self.reasoner.goal(remainder).needed)

    def without(self, name: str) -> _Question:
        names = {name, *(other for other, implied in self.constraint_set.implied.items() if name in implied)}
        settled = None if self.settled is None else self.settled - names
        return replace(self, seen=self.seen - names, settled=settled)


def _minimal(items: Sequence[_Item], clashes: Callable[[list[_Item]], bool]) -> list[_Item]:
    """Return a minimal subset of ``items`` that clashes, in their order. Early items are preferred.

    ``clashes`` must be monotone, and true for all items. Each round finds the shortest prefix that clashes together
    with the selected items, by doubling its length and then by bisection. The last item of the prefix is selected.
    """
    needed: list[_Item] = []
    candidates = list(items)

    def reaches(size: int) -> bool:
        return clashes([*candidates[:size], *needed])

    while not clashes(needed):
        too_short, length = 0, 1
        while length < len(candidates) and not reaches(length):
            too_short, length = length, 2 * length
        length = min(length, len(candidates))
        length = too_short + 1 + bisect_left(range(too_short + 1, length), True, key=reaches)
        needed.insert(0, candidates[length - 1])
        del candidates[length - 1 :]
    return needed


def _nearest_first(constraint_set: ConstraintSet, names: frozenset[str]) -> list[Part]:
    """Return the constraints that derive names from ``names``, and orders, exclusions and end events of these names.

    They are sorted by the number of derivation steps. Each required name is derived once, in the fewest steps. At equal
    distance, end events and clauses precede orders.
    """
    distances, derivation = _derivation(constraint_set, names)
    exclusions = [
        part
        for part in constraint_set.parts
        if not isinstance(part, Rule) and not _is_definite(part) and all(name in distances for name in part.names)
    ]
    return sorted(
        [*derivation, *exclusions],
        key=lambda part: (max(distances[name] for name in part.names), isinstance(part, Prior)),
    )


def _chained(core: ConstraintSet, names: frozenset[str]) -> tuple[Part, ...]:
    """Sort the parts: first requirements in the order in which they derive names from ``names``, then the others."""
    _, derivation = _derivation(core, names)
    return (*derivation, *(part for part in core.parts if part not in derivation))


def _derivation(constraint_set: ConstraintSet, names: frozenset[str]) -> tuple[dict[str, int], list[Part]]:
    """Derive all names that ``names`` require.

    The result has the number of derivation steps to each name, and for each derived name the constraint that requires
    it.
    """
    distances = dict.fromkeys(constraint_set.shown_with(names), 0)
    derivation: list[Part] = []
    assumes_completion = constraint_set.settings.completion == "assumed"
    waiting = [part for part in constraint_set.constraints if assumes_completion and _is_definite(part)]
    is_growing = True
    while is_growing:
        waiting = [part for part in waiting if part.names[-1] not in distances]
        derived: dict[str, Part] = {}
        for part in waiting:
            if all(name in distances for name in part.names[:-1]):
                derived.setdefault(part.names[-1], part)
        step = 1 + max(distances.values(), default=0)
        for name in constraint_set.shown_with(derived):
            distances.setdefault(name, step)
        derivation.extend(derived.values())
        is_growing = bool(derived)
    return distances, derivation


def _is_definite(part: Part) -> bool:
    return isinstance(part, Require) or (isinstance(part, Clause) and part.head is not None)
