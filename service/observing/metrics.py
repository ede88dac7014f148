"""Metrics for Prometheus, read from the stores when they are requested.

Every process that serves metrics returns the same values, and a restart loses none of them. Only response times are
measured per process. Unknown values are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, cast

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from service.observing.overview import PipelineOverview, pipeline_overview
from service.runtime import Stores
from service.settings import Limits
from service.stores import BOUNDS_S, Latencies
from shards import LATENESS
from streams import Clock

METRICS_FORM = CONTENT_TYPE_LATEST

_SECOND_US = 1_000_000

Samples = Iterable[tuple[tuple[str, ...], float]]


def render_metrics(stores: Stores, limits: Limits, clock: Clock, more: Iterable[Metric] = ()) -> bytes:
    """Return all metrics in the text format of Prometheus: those of the stores, then ``more``."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(
        _ReadMetrics([*_of_pipeline(pipeline_overview(stores, clock), limits, clock), *_of_stores(stores), *more])
    )
    return generate_latest(registry)


class _ReadMetrics(Collector):
    """A collector of metrics that have already been read, so that the caller gets the error of a store."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics

    def describe(self) -> Iterable[Metric]:
        return []


def _of_pipeline(overview: PipelineOverview, limits: Limits, clock: Clock) -> Iterator[Metric]:
    yield _gauge("build_info", "The release that answers.", ("version",), [((version("forestall"),), 1)])
    appended, matched, waiting = overview.backlog.appended, overview.backlog.matched, overview.backlog.waiting
    yield _counter(
        "events_appended", "Events that the log has taken, once for each route.", (), [((), appended.events)]
    )
    yield _counter("events_matched", "Events of the log that are matched.", (), [((), matched.events)])
    yield _value("backlog_events", "Events of the log that are not matched yet.", waiting.events)
    yield _value("backlog_entries", "Log entries with such events.", waiting.entries)
    yield _value("backlog_bytes", "Bytes of such entries.", waiting.bytes)
    yield _value("backlog_limit_events", "Backlog at which events are refused.", limits.max_backlog_events)
    yield _value("backlog_limit_bytes", "Bytes at which events are refused.", limits.max_log_bytes)
    yield _batches(overview)
    silent_s = None if overview.alive_us is None else (clock.now_us() - overview.alive_us) / _SECOND_US
    yield _value("pipeline_silent_seconds", "Since the pipeline last reported.", silent_s)
    started_s = None if overview.running_since_us is None else overview.running_since_us / _SECOND_US
    yield _value("pipeline_start_time_seconds", "When the pipeline started last, since 1970.", started_s)
    yield _value("state_bytes", "Bytes of the saved states of all shards.", overview.state_bytes)
    yield from _of_streams(overview)


def _of_streams(overview: PipelineOverview) -> Iterator[Metric]:
    gauges = {
        "watermark_lag_seconds": ("How far event time is behind the wall clock.", "lag_s"),
        "open_traces": ("Traces that have not ended.", "open_traces"),
        "held_partial_matches": ("Partial matches in memory.", "held"),
        "waiting_events": ("Events that wait in the reorder buffer.", "waiting"),
    }
    for name, (meaning, attribute) in gauges.items():
        values = [(stream.name, getattr(stream, attribute)) for stream in overview.streams]
        yield _gauge(name, meaning, ("stream",), [((stream,), value) for stream, value in values if value is not None])
    bounds = [
        ((stream.name,), stream.lateness_us / _SECOND_US)
        for stream in overview.streams
        if stream.lateness_us is not None
    ]
    yield _gauge("lateness_seconds", "The measured bound of out-of-orderness (lateness: auto).", ("stream",), bounds)
    late = [((stream.name, policy), count) for stream in overview.streams for policy, count in stream.late.items()]
    yield _counter("late_events", "Events that came later than the stream allows.", ("stream", "policy"), late)
    counts = [
        ((stream.name, *name.split("_", 1)), count)
        for stream in overview.streams
        for name, count in stream.operators.items()
        if ":" not in name  # counters with a colon belong to one input and are shown by explanations only
    ]
    yield _gauge("operator_counts", "What operators hold and have counted.", ("stream", "operator", "count"), counts)


def _batches(overview: PipelineOverview) -> Metric:
    summary = SummaryMetricFamily("forestall_batch_seconds", "Where the time of micro-batches went.", labels=["part"])
    for part, seconds in overview.seconds.items():
        summary.add_metric([part], count_value=overview.batches, sum_value=seconds)
    return summary


def _of_stores(stores: Stores) -> Iterator[Metric]:
    for kind in stores.result_kinds.values():
        if kind.metric is not None:
            counts = stores.counts_of(kind)
            yield _counted(counts, kind.metric.name, kind.metric.meaning, kind.metric.labels)
    repeated = [((stream,), count) for stream, count in stores.log.duplicates().items()]
    yield _counter("duplicate_events", "Events dropped as the stream had taken them before.", ("stream",), repeated)
    changes = [((stream,), count) for stream, count in stores.deciders.totals(LATENESS).items()]
    yield _counter("lateness_changes", "Changes of the measured bound of out-of-orderness.", ("stream",), changes)
    trimmed = [((stream,), count) for stream, count in stores.alerts.trimmed().items()]
    yield _counter("alerts_trimmed", "Alerts that went as more were found than are kept.", ("stream",), trimmed)
    yield _counted(
        stores.dead_letters.counts_by_pattern(),
        "pattern_limits_reached",
        "Dead letters of patterns that reached a limit of matches, partial matches or work.",
        ("stream", "pattern", "code"),
    )
    yield _gauge(
        "pattern_suspended",
        "1 where a pattern is suspended, by its work budget or by a table with too many rows.",
        ("stream", "pattern"),
        [((pattern.stream, pattern.name), 1) for pattern in stores.registry.patterns() if pattern.state == "suspended"],
    )
    yield _gauge(
        "operator_suspended",
        "1 if an operator of another kind is suspended, by its memory or an event that contradicts its document.",
        ("operator", "name"),
        [
            ((operator.kind, operator.name), 1)
            for operator in stores.registry.operators("").all()
            if operator.state == "suspended"
        ],
    )
    webhooks = {webhook.id: webhook.name or webhook.id for webhook in stores.webhooks.all()}
    outcomes = [
        ((name, outcome), getattr(stores.webhooks.stats(webhook), member))
        for webhook, name in webhooks.items()
        for outcome, member in (("delivered", "delivered"), ("failed", "failed_attempts"), ("abandoned", "dead"))
    ]
    yield _counter("webhook_attempts", "How attempts to deliver ended.", ("webhook", "outcome"), outcomes)
    yield _gauge(
        "webhook_circuit_open",
        "1 where deliveries wait after failures in a row.",
        ("webhook",),
        [((name,), int(stores.deliveries.circuit(id_).until_us is not None)) for id_, name in webhooks.items()],
    )
    yield _value("webhook_queue", "Deliveries that are queued.", stores.deliveries.queued())
    arrived, queued = "From the arrival of an event to its alert.", "From a queued delivery to its success."
    yield _histogram("alert_latency_seconds", arrived, stores.latencies.read("alert"))
    yield _histogram("webhook_latency_seconds", queued, stores.latencies.read("delivery"))


def _counted(counts: Iterable[Mapping[str, Any]], name: str, meaning: str, labels: tuple[str, ...]) -> Metric:
    """Return a counter metric with the given labels. Counts that have equal labels are added up."""
    sums: Counter[tuple[str, ...]] = Counter()
    for count in counts:
        sums[tuple(count[label] for label in labels)] += count["count"]
    return _counter(name, meaning, labels, sorted(sums.items()))


def _histogram(name: str, meaning: str, latencies: Latencies) -> Metric:
    buckets = list(zip([*map(str, BOUNDS_S), "+Inf"], latencies.cumulative, strict=True))
    histogram = HistogramMetricFamily(f"forestall_{name}", meaning)
    histogram.add_metric((), buckets, sum_value=latencies.sum_s)
    return histogram


def _family(family: Any, name: str, meaning: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    metric = family(f"forestall_{name}", meaning, labels=labels)
    for values, value in samples:
        metric.add_metric(values, value)
    return cast(Metric, metric)


_counter, _gauge = partial(_family, CounterMetricFamily), partial(_family, GaugeMetricFamily)


def _value(name: str, meaning: str, value: float | None) -> Metric:
    return _gauge(name, meaning, (), [] if value is None else [((), value)])
