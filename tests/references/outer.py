"""Reference implementation of a join whose inputs may be absent, slow and obvious: it keeps all combinations.

Source: the full disjunction (Galindo-Legaria, "Outerjoins as disjunctions", SIGMOD 1994), restricted to combinations
with all required inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from joins.items import Why
from joins.kernels.tables import FINISHED, NIL
from tests.references.joins import ReferenceEvent, ReferenceJoin


@dataclass(slots=True)
class _Combination:
    """A combination of one event each of some inputs in their windows; ``is_extended``: part of a larger one."""

    members: dict[int, ReferenceEvent]
    is_extended: bool = False
    is_reported: bool = False


@dataclass
class ReferenceOuterJoin(ReferenceJoin):
    """The reference for ``WindowJoin`` with ``optional`` inputs (here ``outer``), for any number of inputs.

    An absent input of a combination is -2 if it has finished the key, else -1.
    """

    _found: list[_Combination] = field(default_factory=list)

    def _join(self, event: ReferenceEvent) -> None:
        larger = [_Combination({event.number: event})]
        for known in self._found:
            events = known.members
            is_of_key = all(one.key == event.key for one in events.values())
            if is_of_key and event.number not in events and all(map(self._is_inside, events.values())):
                known.is_extended = True
                larger.append(_Combination({**events, event.number: event}))
        for one in larger:
            one.is_extended = any(one.members.items() < other.members.items() for other in larger)
        self._found += larger

    def _is_over(self, key: int | None, but: ReferenceEvent | None = None) -> bool:
        """Whether no combination can contain a key any more; inputs that may be absent do not end a key."""
        inputs = range(len(self.windows))
        stored = {one.number for one in self._taken if one.key == key and one is not but and self._is_inside(one)}
        return all(self._has_closed(number, key) for number in inputs) or any(
            self._has_closed(number, key) and number not in stored for number in inputs if number not in self.outer
        )

    def _settle(self, why: Why, *, came: bool = False) -> None:
        """Report finished combinations, which are and stay part of no larger one, and keys that are over."""
        for one in self._found:
            if one.is_extended or one.is_reported or not self._has_required(one) or self._can_grow(one):
                continue
            one.is_reported = True
            absent = list(self._absent(one))
            key = next(iter(one.members.values())).key
            has_closed = {number: self._has_closed(number, key) for number in absent}
            codes = {number: FINISHED if closed else NIL for number, closed in has_closed.items()}
            present = {number: event.sequence for number, event in one.members.items()}
            members = {**codes, **present}
            self.results.append((self._now_us, tuple(members[number] for number in range(len(self.windows)))))
            by = Why.BY_CLOSING if all(has_closed.values()) else Why.BY_WINDOW
            self.whys.append(by if absent else Why.LAST_EVENT)
        for key in sorted({key for _, key in self._closings} - set(self.closed)):
            if self._is_over(key):
                self.closed.append(key)

    def _may_be_alone(self, number: int) -> bool:
        return all(other in self.outer for other in range(len(self.windows)) if other != number)

    def _absent(self, combination: _Combination) -> Iterator[int]:
        return (number for number in range(len(self.windows)) if number not in combination.members)

    def _has_required(self, combination: _Combination) -> bool:
        return all(number in self.outer for number in self._absent(combination))

    def _can_grow(self, combination: _Combination) -> bool:
        """Whether a later event could join all members of a combination."""
        key = next(iter(combination.members.values())).key
        are_inside = all(map(self._is_inside, combination.members.values()))
        return are_inside and not all(self._has_closed(number, key) for number in self._absent(combination))
