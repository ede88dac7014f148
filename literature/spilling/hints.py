"""What announcements say of the events that are held: which are hot and which are cold, for a while.

Source: section 7.3 of the specification of punctuation-aware joins. An input announces the keys of its next events.
Events of the other input with these keys are *hot* in that scope, its others are *cold*; afterwards nothing is known of
them again. What is announced late, or is wrong, costs reads and writes, and changes no result.
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

_LIKELY = 0.5  # a probable punctuation of less says nothing about where events belong


@dataclass(slots=True)
class ActiveHint:
    """A hint that holds.

    Attributes:
        number: The input whose events it is about.
        said: What it says.
        events_left: Events in its scope that have not come; None: no bound.
        until_us: Time at which it ends; None: no bound.
        begun: Sequence number of the first event behind it.
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
        """Whether its scope has so many events still, as far as that is known."""
        return self.events_left is None or self.events_left >= least


class Hints:
    """Hints of both inputs that hold."""

    def __init__(self) -> None:
        self._active: list[ActiveHint] = []

    def __bool__(self) -> bool:
        """Whether some hold."""
        return bool(self._active)

    @property
    def begun(self) -> int:
        """Sequence number of the first event in the scope of one; some hold."""
        return min(hint.begun for hint in self._active)

    def add(self, number: int, said: Hint, now_us: int, sequence: int) -> None:
        """An input says something of its events from a sequence number on."""
        scope = said.scope
        until = None if scope.us is None else now_us + scope.us
        self._active.append(ActiveHint(number, said, scope.events, until, sequence))

    def pass_items(self, items: Arriving, first: int, last: int, now_us: int) -> None:
        """Items came from a place up to another; scopes that have ended are forgotten."""
        kinds, inputs = items.kinds[first:last], items.inputs[first:last]
        came = np.bincount(inputs[kinds == Item.EVENT], minlength=2).tolist()
        for hint in self._active:
            if hint.events_left is not None:
                hint.events_left = max(0, hint.events_left - came[hint.number])
        self.pass_time(now_us)

    def pass_time(self, now_us: int) -> None:
        """Time has come so far."""
        self._active = [hint for hint in self._active if not hint.is_over(now_us)]

    def cold(self, number: int, keys: NDArray[np.int64], least: int) -> NDArray[np.bool_]:
        """Which keys of events of an input are cold, by hints with so many events still.

        Args:
            number: The input that holds them.
            keys: Theirs.
            least: Scopes that are shorter do not count.
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
        """Which keys of events of an input are hot: announced, and cold by nothing."""
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
        """Take what ``dump`` gave."""
        self._active = [
            ActiveHint(number, read_hint(form), events_left, until_us, begun)
            for number, form, events_left, until_us, begun in saved
        ]

    def _about(self, number: int, least: int) -> list[ActiveHint]:
        """Those about the events that an input's events would join."""
        return [hint for hint in self._active if hint.number != number and hint.is_long(least)]

    def _announced(self, number: int, least: int) -> list[Pattern]:
        hints = self._about(number, least)
        return [hint.said.pattern for hint in hints if not isinstance(hint.said, ProbablePunctuation)]


def inside_of(pattern: Pattern, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which integer keys a pattern has."""
    if isinstance(pattern, OneOf):
        return np.isin(keys, np.array([int(value) for value in pattern.values], np.int64))
    flags = np.full(len(keys), isinstance(pattern, Range | Anything))
    if isinstance(pattern, Range) and pattern.low is not None:
        flags &= keys >= int(pattern.low) + (not pattern.has_low)
    if isinstance(pattern, Range) and pattern.high is not None:
        flags &= keys <= int(pattern.high) - (not pattern.has_high)
    return flags


def meets(pattern: Pattern, low: int, high: int) -> bool:
    """Whether a pattern may have an integer key between two, these included."""
    if isinstance(pattern, OneOf):
        return any(low <= int(value) <= high for value in pattern.values)
    if isinstance(pattern, Range):
        is_above = pattern.low is None or high >= int(pattern.low)
        return is_above and (pattern.high is None or low <= int(pattern.high))
    return isinstance(pattern, Anything)
