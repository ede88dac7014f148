"""The pipeline's reports about its shards, its latest micro-batch, its executors and the costs of its operators.

A shard's report is written with the rows of its micro-batch, before Spark commits the micro-batch. One script stores
the report and updates the counters of the log. A micro-batch that is written again after a crash is recognised by its
positions and is not counted again. The duration of a micro-batch is reported after the commit. If the process dies in
between, the duration is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from service.stores.connection import PREFIX, Client, register
from service.stores.log.backlog import MARKS_KEPT, MARKS_KEY, MATCHED_KEY
from service.stores.records import decode, encode
from shards import COUNTED, OutputRow
from streams import TASKS_JOB_KEY, TASKS_OWNERS_KEY, log_key

SHARDS_KEY = PREFIX + "pipeline:shards"
TOTALS_KEY = PREFIX + "pipeline:totals"
LATEST_KEY = PREFIX + "pipeline:latest"
STARTED_KEY = PREFIX + "pipeline:started"
EXECUTORS_KEY = PREFIX + "pipeline:executors"
COSTS_KEY = PREFIX + "pipeline:costs"

_EXECUTORS_S = 60


_LATE = "late_"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """The state of one stream in one shard. A value that the shard does not report is None.

    Attributes:
        held: Number of bound events in partial matches.
        waiting: Number of events in the reorder buffer.
        late: Number of late events by treatment.
        operators: Counts of the stream's operators, by name. A name has the form ``<kind>_<counted noun>``.
    """

    watermark_us: int | None
    open_traces: int | None
    held: int | None
    waiting: int | None
    late: Mapping[str, int]
    lateness_us: int | None = None
    operators: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """The latest report of a shard.

    Attributes:
        position: Position up to which the shard is matched.
        state_bytes: Size of the shard's saved state, or None if it is not reported.
        process: Machine and process id of the process that matched the shard, or empty if unknown.
    """

    shard: int
    position: str
    state_bytes: int | None
    streams: Mapping[str, StreamReport]
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCost:
    """The measured cost of a host: all operators of one kind in one shard that read a stream by the same key.

    The counts, ``cpu_ns`` and ``seconds`` are sums in which older measurements have less weight. So a count divided by
    ``seconds`` is a recent rate. ``operators`` has the number of results of each operator.
    """

    shard: int
    stream: str
    kind: str
    at_us: int
    seconds: float
    rows_in: float
    rows_out: float
    cpu_ns: float
    operators: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorReport:
    """The number of running executors of a Spark cluster, and the machines of executors lost since the start."""

    running: int
    missing: tuple[str, ...]


class PipelineStatus:
    """Stores the pipeline's reports."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._note = register(client, "log/note_matched")
        self._keep = register(client, "log/keep_progress")

    def note(self, rows: Sequence[OutputRow]) -> list[bool]:
        """Store the shards' reports of a micro-batch, and count its events as matched. ``rows`` are the reports.

        Return a flag for each row. It is False if an earlier call has already counted the shard's events up to the
        row's position.
        """
        if not rows:
            return []
        costs: dict[Any, Any] = {
            row.shard: encode(**cost) for row in rows if (cost := orjson.loads(row.body).get("costs"))
        }
        if costs:
            self._client.hset(COSTS_KEY, mapping=costs)
        replies = self._note(
            matched=MATCHED_KEY,
            marks=MARKS_KEY,
            reports=SHARDS_KEY,
            shards=[log_key(row.shard) for row in rows],
            marks_kept=MARKS_KEPT,
            shard_reports=[part for row in rows for part in (row.shard, row.position, report_of(row))],
        )
        return [bool(is_counted) for is_counted in replies]

    def begin(self, now_us: int) -> None:
        """Store the time at which the pipeline starts."""
        self._client.set(STARTED_KEY, now_us)

    def started_us(self) -> int | None:
        """Return the time of the pipeline's last start in microseconds UTC, or None if it was never started."""
        time_us = cast("bytes | None", self._client.get(STARTED_KEY))
        return None if time_us is None else int(time_us)

    def keep_executors(self, report: ExecutorReport) -> None:
        """Store the report about executors, which expires after a minute."""
        self._client.set(EXECUTORS_KEY, encode(running=report.running, missing=report.missing), ex=_EXECUTORS_S)

    def executors(self) -> ExecutorReport | None:
        """Return the report about executors, or None if Spark is local or the pipeline does not run."""
        body = cast("bytes | None", self._client.get(EXECUTORS_KEY))
        if body is None:
            return None
        record = decode(body, "the executors of the pipeline")
        return ExecutorReport(running=record["running"], missing=tuple(record["missing"]))

    def keep(self, progress: Mapping[str, Any]) -> None:
        """Store the progress of a micro-batch (``pipeline.BatchProgress`` as JSON), and add its times to the totals."""
        increments = [(_field("batches"), 1)]
        increments += [(_field("batch_us", part), round(ms * 1_000)) for part, ms in progress["parts_ms"].items()]
        self._keep(
            latest=LATEST_KEY,
            totals=TOTALS_KEY,
            record=encode(**progress),
            rises=[item for pair in increments for item in pair],
        )

    def latest(self) -> dict[str, Any] | None:
        """Return the progress of the latest micro-batch, or None before the first micro-batch."""
        body = cast("bytes | None", self._client.get(LATEST_KEY))
        return None if body is None else decode(body, "the latest micro-batch")

    def totals(self) -> dict[tuple[str, ...], int]:
        """Return totals over all micro-batches.

        The key ``("batches",)`` has the number of micro-batches. A key ``("batch_us", phase)`` has the time of a phase
        in microseconds.
        """
        totals = cast("dict[bytes, bytes]", self._client.hgetall(TOTALS_KEY))
        return {tuple(orjson.loads(field)): int(count) for field, count in totals.items()}

    def costs(self) -> list[HostCost]:
        """Return the measured costs of all hosts, sorted by shard."""
        bodies = cast("dict[bytes, bytes]", self._client.hgetall(COSTS_KEY))
        return [
            HostCost(
                shard=int(shard),
                stream=stream,
                kind=kind,
                at_us=record["at_us"],
                seconds=record["seconds"],
                **measurements,
            )
            for shard, body in sorted(bodies.items(), key=lambda pair: int(pair[0]))
            for record in (decode(body, f"the costs of shard {shard.decode()}"),)
            for stream, kinds in record["streams"].items()
            for kind, measurements in kinds.items()
        ]

    def ends(self, shards: int) -> list[str]:
        """Return the position of each shard's newest entry, or ``0-0`` for an empty shard."""
        pipe = self._client.pipeline(transaction=False)
        for shard in range(shards):
            pipe.xrevrange(log_key(shard), count=1)
        return [entries[0][0].decode() if entries else "0-0" for entries in pipe.execute()]

    def owners(self) -> dict[int, str]:
        """Return the name of the continuous task that holds each shard. If no continuous tasks run, return no names."""
        owners = cast("dict[bytes, bytes]", self._client.hgetall(TASKS_OWNERS_KEY))
        is_running = self._client.exists(TASKS_JOB_KEY)
        return {int(shard): task.decode() for shard, task in owners.items()} if is_running else {}

    def shards(self) -> list[ShardReport]:
        """Return the latest report of each shard that has ever reported."""
        records = cast("dict[bytes, bytes]", self._client.hgetall(SHARDS_KEY))
        reports = [
            _report(decode(record, f"the report of shard {shard.decode()}")) for shard, record in records.items()
        ]
        return sorted(reports, key=lambda report: report.shard)


def report_of(row: OutputRow) -> bytes:
    """Encode a shard's report for the store."""
    members = {name: value for name, value in orjson.loads(row.body).items() if name not in ("observed", "costs")}
    return encode(**{**members, "shard": row.shard, "position": row.position})


def _field(*names: str) -> str:
    return orjson.dumps(names).decode()


def _report(record: Mapping[str, Any]) -> ShardReport:
    streams = {name: _stream_report(report) for name, report in record.get("streams", {}).items()}
    return ShardReport(
        shard=record["shard"],
        position=record["position"],
        state_bytes=record.get("state_bytes"),
        streams=streams,
        process="-".join(map(str, record.get("process", ()))),
    )


def _stream_report(report: Mapping[str, Any]) -> StreamReport:
    return StreamReport(
        watermark_us=report.get("watermark_us"),
        open_traces=report.get("open_traces"),
        held=report.get("held"),
        waiting=report.get("waiting"),
        lateness_us=report.get("lateness_us"),
        late={name.removeprefix(_LATE): count for name, count in report.items() if name.startswith(_LATE)},
        operators={name: count for name, count in report.items() if name.startswith(COUNTED)},
    )
