"""The meaning of a join that spills, slow and obvious: every event is kept and compared with every other one."""

from __future__ import annotations

from dataclasses import dataclass, field

from joins.punctuations.patterns import Pattern
from joins.punctuations.reference import ReferenceClosedSet


@dataclass
class ReferencePairJoin:
    """What ``SpillingJoin`` must find, in any order and at any time.

    Attributes:
        pairs: Sequence numbers of the first and the second input, with the later time.
        keys: Key of each event that took part, by sequence number.
        violations: Sequence numbers of events of keys that their own input had closed.
    """

    pairs: set[tuple[int, int, int]] = field(default_factory=set)
    keys: dict[int, int] = field(default_factory=dict)
    violations: list[int] = field(default_factory=list)
    closed: tuple[ReferenceClosedSet, ReferenceClosedSet] = field(
        default_factory=lambda: (ReferenceClosedSet(), ReferenceClosedSet())
    )
    _taken: list[tuple[int, int, int]] = field(default_factory=list)
    _sequence: int = 0
    _now_us: int = -(2**62)

    def take_event(self, number: int, key: int | None, time_us: int) -> None:
        """An event comes; None: it has no key."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._now_us = max(self._now_us, time_us)
        if key is None:
            return
        if self.closed[number].covers(key):
            self.violations.append(sequence)
            return
        for other, other_number, other_key in self._taken:
            if other_number != number and other_key == key:
                first, second = (sequence, other) if number == 0 else (other, sequence)
                self.pairs.add((first, second, self._now_us))
        self._taken.append((sequence, number, key))
        self.keys[sequence] = key

    def take_punctuation(self, number: int, pattern: Pattern, time_us: int) -> None:
        """An input closes keys."""
        self._now_us = max(self._now_us, time_us)
        self.closed[number].add(pattern)

    def useful(self, number: int) -> int:
        """The number of an input's events that an event to come can join."""
        return sum(one == number and not self.closed[1 - number].covers(key) for _, one, key in self._taken)
