"""The state of the pipeline and its patterns: reports, counters, the backlog, and missing parts of the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from service.errors import ServiceError, StoreUnavailable
from service.runtime import Stores
from service.settings import Settings
from service.stores import ExecutorReport, RegisteredPattern, ShardReport
from service.stores.heartbeat import STARTING_S
from service.stores.log.backlog import Backlog, Volume
from shards import DOCUMENT_KINDS
from streams import Clock

_SECOND_US = 1_000_000
_WITHOUT_KEY = tuple(f"{kind.name}_without_key" for kind in DOCUMENT_KINDS)  # counters that hosts may report


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOverview:
    """The state of a stream over all shards that have reported. A value is None if no shard reported it.

    ``watermark_us`` is the watermark of the slowest shard, and ``lag_s`` is its distance from the wall clock. ``held``
    counts the events bound in partial matches, and ``without_key`` the events that lack a usable key for an operator.
    ``operators`` has the counters of operators under the names ``<kind>_<name of the counter>``.
    """

    name: str
    watermark_us: int | None
    lag_s: float | None
    open_traces: int | None
    held: int | None
    waiting: int | None
    late: Mapping[str, int]
    lateness_us: int | None = None
    is_derived: bool = False
    without_key: int | None = None
    operators: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOverview:
    """The state of the pipeline. A value is None if it is unknown or no process has reported it yet.

    ``alive_us`` is the time of the last heartbeat. ``rate`` is the volume of the log that is matched per second.
    ``last_batch`` has the members of ``pipeline.BatchProgress``. ``seconds`` is the total time of each phase of
    micro-batches.
    """

    running_since_us: int | None
    alive_us: int | None
    backlog: Backlog
    rate: Volume | None
    last_batch: Mapping[str, Any] | None
    batches: int
    seconds: Mapping[str, float]
    shards: int
    state_bytes: int | None
    streams: Sequence[StreamOverview]
    executors: ExecutorReport | None = None


def pipeline_overview(stores: Stores, clock: Clock) -> PipelineOverview:
    """Return the current state of the pipeline."""
    status = stores.pipeline_status
    totals = status.totals()
    reports = status.shards()
    derived = {stream.name for stream in stores.registry.streams() if stream.derived}
    seconds = {name[1]: micros / _SECOND_US for name, micros in totals.items() if name[0] == "batch_us"}
    return PipelineOverview(
        running_since_us=status.started_us(),
        alive_us=stores.heartbeat.last_us(),
        backlog=stores.backlog.read(),
        rate=stores.backlog.drain_rate(),
        last_batch=status.latest(),
        batches=totals.get(("batches",), 0),
        seconds=dict(sorted(seconds.items())),
        shards=len(reports),
        state_bytes=_total([report.state_bytes for report in reports]),
        streams=[
            replace(overview, is_derived=overview.name in derived) for overview in _streams(reports, clock.now_us())
        ],
        executors=status.executors(),
    )


def _streams(reports: Sequence[ShardReport], now_us: int) -> list[StreamOverview]:
    names = sorted({name for report in reports for name in report.streams})
    return [_stream(name, [report for report in reports if name in report.streams], now_us) for name in names]


def _stream(name: str, reports: Sequence[ShardReport], now_us: int) -> StreamOverview:
    parts = [report.streams[name] for report in reports]
    watermarks = [part.watermark_us for part in parts if part.watermark_us is not None]
    slowest = min(watermarks, default=None)
    bounds = [part.lateness_us for part in parts if part.lateness_us is not None]
    policies = sorted({policy for part in parts for policy in part.late})
    operators: Counter[str] = Counter()
    for part in parts:
        operators.update(part.operators)
    return StreamOverview(
        name=name,
        watermark_us=slowest,
        lag_s=None if slowest is None else (now_us - slowest) / _SECOND_US,
        open_traces=_total([part.open_traces for part in parts]),
        held=_total([part.held for part in parts]),
        waiting=_total([part.waiting for part in parts]),
        lateness_us=min(bounds, default=None),
        late={policy: sum(part.late.get(policy, 0) for part in parts) for policy in policies},
        without_key=_total([operators.get(name) for name in _WITHOUT_KEY]),
        operators=operators,
    )


def _total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternCounts:
    """The numbers of a pattern's results over all its versions, including results that are no longer stored.

    ``would_be_lost`` counts the alerts that pruning would have lost, in the mode ``shadow``.
    """

    pattern: RegisteredPattern
    alerts: int
    would_be_lost: int
    last_alert: Mapping[str, Any] | None
    suppressed_alerts: int
    corrections: int
    timeouts: Sequence[Mapping[str, Any]]
    endings: Sequence[Mapping[str, Any]]


def _count_of(stores: Stores, kind: str, filters: Mapping[str, str]) -> int:
    return sum(count["count"] for count in stores.results[kind].counts(**filters))


def pattern_counts(stores: Stores, name: str) -> PatternCounts:
    """Count the results of all versions of a pattern."""
    pattern = stores.registry.pattern(name)
    filters = {"stream": pattern.stream, "pattern": name}
    place = pattern.stream, name
    return PatternCounts(
        pattern=pattern,
        alerts=stores.alerts.counts().get(place, 0),
        would_be_lost=stores.alerts.lost_counts().get(place, 0),
        last_alert=stores.alerts.last(*place),
        suppressed_alerts=_count_of(stores, "suppressed-alert", filters),
        corrections=_count_of(stores, "correction", filters),
        timeouts=stores.results["timeout"].counts(**filters),
        endings=stores.results["ending"].counts(**filters),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedBacklog:
    """The backlog that an operator skips if it is paused now.

    ``events`` is the number of skipped events. ``after`` has, for each shard, the position of the last matched entry.
    """

    events: int
    after: Mapping[int, str]


def skipped_by(stores: Stores) -> SkippedBacklog:
    """Return the backlog that an operator would skip if it were paused now."""
    after = {report.shard: report.position for report in stores.pipeline_status.shards()}
    return SkippedBacklog(events=stores.backlog.read().waiting.events, after=after)


def missing_parts(stores: Stores, settings: Settings, clock: Clock, last_us: int | None = None) -> list[str]:
    """Return why the service is not ready, in words: each missing part and its state. An empty list means ready.

    ``last_us`` is the time of the last heartbeat. By default, it is read from Redis.
    """
    try:
        last_us = stores.heartbeat.last_us() if last_us is None else last_us
    except StoreUnavailable:
        return ["Redis does not answer"]
    if last_us is None:
        failure = stores.heartbeat.failure()
        doing = stores.heartbeat.is_doing() or "its process has not started yet"
        return [f"waiting for the pipeline: {doing}{f'; it ended before: {failure}' if failure else ''}"]
    silent_s = (clock.now_us() - last_us) / _SECOND_US
    if silent_s > settings.heartbeat_stale_s:
        busy = stores.heartbeat.is_doing()
        return [f"the pipeline has not reported for {silent_s:.0f} s{f': {busy}' if busy else ''}"]
    return []


def require_stopped(settings: Settings, stores: Stores, clock: Clock, refusal: type[ServiceError]) -> None:
    """Raise ``refusal`` unless the pipeline is stopped: its last report is old, and it is not starting or busy."""
    last_us = stores.heartbeat.last_us()
    silent_s = None if last_us is None else max(0.0, (clock.now_us() - last_us) / _SECOND_US)
    if silent_s is not None and silent_s <= settings.heartbeat_stale_s:
        raise refusal(
            f"the pipeline reported {silent_s:.0f} s ago: stop the service first; one that was killed "
            f"counts as gone after {settings.heartbeat_stale_s:g} s"
        )
    doing = stores.heartbeat.is_doing()
    if doing is not None:
        raise refusal(
            f"the pipeline is busy ({doing}): stop the service first; one that was killed counts as gone after "
            f"{STARTING_S} s"
        )
