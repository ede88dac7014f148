"""The events of one window of a group, or what is kept of them, with the values over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from aggregates.accumulators import accumulator_of
from aggregates.folding import folded_of
from aggregates.rows import Scalar
from aggregates.values import AggregateValue


class Held(NamedTuple):
    """An event in a window; windows are in the order of time, and of taking in where times are equal."""

    time_us: int
    number: int
    id: str
    arguments: tuple[Scalar, ...]
    event: Mapping[str, Any] | None


class WindowContents(ABC):
    """What a window has of its events; never of none, except before the first one."""

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows it keeps."""

    @property
    @abstractmethod
    def oldest_us(self) -> int:
        """The time of the oldest event."""

    @property
    @abstractmethod
    def newest_us(self) -> int:
        """The time of the newest event."""

    @abstractmethod
    def add(self, event: Held) -> None:
        """Take an event in, at its place in the order of time."""

    @abstractmethod
    def values(self) -> tuple[Scalar, ...]:
        """The current values, in the order of the document; of a window without events all but counts are null."""

    def newest(self, most: int) -> list[Mapping[str, Any]]:
        """What derived events show of the newest events, oldest first."""
        return []

    def errors(self) -> dict[str, float]:
        """The relative standard errors of values that are estimated, by name."""
        return {}

    @abstractmethod
    def dump(self) -> list[Any]:
        """As plain JSON."""


class Contents(WindowContents):
    """The events of a window, oldest first, and the values over them."""

    __slots__ = ("_computed", "_read", "events")

    def __init__(self, values: Sequence[AggregateValue]) -> None:
        accumulators = [accumulator_of(one) for one in values]
        self._computed = [(place, one) for place, one in enumerate(accumulators) if one is not None]
        self._read = [
            (place, -(one.function == "last")) for place, one in enumerate(values) if accumulators[place] is None
        ]
        self.events: deque[Held] = deque()

    @property
    def rows(self) -> int:
        return len(self.events)

    @property
    def oldest_us(self) -> int:
        return self.events[0].time_us

    @property
    def newest_us(self) -> int:
        return self.events[-1].time_us

    def add(self, event: Held) -> None:
        place = len(self.events)
        while place and self.events[place - 1][:2] > event[:2]:
            place -= 1
        if place == len(self.events):
            self.events.append(event)
        else:
            self.events.insert(place, event)
        for place, accumulator in self._computed:
            accumulator.add(event.arguments[place])

    def remove_until(self, time_us: int) -> None:
        """Take out the events up to a time."""
        while self.events and self.events[0].time_us <= time_us:
            self.remove_first()

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
        found = [accumulator.value() for _, accumulator in self._computed]
        for place, edge in self._read:
            found.insert(place, self.events[edge].arguments[place] if self.events else None)
        return tuple(found)

    def newest(self, most: int) -> list[Mapping[str, Any]]:
        if not most:
            return []
        some = islice(reversed(self.events), most)
        return [one.event for one in some if one.event is not None][::-1]

    def dump(self) -> list[Any]:
        return [True, [list(one) for one in self.events]]

    def _forget(self, event: Held) -> None:
        for place, accumulator in self._computed:
            accumulator.remove(event.arguments[place])


class Folded(WindowContents):
    """The values of a window that no event leaves, without its events."""

    __slots__ = ("_edges", "_folded", "_newest_us", "_oldest_us", "_values")

    def __init__(self, values: Sequence[AggregateValue]) -> None:
        self._values = values
        self._folded = [folded_of(one) for one in values]
        self._edges: list[tuple[int, int, tuple[Scalar, ...]]] = []  # the first and the last event, where they are read
        self._oldest_us = self._newest_us = 0

    @property
    def rows(self) -> int:
        return 1

    @property
    def oldest_us(self) -> int:
        return self._oldest_us

    @property
    def newest_us(self) -> int:
        return self._newest_us

    def add(self, event: Held) -> None:
        edge = event.time_us, event.number, event.arguments
        if not self._edges:
            self._edges, self._oldest_us, self._newest_us = [edge, edge], event.time_us, event.time_us
        else:
            self._edges = [min(self._edges[0], edge, key=_order), max(self._edges[1], edge, key=_order)]
            self._oldest_us = min(self._oldest_us, event.time_us)
            self._newest_us = max(self._newest_us, event.time_us)
        for folded, argument in zip(self._folded, event.arguments, strict=True):
            if folded is not None:
                folded.add(argument)

    def values(self) -> tuple[Scalar, ...]:
        return tuple(
            folded.value() if folded is not None else self._edges[0 if value.function == "first" else 1][2][place]
            for place, (value, folded) in enumerate(zip(self._values, self._folded, strict=True))
        )

    def errors(self) -> dict[str, float]:
        pairs = zip(self._values, self._folded, strict=True)
        return {one.name: folded.error for one, folded in pairs if folded is not None and folded.error is not None}

    def dump(self) -> list[Any]:
        return [False, self._edges, [None if one is None else one.dump() for one in self._folded]]

    def restore(self, edges: Sequence[Any], states: Sequence[Any]) -> None:
        """Restore what ``dump`` returned."""
        self._edges = [(time_us, number, tuple(arguments)) for time_us, number, arguments in edges]
        self._oldest_us, self._newest_us = self._edges[0][0], self._edges[1][0]
        for folded, state in zip(self._folded, states, strict=True):
            if folded is not None:
                folded.load(state)


def loaded_contents(saved: Sequence[Any], values: Sequence[AggregateValue]) -> WindowContents:
    """Read the JSON form of ``WindowContents.dump``."""
    is_held, *state = saved
    if not is_held:
        folded = Folded(values)
        folded.restore(*state)
        return folded
    contents = Contents(values)
    for time_us, number, identity, arguments, event in state[0]:
        contents.add(Held(time_us, number, identity, tuple(arguments), event))
    return contents


def _order(edge: tuple[int, int, tuple[Scalar, ...]]) -> tuple[int, int]:
    return edge[:2]
