"""Metering of hosts: processor time and numbers of results, measured around each call.

Cost is measured per host, because the operators of a host share its engine. Results are counted per operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from shards.operators import Host, Origin, Output, Result
from shards.results import REKEYED
from streams import EventBatch

_Item = TypeVar("_Item")


@dataclass(slots=True)
class Cost:
    """The cost of a host so far.

    ``halve`` is called from time to time, so that older costs count less.

    Attributes:
        rows_in: Number of processed events.
        cpu_ns: Processor time, in nanoseconds, for processing events, advancing time and making results.
        rows_out: Number of results by operator name. Results of the host itself are under the empty name.
    """

    rows_in: float = 0.0
    cpu_ns: float = 0.0
    rows_out: dict[str, float] = field(default_factory=dict)

    def add_out(self, operator: str, rows: int) -> None:
        self.rows_out[operator] = self.rows_out.get(operator, 0.0) + rows

    def halve(self) -> None:
        self.rows_in, self.cpu_ns = self.rows_in / 2, self.cpu_ns / 2
        self.rows_out = {name: rows / 2 for name, rows in self.rows_out.items()}


class Metering:
    """Calls the hosts of operators, and measures the CPU time of each call.

    ``clock`` returns the CPU time of this thread in nanoseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._costs: dict[Host, Cost] = {}

    def cost(self, host: Host) -> Cost | None:
        """Return the cost of a host so far, or None if the host was not called."""
        return self._costs.get(host)

    def process(self, host: Host, batch: EventBatch) -> Output:
        cost = self._costs.setdefault(host, Cost())
        cost.rows_in += len(batch)
        begin_ns = self._clock()
        output = host.process(batch)
        cost.cpu_ns += self._clock() - begin_ns
        return _Metered(output, cost, self._clock)

    def advance_time(self, host: Host, watermark_us: int) -> Output:
        cost = self._costs.setdefault(host, Cost())
        begin_ns = self._clock()
        output = host.advance_time(watermark_us)
        cost.cpu_ns += self._clock() - begin_ns
        return _Metered(output, cost, self._clock)


class _Unmetered(Metering):
    def process(self, host: Host, batch: EventBatch) -> Output:
        return host.process(batch)

    def advance_time(self, host: Host, watermark_us: int) -> Output:
        return host.advance_time(watermark_us)


UNMETERED: Metering = _Unmetered(lambda: 0)


@dataclass(frozen=True, slots=True)
class _Metered(Output):
    output: Output
    cost: Cost
    clock: Callable[[], int]

    def results(self, origin: Origin) -> Iterator[Result]:
        for result in self._timed(self.output.results(origin)):
            self._count(result)
            yield result

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        return self._timed(self.output.derived())

    def events_of(self, results: str, event_type: str) -> EventBatch | None:
        return self.output.events_of(results, event_type)

    def _timed(self, items: Iterator[_Item]) -> Iterator[_Item]:
        while True:
            begin_ns = self.clock()
            item = next(items, None)
            self.cost.cpu_ns += self.clock() - begin_ns
            if item is None:
                return
            yield item

    def _count(self, result: Result) -> None:
        if isinstance(result, tuple):
            kind, _, body = result
            self.cost.add_out(kind.subject_of(body), 1)
        elif result.kind is not REKEYED:  # re-keyed events are counted as results of the kind ``derived``
            for pair in result.subjects.value_counts().to_pylist():
                self.cost.add_out(pair["values"], pair["counts"])
