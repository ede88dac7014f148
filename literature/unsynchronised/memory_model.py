"""Predicted memory of each input, from rates, factors and lags, for admission and the choice of a strategy.

Source: data-driven memory management for stream joins, formulas 4.1 and 4.4 of the specification. A running join keeps
arrivals by counts instead (``JoinBuffers``), as these predictions are too small around a change of rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from literature.unsynchronised.arrivals import Arrivals

Strategy: TypeAlias = Literal["plain", "sort", "disk", "hybrid"]
"""``sort``: memory-sort first (MSF); ``disk``: disk-buffer first (DBF); ``hybrid``: both."""
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
RESERVE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEstimate:
    """Estimated characteristics of an input.

    Attributes:
        rate: Arrivals per second; 0 or less: unknown.
        factor: Scrambling factor.
        multiplicity: Greatest number of arrivals of one key.
    """

    rate: float
    factor: int
    multiplicity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The number of retained arrivals of one input.

    Attributes:
        join: Arrivals in the buffer of the join; infinite: unbounded.
        sort: Arrivals in the sort buffer.
        disk: Arrivals on disk.
    """

    join: float
    sort: float = 0
    disk: float = 0

    @property
    def memory(self) -> float:
        """Slots in memory."""
        return self.join + self.sort


def predicted_slots(
    estimates: Sequence[InputEstimate],
    lags: Sequence[Sequence[float]],
    strategy: Strategy = "plain",
    reserve: int = RESERVE,
) -> list[Slots]:
    """The predicted slots of each input (table 4.4).

    Args:
        estimates: Estimate of each input.
        lags: The number of its own arrivals by which each input leads each other input; negative: it lags. With
            ``sort``, after sorting.
        strategy: Strategy that saves memory.
        reserve: Number of arrivals read ahead from disk (C).
    """
    sorts, spills = strategy in ("sort", "hybrid"), strategy in ("disk", "hybrid")
    slots = []
    for number, estimate in enumerate(estimates):
        others = [other for other in range(len(estimates)) if other != number]
        lag = max(lags[number][other] for other in others)
        if estimate.rate <= 0 or any(estimates[other].rate <= 0 for other in others):
            slots.append(Slots(join=inf, sort=estimate.factor if sorts else 0))
            continue
        disorder = [source.multiplicity if sorts else source.factor for source in estimates]
        waits = [estimate.rate * disorder[other] / estimates[other].rate for other in others]
        ahead = max(wait + (0 if spills else lags[number][other]) for wait, other in zip(waits, others, strict=True))
        join = max(1.0, disorder[number] + ahead) + (reserve if spills else 0)
        slots.append(Slots(join=join, sort=estimate.factor if sorts else 0, disk=max(lag, 0) if spills else 0))
    return slots


def slots_by_form(arrivals: Arrivals, factors: Sequence[int], rate_span_us: int | None = None) -> NDArray[np.float64]:
    """Slots by the general formula of 4.1 after each arrival, over a recorded run.

    Args:
        arrivals: All arrivals with a key, in order.
        factors: True scrambling factors.
        rate_span_us: None: arrivals of an input during the last ``k_j`` of another one are counted (3.3), which is
            exact; otherwise they are computed from the rates of a sliding span (the rate form).

    Returns:
        (arrivals, inputs); infinite before an input has more arrivals than its factor.
    """
    inputs, slots = len(factors), np.full((len(arrivals), len(factors)), 1.0)
    counts = np.stack([np.cumsum(arrivals.inputs == number) for number in range(inputs)], axis=1)
    rates = None if rate_span_us is None else _rates(arrivals, counts, rate_span_us)
    for number in range(inputs):
        for other in range(inputs):
            if other != number:
                pair_slots = _pair_slots(arrivals, counts, rates, (number, other), factors)
                slots[:, number] = np.maximum(slots[:, number], pair_slots)
    return slots


def _pair_slots(
    arrivals: Arrivals,
    counts: NDArray[np.int64],
    rates: NDArray[np.float64] | None,
    pair: tuple[int, int],
    factors: Sequence[int],
) -> NDArray[np.float64]:
    """``k_i + A + L`` of the first input of a pair because of the second."""
    number, other = pair
    places = [np.flatnonzero(arrivals.inputs == source) for source in pair]
    rank = counts[:, other] - factors[other]  # m: arrivals of the other one that no later one can precede
    slots = np.full(len(arrivals), inf)
    is_known = rank > 0
    if not is_known.any():
        return slots
    known = np.flatnonzero(is_known)
    ranked = np.sort(arrivals.keys[places[1]])[rank[known] - 1]  # x, ascending
    first_open = np.searchsorted(ranked, arrivals.keys[places[0]], side="left")
    is_reached = first_open < len(known)
    since = np.maximum(places[0][is_reached], known[first_open[is_reached]])
    settled = np.searchsorted(np.sort(since), known, side="right")  # v
    before = counts[places[1][rank[known] - 1], number]  # n_i at the m-th arrival of the other one
    lag = before - settled
    if rates is None:
        during: NDArray[np.float64] = (counts[known, number] - before).astype(np.float64)
    else:
        rate, other_rate = rates[known, number], rates[known, other]
        with np.errstate(divide="ignore", invalid="ignore"):
            during = np.where(other_rate > 0, rate * factors[other] / other_rate, inf)
    slots[known] = factors[number] + during + lag
    return slots


def _rates(arrivals: Arrivals, counts: NDArray[np.int64], span_us: int) -> NDArray[np.float64]:
    first = np.searchsorted(arrivals.times_us, arrivals.times_us - span_us, side="right")
    padded = np.concatenate([np.zeros((1, counts.shape[1]), np.int64), counts])
    rates: NDArray[np.float64] = (counts - padded[first]) * (1e6 / span_us)
    return rates


def whole_sizes(slots: NDArray[np.float64]) -> NDArray[np.int64]:
    """Slots as sizes of buffers, rounded up; infinite slots become the number of arrivals."""
    return np.where(np.isinf(slots), float(len(slots)), np.ceil(np.where(np.isinf(slots), 0, slots))).astype(np.int64)


def shown_slots(slots: Sequence[Slots]) -> Iterator[str]:
    """The slots of each input as text."""
    for input_slots in slots:
        parts = [("", input_slots.join), (" to sort", input_slots.sort), (" on disk", input_slots.disk)]
        yield " + ".join(f"{_size_text(size)}{what}" for what, size in parts if size)


def _size_text(size: float) -> str:
    return "no bound" if size == inf else f"{ceil(size):,}"
