"""Reference of a spilling join: every event is kept and compared with every other event."""

from __future__ import annotations

from dataclasses import dataclass, field

from literature.punctuations import FinitePunctuation, Hint, Pattern, matches
from literature.punctuations.reference import ReferenceClosedSet


@dataclass
class ReferencePairJoin:
    """Reference of ``SpillingJoin``, which must find the same pairs, in any order and at any time.

    Attributes:
        pairs: Sequence numbers of the events of the first and the second input, with the later time.
        keys: Key of each event that could join, by sequence number.
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
        """Process an event; its key is None if it has none."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        self._now_us = max(self._now_us, time_us)
        if key is None:
            return
        if self.closed[number].covers(key):
            self.violations.append(sequence)
            return
        for other_sequence, other_number, other_key in self._taken:
            if other_number != number and other_key == key:
                first, second = (sequence, other_sequence) if number == 0 else (other_sequence, sequence)
                self.pairs.add((first, second, self._now_us))
        self._taken.append((sequence, number, key))
        self.keys[sequence] = key

    def take_punctuation(self, number: int, pattern: Pattern, time_us: int) -> None:
        """Close the keys of a pattern on an input."""
        self._now_us = max(self._now_us, time_us)
        self.closed[number].add(pattern)

    def useful(self, number: int) -> int:
        """The number of an input's events that a later event can join."""
        return sum(source == number and not self.closed[1 - number].covers(key) for _, source, key in self._taken)


@dataclass
class ReferenceHints:
    """Reference of ``Hints``: every hint is kept, with the number of events since.

    Attributes:
        said: Input, hint and time of each hint.
        came: Number of events of each hint's input since the hint.
        now_us: The current time.
    """

    said: list[tuple[int, Hint, int]] = field(default_factory=list)
    came: list[int] = field(default_factory=list)
    now_us: int = 0

    def add(self, number: int, hint: Hint) -> None:
        """Add a hint of an input."""
        self.said.append((number, hint, self.now_us))
        self.came.append(0)

    def take_event(self, number: int, time_us: int) -> None:
        """Process an event."""
        self.now_us = max(self.now_us, time_us)
        self.came = [came + (entry[0] == number) for came, entry in zip(self.came, self.said, strict=True)]

    def is_cold(self, number: int, key: int) -> bool:
        """Whether some active hint implies that the other input has no event of a key soon."""
        return any(
            not matches(hint.pattern, key)
            if isinstance(hint, FinitePunctuation)
            else hint.probability >= 0.5 and matches(hint.pattern, key)
            for hint in self._about(number)
        )

    def is_hot(self, number: int, key: int) -> bool:
        """Whether some active hint announces a key, and none makes it cold."""
        announced = [hint for hint in self._about(number) if isinstance(hint, FinitePunctuation)]
        return any(matches(hint.pattern, key) for hint in announced) and not self.is_cold(number, key)

    def _about(self, number: int) -> list[Hint]:
        return [
            hint
            for (other, hint, at_us), came in zip(self.said, self.came, strict=True)
            if other != number
            and (hint.scope.events is None or came < hint.scope.events)
            and (hint.scope.us is None or self.now_us - at_us < hint.scope.us)
        ]
