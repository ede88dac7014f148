"""Traces and the order of their events (section 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from nfa.syntax import Attribute, BusinessTime, Pattern, Scalar
from streams import Event, Ties
from tests.references.patterns.values import DataScope, value_of


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one trace in log order, with the relation ``before`` among them; events are named by place.

    ``clocks`` is how far the stream's time had come with each event; empty if events come in the order of time.
    ``open_us`` are the microseconds of business time.
    """

    events: tuple[Event, ...]
    ties: Ties
    clocks: tuple[int, ...] = ()
    open_us: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.events)

    def time(self, place: int) -> int:
        return self.events[place].time_us

    def clock(self, place: int) -> int:
        """The newest time of the stream up to an event, us."""
        return self.clocks[place] if self.clocks else self.time(place)

    def business_end(self, business: BusinessTime, start_us: int) -> int | None:
        """When an amount of business time after a start has passed, by a walk; None: never."""
        left = business.us or 0
        for time_us in range(start_us, max(self.open_us, default=0) + 1):
            left -= time_us in self.open_us
            if left == 0:
                return time_us + 1
        return None

    def is_before(self, earlier: int, later: int) -> bool:
        """Whether ``e < f``: by log position, or by time if ties are simultaneous."""
        return earlier < later if self.ties == "log" else self.time(earlier) < self.time(later)

    def is_after_all(self, places: Iterable[int], place: int) -> bool:
        """Whether ``X < x``: an event is after all events of X."""
        return all(self.is_before(earlier, place) for earlier in places)

    def is_before_all(self, place: int, places: Iterable[int]) -> bool:
        """Whether ``x < Y``: an event is before all events of Y."""
        return all(self.is_before(place, later) for later in places)

    def after(self, places: Collection[int]) -> list[int]:
        """The places of all events x with ``X < x``."""
        return [place for place in range(len(self)) if self.is_after_all(places, place)]

    def between(self, places: Collection[int], later: Collection[int]) -> list[int]:
        """The places of all events x with ``X < x < Y``."""
        return [place for place in self.after(places) if self.is_before_all(place, later)]

    def rank(self, place: int) -> tuple[int, int | str]:
        """Order of events in section 5.2: by (time, log position), or by (time, id) if ties are simultaneous."""
        event = self.events[place]
        return (event.time_us, place) if self.ties == "log" else (event.time_us, event.id)


@dataclass(frozen=True, slots=True)
class Split:
    """One trace of a stream; ``ended_us`` is the time of its end event, None if the input ended first.

    ``clocks`` is the newest time of the stream up to each event.
    """

    events: tuple[Event, ...]
    clocks: tuple[int, ...]
    ended_us: int | None


def split_traces(pattern: Pattern, events: Iterable[Event], end_events: Collection[str] = ()) -> list[Split]:
    """The traces of a pattern: events by correlation key and by the pattern's keys, cut after each end event."""
    paths = [Attribute(path) for path in pattern.keys if path != ("key",)]
    running: dict[tuple[object, ...], list[tuple[Event, int]]] = {}
    found: list[Split] = []
    newest_us: int | None = None
    for event in events:
        newest_us = event.time_us if newest_us is None else max(newest_us, event.time_us)
        values = [value_of(path, DataScope(current=event)) for path in paths]
        if None in values:
            continue
        key = (event.key, *((_kind(value), value) for value in values))
        running.setdefault(key, []).append((event, newest_us))
        if event.type in end_events:
            found.append(_split(running.pop(key), event.time_us))
    return found + [_split(trace, None) for trace in running.values()]


def _split(trace: list[tuple[Event, int]], ended_us: int | None) -> Split:
    events, clocks = zip(*trace, strict=True)
    return Split(events, clocks, ended_us)


def _kind(value: Scalar) -> str:
    """Kind of a value: numbers are equal across int and float; a boolean is not a number."""
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
