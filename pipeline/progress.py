"""Progress of a micro-batch: its input, the time spent, and the contents of the shards.

There are three sources: the rows of the kind ``stats`` from the shards, the time that the sink took, and Spark's report
after the commit. Nothing is estimated, and an unknown value is None.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from shards import REKEYED, RESULT_KINDS, STATS, OutputRow

_PLANNING = ("latestOffset", "getBatch", "queryPlanning")
_COMMITTING = ("walCommit", "commitOffsets")
_SUMMED = ("entries", "bytes", "load_s", "match_s", "keep_s")
_REMEMBERED = 8  # most written micro-batches whose end Spark has not reported

_Sink = Callable[[Sequence[OutputRow], int], None]
BatchReport = Callable[["BatchProgress"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """Progress of one micro-batch.

    Attributes:
        started_us: Start time, microseconds UTC.
        duration_ms: Time from the planning of the micro-batch to its commit.
        parts_ms: Parts of ``duration_ms`` by name, which add up to it. ``plan``: waiting for entries (up to the
        source's waiting time) and planning; ``read``: reading the log, moving rows, Spark's own work on the tasks;
        ``match``: the matcher; ``state``: finding and saving states; ``commit``: the sink and Spark's commit;
        ``other``: the rest. Tasks run in parallel. If their times add up to more than the time of the job, they
        are scaled down to it.
        entries: Matched log entries, control records included.
        events: Matched events. None in the first micro-batch of a shard in a process.
        shards: Shards with new entries.
        state_bytes: Bytes that these shards have written of their states. None if not reported.
        open_traces: Open traces in these shards. None if not reported.
        held: Bound events in these shards. None if not reported.
        watermark_lag_s: For each stream with a watermark, the time from its earliest watermark in these shards to the
            end of the micro-batch.
    """

    batch: int
    started_us: int
    duration_ms: float
    parts_ms: Mapping[str, float]
    entries: int
    events: int | None
    bytes: int
    rows: Mapping[str, int]
    shards: int
    state_bytes: int | None
    open_traces: int | None
    held: int | None
    watermark_lag_s: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTime:
    """Statistics of a batch as the driver sees them.

    They are the bodies of its ``stats`` rows, counts of rows and events, and the time in the sink.
    """

    reports: Sequence[Mapping[str, Any]]
    rows: Mapping[str, int]
    sink_ms: float
    events: int | None = None


class BatchMeter:
    """A sink around another sink, which also reports each micro-batch after its commit.

    The report is made in the thread that runs the query.
    """

    def __init__(self, sink: _Sink, report: BatchReport) -> None:
        self._sink = sink
        self._report = report
        self._sink_times: dict[int, SinkTime] = {}
        self._events: dict[int, int] = {}  # matched events by shard, since its state began

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        """Pass all rows on to the sink, and note their statistics."""
        start_s = time.perf_counter()
        self._sink(rows, epoch_id)
        sink_ms = 1_000 * (time.perf_counter() - start_s)
        sink_time = seen_by_driver(rows, sink_ms)
        events = self._new_events(sink_time)
        self._sink_times[epoch_id] = replace(sink_time, reports=_by_shard(sink_time.reports), events=events)
        while len(self._sink_times) > _REMEMBERED:
            del self._sink_times[next(iter(self._sink_times))]

    def _new_events(self, sink_time: SinkTime) -> int | None:
        """Return how many events the shards have matched since their last reports. None at a shard's first report."""
        new: int | None = 0
        for report in sink_time.reports:
            events = _streams_total(report, "events") or 0
            before = self._events.get(report["shard"])
            new = None if before is None or new is None else new + max(0, events - before)
            self._events[report["shard"]] = events
        return new

    def take(self, epoch_id: int) -> SinkTime:
        """Return the statistics of a batch that the sink has written, and forget them."""
        return self._sink_times.pop(epoch_id)

    def committed(self, spark_progress: str) -> None:
        """Report a committed micro-batch from the JSON of Spark's ``StreamingQueryProgress``."""
        progress = orjson.loads(spark_progress)
        sink_time = self._sink_times.pop(progress["batchId"], None)
        if sink_time is not None:
            self._report(fold(progress, sink_time))


def seen_by_driver(rows: Sequence[OutputRow], sink_ms: float) -> SinkTime:
    """Return the statistics in the rows of a micro-batch, with the time ``sink_ms`` that the sink took."""
    counts: Counter[str] = Counter()
    for row in rows:
        kind = RESULT_KINDS.get(row.kind)
        if kind is not None and kind.counts_for:
            counts[kind.counts_for] += orjson.loads(row.body)["count"]
        elif kind not in (STATS, REKEYED):
            counts[row.kind] += 1
    reports = [orjson.loads(row.body) for row in rows if row.kind == STATS.name]
    return SinkTime(reports=reports, rows=counts, sink_ms=sink_ms)


def merged(first: SinkTime, second: SinkTime) -> SinkTime:
    """Merge the statistics of two batches as if they were one batch."""
    are_known = first.events is not None and second.events is not None
    return SinkTime(
        reports=_by_shard([*first.reports, *second.reports]),
        rows=Counter(first.rows) + Counter(second.rows),
        sink_ms=first.sink_ms + second.sink_ms,
        events=(first.events or 0) + (second.events or 0) if are_known else None,
    )


def _by_shard(reports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    merged_reports: dict[int, Mapping[str, Any]] = {}
    for report in reports:
        before = merged_reports.get(report["shard"], {})
        merged_reports[report["shard"]] = {**report, **{name: before.get(name, 0) + report[name] for name in _SUMMED}}
    return list(merged_reports.values())


def fold(spark: Mapping[str, Any], sink_time: SinkTime) -> BatchProgress:
    """Merge Spark's report on a micro-batch with the reports of the shards in ``sink_time``.

    ``spark`` is a decoded ``StreamingQueryProgress``.
    """
    durations = spark["durationMs"]
    duration_ms = float(durations.get("triggerExecution", sum(durations.values())))
    started_us = round(datetime.fromisoformat(spark["timestamp"]).timestamp() * 1_000_000)
    return BatchProgress(
        batch=spark["batchId"],
        started_us=started_us,
        duration_ms=duration_ms,
        parts_ms=_parts(durations, duration_ms, sink_time),
        entries=sum(report["entries"] for report in sink_time.reports),
        events=sink_time.events,
        bytes=sum(report["bytes"] for report in sink_time.reports),
        rows=dict(sink_time.rows),
        shards=len(sink_time.reports),
        state_bytes=_total(report.get("state_bytes") for report in sink_time.reports),
        open_traces=_total(_streams_total(report, "open_traces") for report in sink_time.reports),
        held=_total(_streams_total(report, "held") for report in sink_time.reports),
        watermark_lag_s=_lags(sink_time.reports, started_us + round(duration_ms * 1_000)),
    )


def _parts(durations: Mapping[str, float], duration_ms: float, sink_time: SinkTime) -> dict[str, float]:
    job_ms = max(0.0, durations.get("addBatch", 0) - sink_time.sink_ms)
    match_ms = 1_000 * sum(report["match_s"] for report in sink_time.reports)
    state_ms = 1_000 * sum(report["load_s"] + report["keep_s"] for report in sink_time.reports)
    scale = min(1.0, job_ms / (match_ms + state_ms)) if match_ms + state_ms else 0.0
    parts = {
        "plan": float(sum(durations.get(name, 0) for name in _PLANNING)),
        "read": job_ms - scale * (match_ms + state_ms),
        "match": scale * match_ms,
        "state": scale * state_ms,
        "commit": sink_time.sink_ms + sum(durations.get(name, 0) for name in _COMMITTING),
    }
    rounded = {name: round(value, 3) for name, value in parts.items()}
    return {**rounded, "other": round(max(0.0, duration_ms - sum(rounded.values())), 3)}


def _streams_total(report: Mapping[str, Any], name: str) -> int | None:
    return _total(measures.get(name) for measures in report["streams"].values())


def _total(values: Any) -> int | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def _lags(reports: Sequence[Mapping[str, Any]], end_us: int) -> dict[str, float]:
    slowest: dict[str, int] = {}
    for report in reports:
        for name, measures in report["streams"].items():
            watermark_us = measures.get("watermark_us")
            if watermark_us is not None:
                slowest[name] = min(watermark_us, slowest.get(name, watermark_us))
    return {name: round((end_us - watermark_us) / 1_000_000, 3) for name, watermark_us in sorted(slowest.items())}
