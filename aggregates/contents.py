"""The events of one window of a group, with the values over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from aggregates.accumulators import accumulator_of
from aggregates.rows import Scalar
from aggregates.values import AggregateValue


class Held(NamedTuple):
    """An event in a window; windows are in the order of time, and of taking in where times are equal."""

    time_us: int
    number: int
    id: str
    arguments: tuple[Scalar, ...]
    event: Mapping[str, Any] | None


class Contents:
    """The events of a window, oldest first, and the values over them."""

    __slots__ = ("_accumulators", "_values", "events")

    def __init__(self, values: Sequence[AggregateValue]) -> None:
        self._values = values
        self._accumulators = [accumulator_of(one) for one in values]
        self.events: deque[Held] = deque()

    def __len__(self) -> int:
        return len(self.events)

    def add(self, event: Held) -> None:
        """Take an event in, at its place in the order of time."""
        place = len(self.events)
        while place and self.events[place - 1][:2] > event[:2]:
            place -= 1
        if place == len(self.events):
            self.events.append(event)
        else:
            self.events.insert(place, event)
        for accumulator, argument in zip(self._accumulators, event.arguments, strict=True):
            if accumulator is not None:
                accumulator.add(argument)

    def remove_until(self, time_us: int) -> bool:
        """Take out the events up to a time; whether there were any."""
        before = len(self.events)
        while self.events and self.events[0].time_us <= time_us:
            self.remove_first()
        return len(self.events) < before

    def remove_first(self) -> None:
        """Take out the oldest event."""
        self._forget(self.events.popleft())

    def retract(self, identity: str) -> bool:
        """Take out the newest event with an id; whether there was one."""
        for place in range(len(self.events) - 1, -1, -1):
            if self.events[place].id == identity:
                gone = self.events[place]
                del self.events[place]
                self._forget(gone)
                return True
        return False

    def values(self) -> tuple[Scalar, ...]:
        """The current values, in the order of the document; of a window without events all but counts are null."""
        found: list[Scalar] = []
        for place, (value, accumulator) in enumerate(zip(self._values, self._accumulators, strict=True)):
            if accumulator is not None:
                found.append(accumulator.value())
            elif self.events:
                found.append(self.events[0 if value.function == "first" else -1].arguments[place])
            else:
                found.append(None)
        return tuple(found)

    def newest(self, most: int) -> list[Mapping[str, Any]]:
        """What derived events show of the newest events, oldest first."""
        if not most:
            return []
        some = islice(reversed(self.events), most)
        return [one.event for one in some if one.event is not None][::-1]

    def _forget(self, event: Held) -> None:
        for accumulator, argument in zip(self._accumulators, event.arguments, strict=True):
            if accumulator is not None:
                accumulator.remove(argument)
