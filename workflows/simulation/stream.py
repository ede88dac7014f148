"""Interleaves many simulated traces into one stream of events.

Without durations, each event belongs to a uniformly chosen open trace, and a finished trace is replaced at once. With
durations, traces begin at random (a Poisson process), and the times within a trace depend on its durations only. The
same seed gives the same stream.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

from constraints import ProcessAutomaton
from streams import Event
from workflows.attributes import Value
from workflows.errors import InvalidWorkflow
from workflows.simulation.noise import Noise, SimulatedEvent
from workflows.simulation.sampling import has_durations, sample_timed, sample_trace
from workflows.simulation.walk import AutomatonWalk
from workflows.tree import Activity, ProcessTree

_BLOCK_ROWS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The size, time and keys of a simulated stream.

    Attributes:
        concurrent: Number of traces that are open at the same time, fewer near the end. With durations, the number is a
            maximum.
        start_us: Time before the first event, microseconds since 1970 UTC.
        interval_us: Mean time between two events of the stream. With durations, it is the mean time between the
            beginnings of two traces. Times rise strictly.
        key_prefix: The keys of the traces are ``<prefix>1``, ``<prefix>2``, ... in the order in which the traces begin.
            The ids of their events are ``<key>:1``, ``<key>:2``, ...
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


class _DataSource:
    """Draws the attributes of simulated events, in blocks for each activity to save time."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._rows: dict[int, Iterator[dict[str, Value]]] = {}

    def next_for(self, activity: Activity) -> dict[str, Value]:
        rows = self._rows.get(id(activity))
        if rows is None:
            rows = self._rows[id(activity)] = self._draw(activity)
        return next(rows)

    def _draw(self, activity: Activity) -> Iterator[dict[str, Value]]:
        names = [name for attribute in activity.attributes for name in attribute.names]
        while True:
            columns: list[Sequence[Value]] = []
            for attribute in activity.attributes:
                columns += [attribute.sample(self._rng, _BLOCK_ROWS)] * len(attribute.names)
            rows = zip(*columns, strict=True) if columns else iter([()] * _BLOCK_ROWS)
            for row in rows:
                yield dict(zip(names, row, strict=True))


@dataclass(slots=True)
class _OpenTrace:
    """A simulated trace that has begun.

    ``remaining`` has its future events, the last one first, and ``data`` the attributes of its last event.
    """

    key: str
    remaining: list[SimulatedEvent]
    emitted: int = 0
    data: dict[str, Value] = field(default_factory=dict)


_Sampler: TypeAlias = Callable[[Random], list[SimulatedEvent]]  # draws the steps of one trace
_Emission: TypeAlias = tuple[int, _OpenTrace, SimulatedEvent]

_Due: TypeAlias = tuple[int, int, int, _OpenTrace]  # time of the next step, rank, begin and value of an open trace


def simulate(
    source: ProcessTree | ProcessAutomaton, settings: SimulationSettings, seed: int, noise: Noise | None = None
) -> Iterator[Event]:
    """Yield the events of ``settings.traces`` traces of a workflow in the order of time, or of arrival with noise.

    Traces without events are skipped.
    """
    rng = Random(seed)
    waiting = _begin_traces(_sampler(source, noise), settings, rng)
    is_timed = not isinstance(source, ProcessAutomaton) and has_durations(source)
    emissions = (_play_in_time if is_timed else _interleave)(waiting, settings, rng)
    events = _fill(emissions, _DataSource(np.random.default_rng(seed)))
    return events if noise is None else noise.delay(events)


def _sampler(source: ProcessTree | ProcessAutomaton, noise: Noise | None) -> _Sampler:
    sample = _sampler_of(source)
    return sample if noise is None else lambda rng: noise.disturb(sample(rng))


def _sampler_of(source: ProcessTree | ProcessAutomaton) -> _Sampler:
    if isinstance(source, ProcessAutomaton):
        walk = AutomatonWalk(source)
        return lambda rng: list(map(SimulatedEvent, walk.sample_trace(rng)))
    if has_durations(source):
        return lambda rng: [SimulatedEvent(activity, offset_us) for offset_us, activity in sample_timed(source, rng)]
    return lambda rng: list(map(SimulatedEvent, sample_trace(source, rng)))


def _begin_traces(sample: _Sampler, settings: SimulationSettings, rng: Random) -> Iterator[_OpenTrace]:
    for number in range(1, settings.traces + 1):
        remaining = sample(rng)[::-1]
        if remaining:
            yield _OpenTrace(f"{settings.key_prefix}{number}", remaining)


def _interleave(waiting: Iterator[_OpenTrace], settings: SimulationSettings, rng: Random) -> Iterator[_Emission]:
    spread_us = 2 * settings.interval_us - 1
    time_us = settings.start_us
    open_traces = list(islice(waiting, settings.concurrent))
    while open_traces:
        place = int(rng.random() * len(open_traces))
        trace = open_traces[place]
        time_us += 1 + int(rng.random() * spread_us)
        yield time_us, trace, trace.remaining.pop()
        if trace.remaining:
            continue
        replacement = next(waiting, None)
        if replacement is not None:
            open_traces[place] = replacement
        else:
            open_traces[place] = open_traces[-1]
            open_traces.pop()


def _play_in_time(waiting: Iterator[_OpenTrace], settings: SimulationSettings, rng: Random) -> Iterator[_Emission]:
    due: list[_Due] = []
    last_us = start_us = settings.start_us
    for rank, trace in enumerate(waiting):
        start_us += 1 + round(rng.expovariate(1.0 / settings.interval_us))
        while due and (due[0][0] < start_us or len(due) >= settings.concurrent):
            emission = _pop_next(due, last_us)
            last_us = emission[0]
            yield emission
        start_us = max(start_us, last_us)
        heapq.heappush(due, (start_us + trace.remaining[-1].offset_us, rank, start_us, trace))
    while due:
        emission = _pop_next(due, last_us)
        last_us = emission[0]
        yield emission


def _pop_next(due: list[_Due], last_us: int) -> _Emission:
    """Return the earliest event of all open traces, with a time after ``last_us``.

    Its trace returns to the queue ``due``.
    """
    time_us, rank, start_us, trace = heapq.heappop(due)
    step = trace.remaining.pop()
    if trace.remaining:
        heapq.heappush(due, (start_us + trace.remaining[-1].offset_us, rank, start_us, trace))
    return max(time_us, last_us + 1), trace, step


def _fill(emissions: Iterator[_Emission], data: _DataSource) -> Iterator[Event]:
    for time_us, trace, step in emissions:
        trace.emitted += 1
        trace.data = trace.data if step.is_copy else data.next_for(step.activity)
        yield Event(
            id=f"{trace.key}:{trace.emitted}", type=step.activity.name, time_us=time_us, key=trace.key, data=trace.data
        )
