"""The reader of the event log in Redis Streams, for the source of Spark.

Each shard has one stream key, ``streams.log_key``. A row is one log entry, and an entry holds a whole batch of events,
so Spark transfers few rows. The offset is the last position read of each shard. All of this runs in Python processes
that Spark starts.

Promises: a range between two offsets always yields the same entries, because the log only grows. Entries are removed
only before a snapshot of a state that Spark has committed, and never the last ``retain_entries`` of a shard. During a
short outage of the server, such as a restart, the source waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import redis
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from pipeline.errors import LogDamaged, SourceOptionError
from pipeline.snapshots import SnapshotIndex, open_snapshots
from pipeline.sources.log_reading import (
    POSITIONS_KEY,
    Page,
    beginnings,
    connect,
    counts,
    last_position,
    reaching,
    read_pages,
    text_of,
    written_up_to,
)
from pipeline.sources.options import EventLogOptions
from streams import LAYOUT_KEY, log_key, position_order, read_script

_TEXTS = ("after", "position", "kind", "stream", "route")
_ARROW_SCHEMA = pa.schema({"shard": pa.int32(), **dict.fromkeys(_TEXTS, pa.string()), "body": pa.binary()})

Offset = dict[str, str]


@dataclass(frozen=True)
class ShardRanges(InputPartition):
    """The input of one Spark task: ranges of some shards, as (shard, after, until) with positions of the log.

    A range begins after ``after`` and includes ``until``.
    """

    ranges: tuple[tuple[int, str, str], ...]


class EventLogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches over all shards of the log, reads their entries, and removes entries that are not needed."""

    def __init__(self, options: EventLogOptions) -> None:
        self._options = options
        self._keys = [log_key(shard) for shard in range(options.shards)]
        self._server: redis.Redis | None = None
        self._target: Offset | None = None
        self._has_looked = False
        self._written: Offset = {}

    def initialOffset(self) -> dict[str, str]:
        """Return the positions after which a new query reads: by default, the start of the log.

        After a resharding, the query starts at the division. After continuous tasks, it starts where they stopped.
        """
        starts = beginnings(self._connection(), self._options)
        stepped = cast(
            "list[bytes | None]",
            self._connection().hmget(POSITIONS_KEY, [f"position:{shard}" for shard in starts]),
        )
        for shard, position in zip(starts, stepped, strict=True):
            if position is not None:
                starts[shard] = max(starts[shard], position.decode(), key=position_order)
        return {str(shard): position for shard, position in starts.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_entries * self._options.shards)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Return the end of the next micro-batch. If there are no new entries, wait up to ``wait_ms`` for them.

        Raise ``LogUnreachable`` if the server did not answer in all retries. Raise ``LogDamaged`` if the checkpoint is
        new and the log's beginning is gone, or if the checkpoint is ahead of the log or of the results. Raise
        ``SourceOptionError`` if the checkpoint or the log has another number of shards.
        """
        self._check_shards(start)
        if not self._has_looked:
            self.check(start)
            self._written = {
                str(shard): written_up_to(self._connection(), self._options, shard)
                for shard in range(self._options.shards)
            }
            self._has_looked = True
        entries = 0
        if isinstance(limit, ReadMaxRows):
            entries = max(1, limit.max_rows // self._options.shards)
        end = self._ends(start, entries)
        if end == start and self._target is None and self._wait(start):
            end = self._ends(start, entries)
        end = {shard: _up_to(self._written[shard], start[shard], position) for shard, position in end.items()}
        return end if self._target is None else _earlier(end, self._target, start)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends(self.initialOffset(), 0)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Return the shards with new entries, divided into at most ``tasks`` partitions."""
        ranges = [
            (shard, start[str(shard)], end[str(shard)])
            for shard in range(self._options.shards)
            if start[str(shard)] != end[str(shard)]
        ]
        tasks = min(self._options.tasks, len(ranges))
        return [ShardRanges(tuple(ranges[task::tasks])) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield entries of the partition's ranges, in columns of ``event_log.SCHEMA_DDL``.

        The entries of each shard are in the order of its log. Raise ``LogDamaged`` if entries of the planned ranges are
        gone.
        """
        server = connect(self._options)
        try:
            for shard, after, until in cast(ShardRanges, partition).ranges:
                for page in read_pages(server, shard, after, until):
                    yield _to_rows(shard, after, page)
        finally:
            server.close()

    def commit(self, end: dict[str, str]) -> None:
        """Remove the entries and snapshots that no recovery needs.

        The newest snapshot at or before ``end`` is retained, with all entries after it. The last ``retain_entries`` of
        each shard are retained in any case.
        """
        server = self._connection()
        with reaching():
            for shard, key in enumerate(self._keys):
                floor = self._drop_snapshots(shard, end[str(shard)])
                surplus = server.xlen(key) - self._options.retain_entries
                if floor is not None and surplus > 0:
                    server.xtrim(key, minid=floor, approximate=True, limit=surplus)

    def _drop_snapshots(self, shard: int, committed: str) -> str | None:
        """Remove all snapshots before a shard's newest committed snapshot. Return the position of this snapshot."""
        index = SnapshotIndex(self._connection(), self._options.generation)
        floor = index.latest(shard, committed)
        if floor is not None:
            store = open_snapshots(self._options.snapshots, self._connection(), self._options.generation)
            for position in index.positions(shard):
                if position_order(position) < position_order(floor):
                    index.remove(shard, position)
                    store.remove(shard, position)
        return floor

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _connection(self) -> redis.Redis:
        if self._server is None:
            self._server = connect(self._options)
        return self._server

    def _check_shards(self, start: Offset) -> None:
        if len(start) != self._options.shards:
            raise SourceOptionError(
                f"the checkpoint was made with {len(start)} shards and the log has {self._options.shards}; "
                "the number of shards is fixed for the life of a checkpoint",
                option="shards",
            )

    def check(self, start: Offset) -> None:
        """Check that the log can be read from these positions on. Raise ``LogDamaged`` otherwise.

        If entries at the beginning of a shard are gone, the shard cannot be read from its beginning, because
        declarations would be missing.
        """
        first = beginnings(self._connection(), self._options)
        for shard, key in enumerate(self._keys):
            if start[str(shard)] != first[shard]:
                self._check_reached(shard, start[str(shard)])
                continue
            if self._options.generation:
                self._check_start(shard, start[str(shard)])
                continue
            added, present = counts(self._connection(), key)
            if added != present:
                raise LogDamaged(
                    f"shard {shard} of the event log is to be read from its beginning, but {added - present} of its "
                    f"{added} entries are gone: they were trimmed to the log's retention, and the streams and patterns "
                    "that were declared in them cannot be rebuilt by a new checkpoint; put the old checkpoint back, or "
                    "begin with an empty Redis and data folder; raise FORESTALL_LOG_RETENTION_ENTRIES to keep more for "
                    "replays",
                    shard=shard,
                    added=added,
                    kept=present,
                )

    def _check_reached(self, shard: int, position: str) -> None:
        last = last_position(self._connection(), self._keys[shard], position)
        if last != position:
            raise self._ahead(shard, position, f"the log has entries up to {last}")
        written = written_up_to(self._connection(), self._options, shard) if self._options.results else position
        if position_order(written) < position_order(position):
            raise self._ahead(shard, position, f"results are written up to {written}")

    def _ahead(self, shard: int, position: str, fact: str) -> LogDamaged:
        return LogDamaged(
            f"the checkpoint says that shard {shard} of the event log is matched up to {position}, but {fact}: the "
            "Redis server lost data, or holds an older backup than the data folder; put back the Redis and the data "
            "folder that belong together, or begin with both empty",
            shard=shard,
            position=position,
        )

    def _check_start(self, shard: int, start: str) -> None:
        if SnapshotIndex(self._connection(), self._options.generation).latest(shard, start) is None:
            raise LogDamaged(
                f"shard {shard} of the event log is to be read from {start} on, where the log was divided into "
                f"{self._options.shards} shards, but the state that it had there is gone, as a newer one took its "
                "place; put the old checkpoint back, or begin with an empty Redis and data folder",
                shard=shard,
                start=start,
            )

    def _ends(self, start: Offset, entries: int) -> Offset:
        """Return the end of each shard's next range, which has at most ``entries`` entries (0: all) after ``start``."""
        afters = [start[str(shard)] for shard in range(self._options.shards)]
        script = read_script("pipeline.sources", "ends")
        keys, args = script.bind(
            {
                "layout": LAYOUT_KEY,
                "shards": self._keys,
                "most_entries": entries,
                "most_bytes": self._options.max_bytes,
                "afters": afters,
            }
        )
        with reaching():
            reply = self._connection().register_script(script.text)(keys, args)
        positions = cast("list[bytes]", reply)
        if not positions:
            raise SourceOptionError(
                f"this job was started for {self._options.shards} shards, but their number has changed since; "
                "restart it",
                option="shards",
            )
        return {str(shard): position.decode() for shard, position in enumerate(positions)}

    def _wait(self, start: Offset) -> bool:
        if not self._options.wait_ms:
            return False
        afters: dict[Any, Any] = {key: start[str(shard)] for shard, key in enumerate(self._keys)}
        with reaching():
            return bool(self._connection().xread(afters, count=1, block=self._options.wait_ms))


def log_ends(options: EventLogOptions) -> Offset:
    """Return the last position of each shard. A shard without entries has the start position.

    Raise ``SourceOptionError`` if the log has another number of shards.
    """
    reader = EventLogReader(options)
    try:
        return reader._ends(reader.initialOffset(), 0)
    finally:
        reader.stop()


def _to_rows(shard: int, after: str, page: Page) -> pa.RecordBatch:
    rows = len(page)
    columns = [
        pa.array([shard] * rows, pa.int32()),
        pa.array([after] * rows, pa.string()),
        pa.array([position.decode() for position, _ in page], pa.string()),
        *(
            pa.array([text_of(fields, name) for _, fields in page], pa.string())
            for name in (b"kind", b"stream", b"route")
        ),
        pa.array([fields.get(b"body", b"") for _, fields in page], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)


def _up_to(written: str, start: str, end: str) -> str:
    """Return the end of a micro-batch's range of a shard: ``end``, or ``written`` if this is within the range.

    ``written`` is the position up to which results are written. So the results of a range are written completely or not
    at all, even if a new checkpoint reads the log again. If a range is written, its derived events are ignored.
    """
    is_within = position_order(start) < position_order(written) < position_order(end)
    return written if is_within else end


def _earlier(end: Offset, target: Offset, start: Offset) -> Offset:
    bounded = {shard: min(position, target[shard], key=position_order) for shard, position in end.items()}
    return {shard: max(position, start[shard], key=position_order) for shard, position in bounded.items()}
