"""Attempts: occurrences bound to events, wholly or in part, and the scopes of their conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nfa.syntax import Atom, Pattern
from streams import Event
from tests.references.patterns.layout import Layout, Neighbour, Spot
from tests.references.patterns.traces import Trace
from tests.references.patterns.values import DataScope, is_taken

Bindings: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]  # sorted by alias; places in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Some occurrences of a skeleton, bound to distinct events of a trace, which are named by place.

    A partial match has the latest possible end in ``horizon_us``; None for a whole match. ``ghost`` is the place of a
    hypothetical event; it is taken only where it is bound.
    """

    pattern: Pattern
    layout: Layout
    trace: Trace
    bound: Mapping[int, int]
    horizon_us: int | None = None
    ghost: int | None = None

    @property
    def start_us(self) -> int:
        return min(self.trace.time(place) for place in self.bound.values())

    @property
    def window_end_us(self) -> int | None:
        """When the clause WITHIN ends the attempt; None: never."""
        pattern, start_us = self.pattern, self.start_us
        if pattern.within_business is not None:
            return self.trace.business_end(pattern.within_business, start_us)
        return None if pattern.within_us is None else start_us + pattern.within_us

    @property
    def end_us(self) -> int:
        """Time of the latest bound event."""
        return max(self.trace.time(place) for place in self.bound.values())

    def places(self, numbers: Iterable[int]) -> list[int]:
        """The events of the bound ones among some occurrences, in trace order."""
        return sorted(self.bound[number] for number in numbers if number in self.bound)

    def behind(self, neighbour: Neighbour) -> list[int]:
        """The places of the events of an edge's X, the neighbour before it."""
        places = self.places(neighbour.members)
        return places[:1] if neighbour.is_earliest else places

    def unbound(self, places: Iterable[int]) -> list[int]:
        """The places, of the given ones, whose event is not bound in this match."""
        taken = set(self.bound.values())
        return [place for place in places if place not in taken]

    def takes(self, atom: Atom, spot: Spot, place: int, *, is_step: bool = True) -> bool:
        """Whether ``takes`` (4.3) holds; for NOT and UNTIL (no step) the own alias only has the current event."""
        if place == self.ghost:
            return False
        event = self.trace.events[place]
        if atom.condition is None:
            return is_taken(atom, DataScope(own=atom.alias, current=event))
        groups = self._groups(spot.pre)
        if not is_step:
            groups.pop(atom.alias, None)
        return is_taken(atom, DataScope(own=atom.alias, current=event, plain=self._plain(spot), groups=groups))

    def bindings(self) -> Bindings:
        found: dict[str, list[int]] = {}
        for number, place in self.bound.items():
            found.setdefault(self.layout.occurrences[number].atom.alias, []).append(place)
        return tuple(sorted((alias, tuple(sorted(places))) for alias, places in found.items()))

    def _groups(self, numbers: Iterable[int]) -> dict[str, tuple[Event, ...]]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            if number in self.bound:
                found.setdefault(self.layout.occurrences[number].atom.alias, []).append(self.bound[number])
        return {alias: tuple(self.trace.events[place] for place in sorted(places)) for alias, places in found.items()}

    def _plain(self, spot: Spot) -> dict[str, Event]:
        """Bound events by alias, in the same iteration of the innermost repetition around both steps (rule D2)."""
        found = {}
        for number in sorted(spot.pre & self.bound.keys()):
            occurrence = self.layout.occurrences[number]
            shared = _shared(spot, occurrence.spot)
            if occurrence.spot.loops[:shared] == spot.loops[:shared]:
                found[occurrence.atom.alias] = self.trace.events[self.bound[number]]
        return found


def _shared(one: Spot, other: Spot) -> int:
    number = 0
    for (place, _), (other_place, _) in zip(one.loops, other.loops, strict=False):
        if place != other_place:
            break
        number += 1
    return number


def finished_scope(bindings: Bindings, trace: Trace) -> DataScope:
    """The scope of WHERE and RETURN."""
    groups = {alias: tuple(trace.events[place] for place in places) for alias, places in bindings}
    return DataScope(plain={alias: events[0] for alias, events in groups.items() if len(events) == 1}, groups=groups)
