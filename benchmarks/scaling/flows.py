"""Matchers in the middle of their streams. Each is warmed up; then they take turns, one stretch of events at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.matcher_speed import ROWS
from benchmarks.scaling.points import Point
from nfa import Matcher
from streams import EventBatch


@dataclass(kw_only=True)
class Flow:
    """A point to measure: a matcher with the state of a stream that has run for a while.

    Attributes:
        series: The series of the point.
        at: The place of the point on the axis.
        matcher: The matcher with its patterns, before any event.
        warm_up: The events before the clock starts.
        stretches: The events that follow, one stretch per round.
        best_s: The minimum seconds per event so far.
        matches: The number of matches in all stretches.
        events: The number of events in all stretches.
    """

    series: str
    at: float
    matcher: Matcher
    warm_up: EventBatch
    stretches: Sequence[EventBatch]
    best_s: float = field(default=float("inf"), init=False)
    matches: int = field(default=0, init=False)
    events: int = field(default=0, init=False)

    def go(self, stretch: EventBatch) -> int:
        """Match a stretch of events. Return the number of matches."""
        parts = (stretch.slice(start, min(ROWS, len(stretch) - start)) for start in range(0, len(stretch), ROWS))
        return sum(self.matcher.process(part).n_matches for part in parts)

    def timed(self, stretch: EventBatch) -> None:
        """Match a stretch and record its thread time."""
        begin = time.thread_time()
        matches = self.go(stretch)
        seconds = time.thread_time() - begin
        self.best_s = min(self.best_s, seconds / len(stretch))
        self.matches += matches
        self.events += len(stretch)


def measured(plot: str, flows: Sequence[Flow], note: Callable[[Flow], str]) -> Iterator[Point]:
    """Measure the flows in turn. Yield a point for each, with the text of ``note``."""
    for flow in flows:
        flow.go(flow.warm_up)
    for number in range(max(len(flow.stretches) for flow in flows)):
        for flow in flows if number % 2 else reversed(flows):  # so that no flow always follows the same other flow
            if number < len(flow.stretches):
                flow.timed(flow.stretches[number])
    for flow in flows:
        yield Point(plot=plot, series=flow.series, at=flow.at, rate=1 / flow.best_s, note=note(flow))


def matches_seen(flow: Flow) -> str:
    """Return the number of matches per event, as text."""
    return f"{flow.matches / flow.events:.3f} matches an event"


def stretches_of(batch: EventBatch, first: int, rows: int, count: int) -> tuple[EventBatch, list[EventBatch]]:
    """Return the events before row ``first``, and up to ``count`` stretches of ``rows`` rows after them."""
    starts = [first + number * rows for number in range(count) if first + (number + 1) * rows <= len(batch)]
    if not starts:
        raise ValueError(f"{len(batch)} events are too few for {rows} behind {first}")
    return batch.slice(0, first), [batch.slice(start, rows) for start in starts]
