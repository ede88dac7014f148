"""Traces of a process tree, and many of them interleaved as one stream of events.

A parallel block picks uniformly among its unfinished branches at each step. In the stream, each step lets a uniformly
chosen open trace emit its next event, and a finished trace is replaced at once. The same seed gives the same stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.random import Generator

from streams import Event
from workflows.errors import InvalidWorkflow
from workflows.tree import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent

_BLOCK_ROWS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The outer form of a simulated stream.

    Attributes:
        traces: Number of traces; each is finished before the stream ends.
        concurrent: Traces that are open at a time, fewer near the end.
        start_us: Time before the first event, microseconds since 1970 UTC.
        interval_us: Mean time between two events of the stream; times rise strictly.
        key_prefix: The traces' keys are ``<prefix>1``, ``<prefix>2``, ... by their beginning; the ids of their events
            ``<key>:1``, ``<key>:2``, ...
    """

    traces: int = 2_000
    concurrent: int = 1_000
    start_us: int = 1_767_225_600_000_000
    interval_us: int = 1_000_000
    key_prefix: str = "trace-"

    def __post_init__(self) -> None:
        for name, least in (("traces", 0), ("concurrent", 1), ("interval_us", 1)):
            if getattr(self, name) < least:
                raise InvalidWorkflow(f"simulation: {name} must be at least {least}, got {getattr(self, name)}")


def simulate(tree: ProcessTree, settings: SimulationSettings, seed: int) -> Iterator[Event]:
    """Events of ``settings.traces`` traces of the tree, in the order of time."""
    steps = Random(seed)
    data = _DataSource(np.random.default_rng(seed))
    spread_us = 2 * settings.interval_us - 1
    time_us = settings.start_us
    for key, number, activity in _interleave(tree, settings, steps):
        time_us += 1 + int(steps.random() * spread_us)
        yield Event(id=f"{key}:{number}", type=activity.name, time_us=time_us, key=key, data=data.next_for(activity))


def sample_trace(tree: ProcessTree, rng: Random) -> list[Activity]:
    """One trace of the tree."""
    match tree:
        case Activity():
            return [tree]
        case Silent():
            return []
        case Sequence(parts):
            return [activity for part in parts for activity in sample_trace(part, rng)]
        case ExclusiveChoice(branches, probabilities):
            return sample_trace(_choose(branches, probabilities, rng), rng)
        case Parallel(branches):
            return _merge([sample_trace(branch, rng) for branch in branches], rng)
        case Loop():
            return _sample_loop(tree, rng)


def _choose(branches: tuple[ProcessTree, ...], probabilities: tuple[float, ...], rng: Random) -> ProcessTree:
    point = rng.random()
    if not probabilities:
        return branches[int(point * len(branches))]
    for branch, probability in zip(branches, probabilities, strict=True):
        if point < probability:
            return branch
        point -= probability
    return next(branch for branch, share in zip(branches[::-1], probabilities[::-1], strict=True) if share > 0.0)


def _merge(traces: list[list[Activity]], rng: Random) -> list[Activity]:
    unfinished = [trace[::-1] for trace in traces if trace]
    merged: list[Activity] = []
    while unfinished:
        place = int(rng.random() * len(unfinished))
        merged.append(unfinished[place].pop())
        if not unfinished[place]:
            del unfinished[place]
    return merged


def _sample_loop(loop: Loop, rng: Random) -> list[Activity]:
    trace = sample_trace(loop.body, rng)
    done = 1
    while done < loop.repetitions if loop.repetitions is not None else rng.random() < loop.again:
        trace += sample_trace(loop.redo, rng)
        trace += sample_trace(loop.body, rng)
        done += 1
    return trace


@dataclass(slots=True)
class _OpenTrace:
    """A trace that has begun; ``remaining`` ends with its next activity."""

    key: str
    remaining: list[Activity]
    emitted: int = 0


def _begin_traces(tree: ProcessTree, settings: SimulationSettings, rng: Random) -> Iterator[_OpenTrace]:
    """The traces by their beginning; those without any event are passed over."""
    for number in range(1, settings.traces + 1):
        remaining = sample_trace(tree, rng)[::-1]
        if remaining:
            yield _OpenTrace(f"{settings.key_prefix}{number}", remaining)


def _interleave(tree: ProcessTree, settings: SimulationSettings, rng: Random) -> Iterator[tuple[str, int, Activity]]:
    """Key, place in the trace (from 1) and activity of each step."""
    waiting = _begin_traces(tree, settings, rng)
    open_traces = [trace for _, trace in zip(range(settings.concurrent), waiting, strict=False)]
    while open_traces:
        place = int(rng.random() * len(open_traces))
        trace = open_traces[place]
        trace.emitted += 1
        yield trace.key, trace.emitted, trace.remaining.pop()
        if trace.remaining:
            continue
        replacement = next(waiting, None)
        if replacement is not None:
            open_traces[place] = replacement
        else:
            open_traces[place] = open_traces[-1]
            open_traces.pop()


class _DataSource:
    """Attributes of events, drawn in blocks for each activity."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._rows: dict[int, Iterator[dict[str, Any]]] = {}

    def next_for(self, activity: Activity) -> dict[str, Any]:
        """The attributes of one more event of an activity."""
        rows = self._rows.get(id(activity))
        if rows is None:
            rows = self._rows[id(activity)] = self._draw(activity)
        return next(rows)

    def _draw(self, activity: Activity) -> Iterator[dict[str, Any]]:
        names = [name for attribute in activity.attributes for name in attribute.names]
        while True:
            columns: list[list[int] | list[str]] = []
            for attribute in activity.attributes:
                columns += [attribute.sample(self._rng, _BLOCK_ROWS)] * len(attribute.names)
            rows = zip(*columns, strict=True) if columns else iter([()] * _BLOCK_ROWS)
            for row in rows:
                yield dict(zip(names, row, strict=True))
