"""Runs of one pattern on the matcher. Each run measures bound events after each event, state size, matches and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.ccep.knowledge import END_EVENTS
from benchmarks.ccep.modes import Mode
from benchmarks.ccep.queries import Query
from benchmarks.ccep.stream import OrderStream
from nfa import Matcher, MatcherStats
from streams import EventBatch

_TIMED_ROWS = 65_536
_CHECKPOINTS = 10  # in each run


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The memory of a matcher on a stream.

    Attributes:
        peak: The maximum number of bound events after an event, from ``OrderStream.settled`` on.
        borders: The events after which ``held`` was read.
        held: The number of bound events after these events.
        state_bytes: The maximum size of the state at these borders, as the matcher counts it, from ``settled`` on.
        pattern_bytes: The same without the 16 bytes of each open trace, which every mode needs.
        checkpoint_bytes: The mean size of a checkpoint.
        matches: The number of matches.
        stats: The matcher's own counts at the end.
    """

    peak: int
    borders: NDArray[np.int64]
    held: NDArray[np.int64]
    state_bytes: int
    pattern_bytes: int
    checkpoint_bytes: int
    matches: int
    stats: MatcherStats


def matcher_for(text: str, mode: Mode, *, knows_traces: bool = True) -> Matcher:
    """Return a fresh matcher with one pattern.

    Args:
        text: The pattern.
        mode: The mode, which provides the guard.
        knows_traces: Whether to track every open trace from its first event on, as a guard does. Not needed by R-CEP.
    """
    guard = mode.guard()
    matcher = Matcher(end_events=END_EVENTS, tracks="bound" if guard is None and not knows_traces else "all")
    matcher.add_pattern(text)
    if guard is not None:
        matcher.set_guard(1, guard)
    return matcher


def held_by(query: Query, mode: Mode, stream: OrderStream, batch: EventBatch, *, rows: int) -> Held:
    """Run a stream in batches of ``rows`` rows, and read the matcher's memory between them. Time is not measured."""
    matcher = matcher_for(query.text, mode)
    first = stream.settled + 1
    starts = [*range(0, first, rows), *range(first, len(stream), rows)]
    ends = [*starts[1:], len(stream)]
    step = max(1, (len(stream) - first) // (rows * _CHECKPOINTS))
    held, state, pattern, checkpoints, matches = [], [0], [0], [], 0
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        matches += matcher.process(batch.slice(start, end - start)).n_matches
        stats = matcher.stats
        held.append(stats.held)
        if end == first:
            matcher.restart_peak()
        if start >= first:
            state.append(stats.state_bytes)
            pattern.append(stats.state_bytes - 16 * stats.open_traces)
            if number % step == 0:
                checkpoints.append(len(matcher.dump()))
    return Held(
        peak=matcher.stats.peak_held,
        borders=np.array(ends, np.int64) - 1,
        held=np.array(held, np.int64),
        state_bytes=max(state),
        pattern_bytes=max(pattern),
        checkpoint_bytes=round(float(np.mean(checkpoints))) if checkpoints else 0,
        matches=matches,
        stats=matcher.stats,
    )


def timed_run(make: Callable[[], Matcher], batch: EventBatch, first: int) -> tuple[float, int]:
    """Return the thread seconds of a fresh matcher from row ``first`` on, and all its matches.

    The rows before ``first`` are not timed, because the monitor is built and traces are opened there.
    """
    matcher = make()
    starts = [*range(first, len(batch), _TIMED_ROWS), len(batch)]
    parts = [batch.slice(start, end - start) for start, end in pairwise(starts)]
    matches = matcher.process(batch.slice(0, first)).n_matches
    begin = time.thread_time()
    matches += sum(matcher.process(part).n_matches for part in parts)
    return time.thread_time() - begin, matches


def paired(
    runs: Mapping[str, Callable[[], Matcher]], batch: EventBatch, first: int, rounds: int
) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """Time runs that take turns, from row ``first`` on. Each round has another order of the runs.

    Returns:
        By name of the run: the median seconds, the median over the rounds of the ratio to the first run, the matches.
    """
    names = list(runs)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    matches = {name: timed_run(runs[name], batch, first)[1] for name in names}
    for turn in range(rounds):
        for name in _rotated(names, turn):
            seconds[name].append(timed_run(runs[name], batch, first)[0])
    baseline = seconds[names[0]]
    ratios = {name: median(took / base for took, base in zip(seconds[name], baseline, strict=True)) for name in names}
    return {name: median(took) for name, took in seconds.items()}, ratios, matches


def _rotated(names: Sequence[str], turn: int) -> list[str]:
    shift = turn % len(names)
    return [*names[shift:], *names[:shift]]
