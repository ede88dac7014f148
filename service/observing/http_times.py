"""How long requests wait for their answers, by route and status; counted in the process that answers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from http import HTTPMethod
from itertools import accumulate
from threading import Lock

from prometheus_client.core import HistogramMetricFamily, Metric

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LABELS = ("method", "route", "status")
_METHODS = frozenset(method.value for method in HTTPMethod)  # a client may send any word as a method


class HttpTimes:
    """A histogram of times by method, route (with its parameters by name) and status."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, str, str], list[int]] = {}
        self._sums_s: dict[tuple[str, str, str], float] = {}

    def note(self, method: str, route: str, status: int, took_s: float) -> None:
        """Count a request."""
        labels = (method if method in _METHODS else "other", route, str(status))
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(_BOUNDS_S) + 1))
            counts[bisect_left(_BOUNDS_S, took_s)] += 1
            self._sums_s[labels] = self._sums_s.get(labels, 0.0) + took_s

    def metrics(self) -> Iterator[Metric]:
        """The histogram in the form of Prometheus."""
        found = HistogramMetricFamily(
            "forestall_http_request_seconds", "Until the answer to a request begins.", labels=_LABELS
        )
        names = [*map(str, _BOUNDS_S), "+Inf"]
        with self._lock:
            for labels, counts in sorted(self._counts.items()):
                buckets = list(zip(names, accumulate(counts), strict=True))
                found.add_metric(labels, buckets, sum_value=self._sums_s[labels])
        yield found
