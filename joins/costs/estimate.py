"""Estimates of the state size of a running join, from its items.

Source: section 7.2 of the specification of punctuation-aware joins: Little's law over smoothed rates and a sample of
recently closed keys; a lasting change of the rate shortens the memory of the smoothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from joins.costs.formulas import mean_stay_us, purge_time_us
from joins.items import Item, ItemColumns
from joins.windows import Window

_CHANGE = 0.3
_LASTING = 3  # intervals
_MOST_OPEN = 100_000  # keys


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A closed key, as seen by one input.

    Attributes:
        life_us: Time from the key's first event to the input's own punctuation, or to the key's last event without one.
        lag: Time from the key's first event until events of the key became useless, in lives.
        stay_us: Mean stay of the key's events, by Eq. 6.1.
    """

    events: int
    life_us: float
    lag: float
    stay_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEstimate:
    """An input's expected events in the state; median and 95 % quantile of the means of the last intervals."""

    mean: float
    median: float
    high: float


@dataclass(slots=True)
class SeenKey:
    """An open key; each list has one value per input: times in microseconds, and the number of events.

    ``first`` is infinite and ``last`` minus infinite without events; ``closed`` is infinite until the input closes the
    key.
    """

    first: list[float]
    last: list[float]
    closed: list[float]
    events: list[int]

    @classmethod
    def of(cls, inputs: int) -> SeenKey:
        """A key without events or closings."""
        return cls([math.inf] * inputs, [-math.inf] * inputs, [math.inf] * inputs, [0] * inputs)

    def see(self, kind: int, number: int, time_us: int) -> None:
        """Note an event or a closing."""
        if kind == Item.EVENT:
            self.first[number] = min(self.first[number], time_us)
            self.last[number] = time_us
            self.events[number] += 1
        elif kind == Item.CLOSING:
            self.closed[number] = min(self.closed[number], time_us)

    def records(self, windows: Sequence[float], optional: Collection[int] = ()) -> Iterator[tuple[int, KeyRecord]]:
        """A record of the key for each input that has events of the key; ``windows`` in microseconds, infinite: none.

        ``optional`` inputs may be absent: an event does not become useless because they have no event in its window.
        """
        inputs = range(len(windows))
        for number in inputs:
            if not self.events[number]:
                continue
            others = [other for other in inputs if other != number]
            useless = purge_time_us(
                [self.closed[other] for other in others],
                [math.inf if other in optional else self.last[other] + windows[other] for other in others],
            )
            yield number, _record(self, number, useless, windows[number])


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
        found = []
        for number, rate in enumerate(self._rates):
            past = list(rate.means) or [0.0]
            median, high = (float(np.quantile(past, share, method="higher")) for share in (0.5, 0.95))
            found.append(StateEstimate(mean=self._mean(number), median=median, high=high))
        return found

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
        seen = self._open.get(key)
        if seen is None:
            if len(self._open) >= _MOST_OPEN:
                del self._open[next(iter(self._open))]  # the oldest
            seen = self._open[key] = SeenKey.of(len(self._windows))
        return seen

    def _finish(self, key: int) -> None:
        """Add a key to the sample once all inputs that close keys have closed it."""
        seen = self._open[key]
        inputs = range(len(self._windows))
        if any(self._closes[number] and math.isinf(seen.closed[number]) for number in inputs):
            return
        del self._open[key]
        for number, record in seen.records(self._windows):
            self._records[number].append(record)


def _record(seen: SeenKey, number: int, useless_us: float, window: float) -> KeyRecord:
    first, closed = seen.first[number], seen.closed[number]
    life = max((seen.last[number] if math.isinf(closed) else closed) - first, 1.0)
    lag = (useless_us - first) / life
    is_unbounded = math.isinf(lag) and lag > 0 and math.isinf(window)
    stay = math.inf if is_unbounded else mean_stay_us(life, lag, window)
    return KeyRecord(seen.events[number], life, lag, stay)
