"""Histograms of latencies, shared by all processes of a service, so that any process can report them."""

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
"""From the arrival of an event to its alert; from a queued delivery to its success."""

_SUM = "sum_us"
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """A histogram: how many latencies are at most each bound, with those above all bounds last, and their sum."""

    cumulative: tuple[int, ...]
    sum_s: float


class LatencyStore:
    """The histograms by way."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def note(self, way: Way, latencies_us: Iterable[int]) -> None:
        """Count latencies; negative ones, which differing clocks cause, count as 0."""
        found = [max(0, one) for one in latencies_us]
        counts = Counter(bisect_left(BOUNDS_S, one / _SECOND_US) for one in found)
        pipe = self._client.pipeline(transaction=False)
        for bound, count in counts.items():
            pipe.hincrby(LATENCIES_KEY + way, str(bound), count)
        if found:
            pipe.hincrby(LATENCIES_KEY + way, _SUM, sum(found))
            pipe.execute()

    def read(self, way: Way) -> Latencies:
        """The histogram of a way."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(LATENCIES_KEY + way))
        counts = [int(found.get(str(bound).encode(), 0)) for bound in range(len(BOUNDS_S) + 1)]
        return Latencies(cumulative=tuple(accumulate(counts)), sum_s=int(found.get(_SUM.encode(), 0)) / _SECOND_US)
