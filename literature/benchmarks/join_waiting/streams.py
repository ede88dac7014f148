"""Streams with a chosen disorder, multiplicity and lag, and changes of rate.

Source: section 5.1 of the specification of unsynchronised joins. Keys rise, and each comes once or twice; blocks of
factor + 1 arrivals are permuted, one of them so that the factor is reached. Equal keys at the border of a block can
exceed the factor, so the reported factor is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from literature.unsynchronised import Arrivals, InputEstimate, dependent_factor, scrambling_factor

SECOND_US = 1_000_000
INTERVAL_US = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of rate.

    Attributes:
        first_s: Begin, in seconds.
        last_s: End, in seconds.
        rate: Multiplier of the rate.
        congests: Whether arrivals queue in transit and come at the end; otherwise the source emits less, and its lag
            remains.
    """

    first_s: int
    last_s: int
    rate: float
    congests: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """The arrivals of one stream, in order.

    Attributes:
        keys: Column A.
        values: Column B.
        times_us: Times of arrival, ascending.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.int64]
    times_us: NDArray[np.int64]

    @property
    def factor(self) -> int:
        """The measured scrambling factor of A."""
        return scrambling_factor(self.keys)

    @property
    def dependent_factor(self) -> int:
        """The measured dependent factor of B in the order of A."""
        return dependent_factor(self.keys, self.values)

    def estimate(self) -> InputEstimate:
        """The measured characteristics of the stream."""
        span_s = max(int(self.times_us[-1] - self.times_us[0]), 1) / SECOND_US
        return InputEstimate(rate=len(self.keys) / span_s, factor=self.factor, multiplicity=most_equal(self.keys))


def most_equal(values: NDArray[np.int64]) -> int:
    """The greatest number of arrivals of one value."""
    return int(np.unique(values, return_counts=True)[1].max())


def made_stream(
    chosen: np.random.Generator,
    factor: int,
    *,
    seconds: int,
    dependent: int = 0,
    changes: Sequence[Change] = (),
    lag_s: float = 0,
) -> Stream:
    """A stream up to a time, with Poisson arrivals."""
    size = 4 * seconds * SECOND_US // INTERVAL_US
    keys = np.repeat(np.arange(1, size + 1), chosen.integers(1, 3, size))[:size]
    order = permuted(chosen, size, factor + 1)
    keys = keys[order]
    times = np.cumsum(chosen.exponential(INTERVAL_US, size)).astype(np.int64)
    for change in changes:
        times = changed(times, change)
    times = times + round(lag_s * SECOND_US)
    kept = times < seconds * SECOND_US
    return Stream(keys[kept], (permuted(chosen, size, dependent + 1) + 1)[keys[kept] - 1], times[kept])


def permuted(chosen: np.random.Generator, size: int, block: int) -> NDArray[np.int64]:
    """Numbers from 0, permuted in blocks; in the second block only the first and the last one are swapped."""
    order = np.arange(size)
    for start in range(0, size, block):
        chosen.shuffle(order[start : start + block])
    if 2 * block <= size:
        order[block : 2 * block] = np.arange(block, 2 * block)
        order[block], order[2 * block - 1] = 2 * block - 1, block
    return order


def changed(times: NDArray[np.int64], change: Change) -> NDArray[np.int64]:
    """Arrival times with another rate for a while."""
    first, last = change.first_s * SECOND_US, change.last_s * SECOND_US
    if change.congests:
        slow = first + (times - first) / change.rate
        queued = last + np.maximum(np.arange(len(times)) - np.searchsorted(times, first), 0) * 100
        inside = (times >= first) & (slow >= last) & (times < queued)
        found = np.where((times >= first) & (slow < last), slow, np.where(inside, np.maximum(queued, times), times))
        return np.maximum.accumulate(found.astype(np.int64))
    warped, now = np.zeros(len(times)), 0.0
    for place, gap in enumerate(np.diff(times, prepend=0).tolist()):
        now += gap / change.rate if first <= now < last else gap
        warped[place] = now
    return warped.astype(np.int64)


def merged(streams: Sequence[Stream]) -> tuple[Arrivals, NDArray[np.int64]]:
    """Arrivals of all streams by time, then by stream, and the place of each in its stream."""
    inputs = np.repeat(np.arange(len(streams), dtype=np.uint8), [len(one.keys) for one in streams])
    places = np.concatenate([np.arange(len(one.keys)) for one in streams])
    times = np.concatenate([one.times_us for one in streams])
    order = np.argsort(times, kind="stable")
    keys = np.concatenate([one.keys for one in streams])
    return Arrivals(inputs=inputs[order], keys=keys[order], times_us=times[order]), places[order]
