"""Response times of requests by route and status, counted in the process that answers."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPMethod

from prometheus_client import Histogram
from prometheus_client.core import Metric

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset(method.value for method in HTTPMethod)  # any other method that a client sends counts as ``other``


class HttpTimes:
    """A histogram of response times by method, route and status.

    A route contains the names of its parameters instead of their values.
    """

    def __init__(self) -> None:
        name, meaning = "forestall_http_request_seconds", "Until the answer to a request begins."
        self._times = Histogram(name, meaning, ("method", "route", "status"), buckets=_BOUNDS_S, registry=None)

    def note(self, method: str, route: str, status: int, took_s: float) -> None:
        self._times.labels(method if method in _METHODS else "other", route, str(status)).observe(took_s)

    def metrics(self) -> Iterator[Metric]:
        for metric in self._times.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
