"""The three queries: a join of three streams, and a join of two such joins, on the same or on another column."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from literature.benchmarks.join_waiting.streams import SECOND_US, Change, Stream, changed, made_stream, merged
from literature.unsynchronised import (
    Arrivals,
    BufferOptions,
    Combinations,
    DisorderOptions,
    InputEstimate,
    ObliviousJoin,
    OtherKey,
    PlannedJoin,
    SpillOptions,
    Strategy,
    derived,
    joined_estimate,
)

Query: TypeAlias = Literal["Q1", "Q2", "Q3"]
QUERIES: tuple[Query, ...] = ("Q1", "Q2", "Q3")
SECONDS, MOST_FACTOR, MOST_DEPENDENT = 120, 500, 300
SLOWED = Change(first_s=10, last_s=40, rate=1 / 8)
HASTENED = Change(first_s=80, last_s=90, rate=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """Settings of a run of a query.

    Attributes:
        strategy: Strategy of its joins.
        is_known: Whether factors are known, and derived for outputs of joins; otherwise they are monitored.
        policy: Policy by which buffers forget.
        sizes: Sizes of the buffers of each join; policy ``sizes`` only.
        reserve: Reserve of disk buffers.
        warm_up: Number of first arrivals during which a monitored factor closes no key.
    """

    strategy: Strategy = "plain"
    is_known: bool = True
    policy: str = "keys"
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reserve: int = 64
    warm_up: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutcome:
    """The outcome of one join.

    Attributes:
        arrivals: Arrivals of all inputs.
        places: Place of each arrival in its stream.
        found: Results.
        held: (seconds, inputs) arrivals in memory at the end of each second.
        seconds: Thread time of the whole run.
    """

    arrivals: Arrivals
    places: NDArray[np.int64]
    found: Combinations
    held: NDArray[np.float64]
    seconds: float

    def per_second(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest value of the items in each second; 0 without items."""
        return largest_per_second(self.arrivals.times_us, values)

    def optimal(self) -> NDArray[np.float64]:
        """The slots of each input that results needed, by second."""
        inputs = self.found.members.shape[1]
        counts = np.stack([np.cumsum(self.arrivals.inputs == number) for number in range(inputs)], axis=1)
        last = self.found.members.max(axis=1)
        needed = counts[last] - self.places[self.found.members]
        return largest_per_second(self.arrivals.times_us[last], needed.astype(np.float64))


def largest_per_second(times_us: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest values in each second: (seconds, inputs) from (items, inputs)."""
    seconds = times_us // SECOND_US
    found = np.zeros((int(seconds.max(initial=-1)) + 1, values.shape[1]))
    np.maximum.at(found, seconds, values)
    return found


def streams_of(query: Query, seed: int, *, most_factor: int = MOST_FACTOR, congests: bool = False) -> list[Stream]:
    """The raw streams of a query, with their changes of rate."""
    chosen = np.random.default_rng(seed)
    slowed, hastened = replace(SLOWED, congests=congests), HASTENED
    changes: list[tuple[Change, ...]] = [(), (slowed,), (hastened,)] if query == "Q1" else [()] * 6
    return [
        made_stream(
            chosen,
            int(chosen.integers(0, most_factor + 1)),
            seconds=SECONDS,
            dependent=int(chosen.integers(0, MOST_DEPENDENT + 1)) if query == "Q3" else 0,
            changes=own,
        )
        for own in changes
    ]


def run_query(query: Query, streams: Sequence[Stream], mode: Mode) -> dict[str, JoinOutcome]:
    """Run a query; its last join is the last of the outcomes."""
    if query == "Q1":
        return {"J1": run_join("J1", streams, [one.estimate() for one in streams], mode)}
    found, outputs, estimates = {}, [], []
    for name, own in (("J1", streams[:3]), ("J2", streams[3:])):
        raw = [one.estimate() for one in own]
        found[name] = run_join(name, own, raw, mode)
        output = output_of(found[name], own, on_values=query == "Q3")
        outputs.append(replace_times(output, changed(output.times_us, SLOWED)) if name == "J1" else output)
        estimates.append(derived_estimate(query, own, raw, is_sorted=mode.strategy in ("sort", "hybrid")))
    after: Mapping[Strategy, Strategy] = {"sort": "plain", "hybrid": "disk"}  # only raw streams are sorted
    upper = replace(mode, strategy=after.get(mode.strategy, mode.strategy))
    found["J3"] = run_join("J3", outputs, estimates, upper)
    return found


def replace_times(stream: Stream, times_us: NDArray[np.int64]) -> Stream:
    """The same stream at other times."""
    return Stream(stream.keys, stream.values, times_us)


def output_of(outcome: JoinOutcome, streams: Sequence[Stream], *, on_values: bool) -> Stream:
    """The output of a join, with the key of the next join: the same, or column B of the first stream."""
    first = outcome.places[outcome.found.members[:, 0]]
    keys = streams[0].values[first] if on_values else streams[0].keys[first]
    return Stream(keys, keys, outcome.found.times_us)


def derived_estimate(
    query: Query, streams: Sequence[Stream], raw: Sequence[InputEstimate], *, is_sorted: bool
) -> InputEstimate:
    """Bounds of the output of a join of raw streams."""
    if is_sorted:
        raw = [replace(one, factor=one.multiplicity - 1) for one in raw]
    if query == "Q2":
        found = joined_estimate(raw)
        return replace(found, factor=found.multiplicity - 1) if is_sorted else found
    key = OtherKey(source=0, dependent_factor=streams[0].dependent_factor, multiplicity=2)
    return derived(PlannedJoin(inputs=tuple(raw), other_key=key))


def run_join(name: str, streams: Sequence[Stream], estimates: Sequence[InputEstimate], mode: Mode) -> JoinOutcome:
    """Run one join, with the arrivals of a second in each call."""
    arrivals, places = merged(streams)
    sizes = mode.sizes.get(name, ())
    options = BufferOptions(policy=mode.policy, sizes=sizes, traces=True)
    declared = [
        DisorderOptions(factor=one.factor if mode.is_known else None, warm_up=mode.warm_up) for one in estimates
    ]
    with TemporaryDirectory() as folder:
        spills = mode.strategy in ("disk", "hybrid")
        spill = SpillOptions(folder=Path(folder), reserve=mode.reserve) if spills else None
        join = ObliviousJoin(declared, options, strategy=mode.strategy, spill=spill)
        parts, held, spent = [], [], 0.0
        borders = np.searchsorted(arrivals.times_us, np.arange(0, int(arrivals.times_us[-1]) + SECOND_US, SECOND_US))
        for first, last in zip(borders, [*borders[1:], len(arrivals)], strict=True):
            begun = time.thread_time()
            parts.append(join.push(arrivals.slice(int(first), int(last))))
            spent += time.thread_time() - begun
            held.append([join.held_of(number).memory for number in range(len(streams))])
        parts += [join.end(number) for number in range(len(streams))]
    return JoinOutcome(
        arrivals=arrivals,
        places=places,
        found=Combinations.joined(parts, len(streams)),
        held=np.array(held),
        seconds=spent,
    )


def complete(streams: Sequence[Stream]) -> int:
    """The number of results of complete evaluation."""
    counts = [dict(zip(*np.unique(one.keys, return_counts=True), strict=True)) for one in streams]
    total = 0
    for key, count in counts[0].items():
        product = int(count)
        for other in counts[1:]:
            product *= int(other.get(key, 0))
        total += product
    return total
