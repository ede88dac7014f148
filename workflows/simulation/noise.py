"""Adds noise to a simulated log: events that are missing, swapped, duplicated or late."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from streams import Event
from workflows.errors import InvalidWorkflow
from workflows.tree import Activity


class SimulatedEvent(NamedTuple):
    """An event of a simulated trace that is not in the stream yet. ``offset_us`` is its time since the trace began.

    Without durations, ``offset_us`` is 0. If ``is_copy``, the event repeats the previous event, with the same
    attributes.
    """

    activity: Activity
    offset_us: int = 0
    is_copy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings:
    """The probabilities with which an event is disturbed.

    Attributes:
        swapped: The event is swapped with the next event of its trace. Of overlapping pairs only the first is swapped.
        duplicated: The event is repeated as the next event of its trace, with the same attributes, a later time and a
            new id.
        late: The event arrives after newer events of the stream. Its time is unchanged.
        lateness_us: The longest time for which a late event is held back. The actual time is uniformly distributed. An
            event counts as late only if another event overtakes it in this time.
    """

    missing: float = 0.0
    swapped: float = 0.0
    duplicated: float = 0.0
    late: float = 0.0
    lateness_us: int = 300_000_000

    def __post_init__(self) -> None:
        for name in ("missing", "swapped", "duplicated", "late"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidWorkflow(f"noise: {name} must lie between 0 and 1, got {getattr(self, name)}")
        if self.lateness_us < 1:
            raise InvalidWorkflow(f"noise: lateness must be at least 1 microsecond, got {self.lateness_us}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCounts:
    """The number of disturbed events by kind. A swapped pair counts once."""

    missing: int = 0
    swapped: int = 0
    duplicated: int = 0
    late: int = 0


class Noise:
    """Disturbs one simulated stream and counts the disturbances. The same seed gives the same disturbances."""

    def __init__(self, settings: NoiseSettings, seed: int) -> None:
        self._settings = settings
        self._rng = Random(f"noise {seed}")  # independent of the stream's random numbers
        self._missing = self._swapped = self._duplicated = self._late = 0

    @property
    def counts(self) -> NoiseCounts:
        return NoiseCounts(missing=self._missing, swapped=self._swapped, duplicated=self._duplicated, late=self._late)

    def disturb(self, trace: list[SimulatedEvent]) -> list[SimulatedEvent]:
        """Return a trace with events removed, swapped and duplicated at random, in this order."""
        return self._duplicate(self._swap(self._thin(trace)))

    def delay(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events in the order of arrival, given in the order of time. Some arrive late, at random."""
        held: list[tuple[int, int, Event]] = []
        newest_us = -(2**63)
        for number, event in enumerate(events):
            while held and held[0][0] < event.time_us:
                newest_us = self._arrive(held[0][2], newest_us)
                yield heapq.heappop(held)[2]
            if self._rng.random() < self._settings.late:
                due_us = event.time_us + 1 + int(self._rng.random() * self._settings.lateness_us)
                heapq.heappush(held, (due_us, number, event))
                continue
            newest_us = self._arrive(event, newest_us)
            yield event
        while held:
            newest_us = self._arrive(held[0][2], newest_us)
            yield heapq.heappop(held)[2]

    def _arrive(self, event: Event, newest_us: int) -> int:
        self._late += event.time_us < newest_us
        return max(newest_us, event.time_us)

    def _thin(self, trace: list[SimulatedEvent]) -> list[SimulatedEvent]:
        remaining = [step for step in trace if self._rng.random() >= self._settings.missing]
        self._missing += len(trace) - len(remaining)
        return remaining

    def _swap(self, trace: list[SimulatedEvent]) -> list[SimulatedEvent]:
        """Swap the activities of neighbouring events at random. The times remain in order."""
        place = 0
        while place < len(trace) - 1:
            if self._rng.random() < self._settings.swapped:
                first, second = trace[place : place + 2]
                trace[place : place + 2] = (
                    SimulatedEvent(second.activity, first.offset_us),
                    SimulatedEvent(first.activity, second.offset_us),
                )
                self._swapped += 1
                place += 1
            place += 1
        return trace

    def _duplicate(self, trace: list[SimulatedEvent]) -> list[SimulatedEvent]:
        steps: list[SimulatedEvent] = []
        for step in trace:
            steps.append(step)
            if self._rng.random() < self._settings.duplicated:
                steps.append(step._replace(is_copy=True))
                self._duplicated += 1
        return steps
