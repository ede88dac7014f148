"""Histograms of latencies in Redis, to which all processes add, so that any process can report the totals."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias, cast

from service.stores.connection import PREFIX, Client

LATENCIES_KEY = PREFIX + "latencies:"
BOUNDS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0)
Way: TypeAlias = Literal["alert", "delivery"]
"""A measured interval: ``alert`` is from an event's arrival to its alert, ``delivery`` from queueing to success."""

_SUM = "sum_us"
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """A cumulative histogram of latencies.

    ``cumulative`` has one item for each bound in ``BOUNDS_S``: the number of latencies up to this bound. The last item
    is the number of all latencies.
    """

    cumulative: tuple[int, ...]
    sum_s: float


class LatencyStore:
    """Stores one histogram of latencies for each measured interval (``Way``)."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def note(self, way: Way, latencies_us: Iterable[int]) -> None:
        """Add latencies to a histogram. Negative latencies, which are due to clock skew, count as 0."""
        durations_us = [max(0, duration_us) for duration_us in latencies_us]
        counts = Counter(bisect_left(BOUNDS_S, duration_us / _SECOND_US) for duration_us in durations_us)
        pipe = self._client.pipeline(transaction=False)
        for bound, count in counts.items():
            pipe.hincrby(LATENCIES_KEY + way, str(bound), count)
        if durations_us:
            pipe.hincrby(LATENCIES_KEY + way, _SUM, sum(durations_us))
            pipe.execute()

    def read(self, way: Way) -> Latencies:
        """Return the histogram of a measured interval."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(LATENCIES_KEY + way))
        counts = [int(fields.get(str(bound).encode(), 0)) for bound in range(len(BOUNDS_S) + 1)]
        return Latencies(cumulative=tuple(accumulate(counts)), sum_s=int(fields.get(_SUM.encode(), 0)) / _SECOND_US)
