"""Estimates of the state size of a running join, from its items.

Source: section 7.2 of the specification of punctuation-aware joins: Little's law over smoothed rates and a sample of
recently closed keys; a lasting change of the rate shortens the memory of the smoothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from joins import Item, ItemColumns, Window
from joins.costs import KeyRecord, SeenKey

_CHANGE = 0.3
_LASTING = 3  # intervals
_MOST_OPEN = 100_000  # keys


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEstimate:
    """An input's expected events in the state; median and 95 % quantile of the means of the last intervals."""

    mean: float
    median: float
    high: float


@dataclass(slots=True)
class _Rate:
    """Events per microsecond, smoothed over intervals."""

    horizon: float
    value: float = 0.0
    changed: int = 0
    counted: int = 0
    means: deque[float] = field(default_factory=lambda: deque(maxlen=64))

    def end_interval(self, interval_us: int) -> None:
        measured, self.counted = self.counted / interval_us, 0
        if self.value == 0.0:
            self.value = measured
            return
        is_other = abs(measured / self.value - 1) > _CHANGE
        self.changed = self.changed + 1 if is_other else 0
        if self.changed >= _LASTING:
            self.horizon, self.changed = max(1.0, self.horizon / 2), 0
        self.value += (measured - self.value) / self.horizon


class StateEstimator:
    """Estimates the state of a join from its items.

    Windows are of time or none. Rates and estimates are updated after ``interval_us`` of event time; rates are smoothed
    over ``horizon`` intervals; the ``sample`` most recently closed keys are considered.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        closes: Sequence[bool],
        *,
        interval_us: int = 1_000_000,
        horizon: float = 8.0,
        sample: int = 128,
    ) -> None:
        if any(window.kind not in ("time", "none") for window in windows):
            raise ValueError("the state of windows of a number of events is that number, or grows with the keys")
        self._windows = [window.size if window.kind == "time" else math.inf for window in windows]
        self._closes = list(closes)
        self._interval_us = interval_us
        self._ends_us: int | None = None
        self._rates = [_Rate(horizon) for _ in windows]
        self._open: dict[int, SeenKey] = {}
        self._records: list[deque[KeyRecord]] = [deque(maxlen=sample) for _ in windows]

    def observe(self, items: ItemColumns) -> None:
        """Note items, in their order."""
        rows = zip(
            items.kinds.tolist(), items.inputs.tolist(), items.keys.tolist(), items.times_us.tolist(), strict=True
        )
        for kind, number, key, time_us in rows:
            self._pass_time(time_us)
            if kind == Item.EVENT:
                self._rates[number].counted += 1
                self._seen(key).see(kind, number, time_us)
            elif kind == Item.CLOSING:
                self._seen(key).see(kind, number, time_us)
                self._finish(key)

    def estimates(self) -> list[StateEstimate]:
        """The estimate for each input; infinite where nothing bounds it."""
        estimates = []
        for number, rate in enumerate(self._rates):
            past = list(rate.means) or [0.0]
            median, high = (float(np.quantile(past, share, method="higher")) for share in (0.5, 0.95))
            estimates.append(StateEstimate(mean=self._mean(number), median=median, high=high))
        return estimates

    def records(self, number: int) -> list[KeyRecord]:
        """The sample of closed keys of an input."""
        return list(self._records[number])

    def _pass_time(self, time_us: int) -> None:
        if self._ends_us is None:
            self._ends_us = time_us + self._interval_us
        while time_us >= self._ends_us:
            self._ends_us += self._interval_us
            for number, rate in enumerate(self._rates):
                rate.end_interval(self._interval_us)
                rate.means.append(self._mean(number))

    def _mean(self, number: int) -> float:
        records, rate = self._records[number], self._rates[number].value
        weight = sum(record.events for record in records)
        if not weight:
            return rate * self._windows[number] if rate else 0.0
        return rate * sum(record.events * record.stay_us for record in records) / weight

    def _seen(self, key: int) -> SeenKey:
        seen_key = self._open.get(key)
        if seen_key is None:
            if len(self._open) >= _MOST_OPEN:
                del self._open[next(iter(self._open))]  # the oldest
            seen_key = self._open[key] = SeenKey.of(len(self._windows))
        return seen_key

    def _finish(self, key: int) -> None:
        """Add a key to the sample once all inputs that close keys have closed it."""
        seen_key = self._open[key]
        inputs = range(len(self._windows))
        if any(self._closes[number] and math.isinf(seen_key.closed[number]) for number in inputs):
            return
        del self._open[key]
        for number, record in seen_key.records(self._windows):
            self._records[number].append(record)
