"""Hot and cold events: announcements decide for a while which retained events belong in memory.

Source: section 7.3 of the specification of punctuation-aware joins. An input announces the keys of its next events.
During the scope of the announcement, events of the other input with these keys are *hot* and its other events are
*cold*. A late or wrong announcement costs reads and writes, and changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.items import Item
from literature.kernels.buckets import Arriving
from literature.punctuations import (
    Anything,
    FinitePunctuation,
    Hint,
    OneOf,
    Pattern,
    ProbablePunctuation,
    Range,
    hint_form,
    read_hint,
)
from literature.spilling.files import Block

_LIKELY = 0.5  # a less probable punctuation does not move events


@dataclass(slots=True)
class ActiveHint:
    """A hint whose scope has not ended.

    Attributes:
        number: The input whose next events it describes.
        said: The hint.
        events_left: Number of events left in its scope; None: no bound.
        until_us: Time at which its scope ends; None: no bound.
        begun: Sequence number of the first event after it.
    """

    number: int
    said: Hint
    events_left: int | None
    until_us: int | None
    begun: int

    def is_over(self, now_us: int) -> bool:
        """Whether its scope has ended."""
        return self.events_left == 0 or (self.until_us is not None and now_us >= self.until_us)

    def is_long(self, least: int) -> bool:
        """Whether at least ``least`` events, or an unknown number, are left in its scope."""
        return self.events_left is None or self.events_left >= least


class Hints:
    """The active hints of both inputs."""

    def __init__(self) -> None:
        self._active: list[ActiveHint] = []

    def __bool__(self) -> bool:
        """Whether some hint is active."""
        return bool(self._active)

    @property
    def begun(self) -> int:
        """Sequence number of the first event in the scope of an active hint; at least one must be active."""
        return min(hint.begun for hint in self._active)

    def add(self, number: int, hint: Hint, now_us: int, sequence: int) -> None:
        """Add a hint of an input about its events from a sequence number on."""
        scope = hint.scope
        until = None if scope.us is None else now_us + scope.us
        self._active.append(ActiveHint(number, hint, scope.events, until, sequence))

    def pass_items(self, items: Arriving, first: int, last: int, now_us: int) -> None:
        """Count the items from ``first`` to before ``last``, and drop hints whose scopes have ended."""
        kinds, inputs = items.kinds[first:last], items.inputs[first:last]
        came = np.bincount(inputs[kinds == Item.EVENT], minlength=2).tolist()
        for hint in self._active:
            if hint.events_left is not None:
                hint.events_left = max(0, hint.events_left - came[hint.number])
        self.pass_time(now_us)

    def pass_time(self, now_us: int) -> None:
        """Drop hints whose scopes have ended at a time."""
        self._active = [hint for hint in self._active if not hint.is_over(now_us)]

    def cold(self, number: int, keys: NDArray[np.int64], least: int) -> NDArray[np.bool_]:
        """Flags of the keys that are cold.

        Args:
            number: The input that retains the events.
            keys: Keys of the events.
            least: Least number of events left in the scope of a hint that counts.
        """
        is_cold = np.zeros(len(keys), np.bool_)
        for hint in self._about(number, least):
            inside = inside_of(hint.said.pattern, keys)
            if isinstance(hint.said, FinitePunctuation):
                is_cold |= ~inside
            elif hint.said.probability >= _LIKELY:
                is_cold |= inside
        return is_cold

    def hot(self, number: int, keys: NDArray[np.int64], least: int) -> NDArray[np.bool_]:
        """Flags of the keys that are hot: announced, and cold by no other hint."""
        is_hot = np.zeros(len(keys), np.bool_)
        for pattern in self._announced(number, least):
            is_hot |= inside_of(pattern, keys)
        return is_hot & ~self.cold(number, keys, least)

    def may_be_hot(self, number: int, block: Block, least: int) -> bool:
        """Whether a block of an input may have hot events, by its fences."""
        return any(meets(pattern, block.low, block.high) for pattern in self._announced(number, least))

    def dump(self) -> list[list[Any]]:
        """The state as a JSON value."""
        return [
            [hint.number, hint_form(hint.said), hint.events_left, hint.until_us, hint.begun] for hint in self._active
        ]

    def load(self, saved: Iterable[Sequence[Any]]) -> None:
        """Load a state that ``dump`` returned."""
        self._active = [
            ActiveHint(number, read_hint(form), events_left, until_us, begun)
            for number, form, events_left, until_us, begun in saved
        ]

    def _about(self, number: int, least: int) -> list[ActiveHint]:
        """The hints that count for an input's retained events: those about the other input."""
        return [hint for hint in self._active if hint.number != number and hint.is_long(least)]

    def _announced(self, number: int, least: int) -> list[Pattern]:
        hints = self._about(number, least)
        return [hint.said.pattern for hint in hints if not isinstance(hint.said, ProbablePunctuation)]


def inside_of(pattern: Pattern, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flags of the integer keys that a pattern has."""
    if isinstance(pattern, OneOf):
        return np.isin(keys, np.array([int(value) for value in pattern.values], np.int64))
    flags = np.full(len(keys), isinstance(pattern, Range | Anything))
    if isinstance(pattern, Range) and pattern.low is not None:
        flags &= keys >= int(pattern.low) + (not pattern.has_low)
    if isinstance(pattern, Range) and pattern.high is not None:
        flags &= keys <= int(pattern.high) - (not pattern.has_high)
    return flags


def meets(pattern: Pattern, low: int, high: int) -> bool:
    """Whether a pattern may have an integer key from ``low`` to ``high``."""
    if isinstance(pattern, OneOf):
        return any(low <= int(value) <= high for value in pattern.values)
    if isinstance(pattern, Range):
        is_above = pattern.low is None or high >= int(pattern.low)
        return is_above and (pattern.high is None or low <= int(pattern.high))
    return isinstance(pattern, Anything)
