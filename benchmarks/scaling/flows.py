"""Matchers in the midst of their streams: each is warmed up, then they take turns, a stretch of events at a time."""

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
    """One point to be: a matcher whose state is that of a stream that has flowed for a while.

    Attributes:
        series: Of the point.
        at: Where the point is.
        matcher: With its patterns; it has seen nothing.
        warm_up: Events before the clock starts.
        stretches: Events that follow, one stretch a round.
        best_s: Least seconds of an event so far.
        matches: In all stretches.
        events: In all stretches.
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
        """Match some events; how many matches."""
        parts = (stretch.slice(start, min(ROWS, len(stretch) - start)) for start in range(0, len(stretch), ROWS))
        return sum(self.matcher.process(part).n_matches for part in parts)

    def timed(self, stretch: EventBatch) -> None:
        """Match a stretch by the clock of this thread."""
        begin = time.thread_time()
        matches = self.go(stretch)
        seconds = time.thread_time() - begin
        self.best_s = min(self.best_s, seconds / len(stretch))
        self.matches += matches
        self.events += len(stretch)


def measured(plot: str, flows: Sequence[Flow], note: Callable[[Flow], str]) -> Iterator[Point]:
    """Let the flows take turns; a point of each, with what ``note`` says of it."""
    for flow in flows:
        flow.go(flow.warm_up)
    for number in range(max(len(flow.stretches) for flow in flows)):
        for flow in flows if number % 2 else reversed(flows):  # so that none has always the same one before it
            if number < len(flow.stretches):
                flow.timed(flow.stretches[number])
    for flow in flows:
        yield Point(plot=plot, series=flow.series, at=flow.at, rate=1 / flow.best_s, note=note(flow))


def matches_seen(flow: Flow) -> str:
    """How many matches an event has given."""
    return f"{flow.matches / flow.events:.3f} matches an event"


def stretches_of(batch: EventBatch, first: int, rows: int, count: int) -> tuple[EventBatch, list[EventBatch]]:
    """The events before row ``first``, and so many stretches of so many rows behind them, as far as there are some."""
    starts = [first + number * rows for number in range(count) if first + (number + 1) * rows <= len(batch)]
    if not starts:
        raise ValueError(f"{len(batch)} events are too few for {rows} behind {first}")
    return batch.slice(0, first), [batch.slice(start, rows) for start in starts]
