"""The event log in Redis Streams as a streaming source of Spark.

One stream key per shard, ``streams.log_key``; one row per log entry, and an entry holds a whole batch of events,
so Spark moves few rows. The offset is the last position taken of each shard. Everything here runs in Python processes
that Spark starts, and is rebuilt there from plain options.

Promises: a range between two offsets always yields the same entries, as the log only grows; entries are removed only
behind offsets that Spark has committed, and never the last ``retain_entries`` of a shard; a server that is away for a
short while (a restart) is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import redis
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from pipeline.errors import LogDamaged, LogUnreachable, SourceOptionError
from streams import MAX_SHARDS, log_key, position_order

SCHEMA_DDL = "shard INT, position STRING, kind STRING, stream STRING, body BINARY"
START = "0-0"

_ARROW_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("position", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("stream", pa.string()),
        pa.field("body", pa.binary()),
    ]
)
_PAGE_ENTRIES = 64
_RETRY_CAP_S = 2.0
_RETRY_BASE_S = 0.05

# Finds the last position of each shard's next entries inside the server, so that their bodies do not travel twice.
# KEYS: shards. ARGV: where each begins, then the most entries (0: no limits) and the most bytes per shard.
_ENDS_SCRIPT = """
local entries, bytes = tonumber(ARGV[#KEYS + 1]), tonumber(ARGV[#KEYS + 2])
local ends = {}
for shard, key in ipairs(KEYS) do
  ends[shard] = ARGV[shard]
  if entries == 0 then
    local last = redis.call('XREVRANGE', key, '+', '(' .. ARGV[shard], 'COUNT', 1)
    if #last > 0 then ends[shard] = last[1][1] end
  else
    local size = 0
    for i, entry in ipairs(redis.call('XRANGE', key, '(' .. ARGV[shard], '+', 'COUNT', entries)) do
      for _, field in ipairs(entry[2]) do size = size + #field end
      if i > 1 and size > bytes then break end
      ends[shard] = entry[1]
    end
  end
end
return ends
"""

Offset = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogOptions:
    """How the log is read.

    Attributes:
        redis_url: Where the log is.
        shards: Number of shards; fixed for the life of a checkpoint.
        max_entries: At most so many entries of one shard in one micro-batch.
        max_bytes: At most so many bytes of one shard in one micro-batch, but always one entry.
        retain_entries: So many entries of a shard are kept behind the committed offset, for replays.
        tasks: Shards with news are read by at most so many Spark tasks.
        wait_ms: How long a look for news waits for some before it answers that there are none.
        retries: Attempts after a lost connection, with growing pauses of at most 2 seconds.
    """

    redis_url: str
    shards: int
    max_entries: int = 64
    max_bytes: int = 4_000_000
    retain_entries: int = 10_000
    tasks: int = 2
    wait_ms: int = 200
    retries: int = 20

    def __post_init__(self) -> None:
        if not self.redis_url:
            raise SourceOptionError(
                "option redis_url is empty: name the log's server, such as redis://127.0.0.1:6379/0"
            )
        floors = {
            "shards": 1,
            "max_entries": 1,
            "max_bytes": 1,
            "retain_entries": 0,
            "tasks": 1,
            "wait_ms": 0,
            "retries": 0,
        }
        for name, floor in floors.items():
            if getattr(self, name) < floor:
                raise SourceOptionError(f"option {name} is {getattr(self, name)}: at least {floor}", option=name)
        if self.shards > MAX_SHARDS:
            raise SourceOptionError(f"option shards is {self.shards}: at most {MAX_SHARDS}", option="shards")

    def to_mapping(self) -> dict[str, str]:
        """The options as Spark carries them."""
        return {name: str(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_mapping(cls, options: Mapping[str, str]) -> EventLogOptions:
        """Read the options that Spark carried.

        Raises:
            SourceOptionError: One is missing or not a whole number.
        """
        numbers: dict[str, int] = {}
        for name in ("shards", "max_entries", "max_bytes", "retain_entries", "tasks", "wait_ms", "retries"):
            text = options.get(name)
            if text is None:
                continue
            if not text.lstrip("-").isdigit():
                raise SourceOptionError(f"option {name} is {text!r}: a whole number is wanted", option=name)
            numbers[name] = int(text)
        if "shards" not in numbers:
            raise SourceOptionError("option shards is missing: the number of shards of the log", option="shards")
        return cls(redis_url=options.get("redis_url", ""), **numbers)


@dataclass(frozen=True)
class ShardRanges(InputPartition):
    """Some shards' parts of a micro-batch: (shard, after, until), positions as stored; read by one task."""

    ranges: tuple[tuple[int, str, str], ...]


class EventLogSource(DataSource):
    """The format ``forestall_event_log``; options are those of ``EventLogOptions``."""

    @classmethod
    def name(cls) -> str:
        return "forestall_event_log"

    def schema(self) -> str:
        return SCHEMA_DDL

    def streamReader(self, schema: StructType) -> EventLogReader:
        return EventLogReader(EventLogOptions.from_mapping(self.options))


class EventLogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads micro-batches over all shards of the log."""

    def __init__(self, options: EventLogOptions) -> None:
        self._options = options
        self._keys = [log_key(shard) for shard in range(options.shards)]
        self._server: redis.Redis | None = None
        self._target: Offset | None = None
        self._has_looked = False

    def initialOffset(self) -> dict[str, str]:
        return dict.fromkeys(map(str, range(self._options.shards)), START)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_entries * self._options.shards)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """Where the next micro-batch ends; waits up to ``wait_ms`` for news.

        Raises:
            LogUnreachable: The server stayed away for all retries.
            LogDamaged: The checkpoint is new and the log's beginning is gone.
            SourceOptionError: The checkpoint has another number of shards.
        """
        self._check_shards(start)
        if not self._has_looked:
            self._check_beginnings(start)
            self._has_looked = True
        entries = 0
        if isinstance(limit, ReadMaxRows):
            entries = max(1, limit.max_rows // self._options.shards)
        end = self._ends(start, entries)
        if end == start and self._target is None and self._wait(start):
            end = self._ends(start, entries)
        return end if self._target is None else _earlier(end, self._target, start)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends(self.initialOffset(), 0)

    def reportLatestOffset(self) -> dict[str, str] | None:
        return None

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """Shards with news, dealt out to at most ``tasks`` partitions."""
        news = [
            (shard, start[str(shard)], end[str(shard)])
            for shard in range(self._options.shards)
            if start[str(shard)] != end[str(shard)]
        ]
        tasks = min(self._options.tasks, len(news))
        return [ShardRanges(tuple(news[task::tasks])) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Entries of the partition's ranges in the order of each shard's log, in columns of ``SCHEMA_DDL``.

        Raises:
            LogUnreachable: The server stayed away for all retries.
            LogDamaged: Entries that were there when the micro-batch was planned are gone.
        """
        server = connect(self._options)
        try:
            for shard, after, until in cast(ShardRanges, partition).ranges:
                yield from _read_range(server, shard, after, until)
        finally:
            server.close()

    def commit(self, end: dict[str, str]) -> None:
        """Remove entries behind ``end`` beyond the last ``retain_entries``."""
        server = self._connection()
        try:
            with server.pipeline(transaction=False) as lengths:
                for key in self._keys:
                    lengths.xlen(key)
                excess = [length - self._options.retain_entries for length in lengths.execute()]
            with server.pipeline(transaction=False) as trims:
                for shard, (key, surplus) in enumerate(zip(self._keys, excess, strict=True)):
                    if surplus > 0:
                        trims.xtrim(key, minid=end[str(shard)], approximate=True, limit=surplus)
                trims.execute()
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _unreachable(error) from error

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

    def _check_beginnings(self, start: Offset) -> None:
        """Refuse to read a shard from its beginning when that is gone: what was declared there would be missing."""
        for shard, key in enumerate(self._keys):
            if start[str(shard)] != START:
                continue
            added, kept = _counts(self._connection(), key)
            if added != kept:
                raise LogDamaged(
                    f"shard {shard} of the event log is to be read from its beginning, but {added - kept} of its "
                    f"{added} entries are gone: they were trimmed to the log's retention, and the streams and patterns "
                    "that were declared in them cannot be rebuilt by a new checkpoint; put the old checkpoint back, or "
                    "begin with an empty Redis and data folder; raise FORESTALL_LOG_RETENTION_ENTRIES to keep more for "
                    "replays",
                    shard=shard,
                    added=added,
                    kept=kept,
                )

    def _ends(self, start: Offset, entries: int) -> Offset:
        """Last position of at most ``entries`` (0: all) entries after ``start``, per shard."""
        afters = [start[str(shard)] for shard in range(self._options.shards)]
        try:
            limits = (str(entries), str(self._options.max_bytes))
            found = self._connection().eval(_ENDS_SCRIPT, len(self._keys), *self._keys, *afters, *limits)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _unreachable(error) from error
        positions = cast("list[bytes]", found)
        return {str(shard): position.decode() for shard, position in enumerate(positions)}

    def _wait(self, start: Offset) -> bool:
        """Whether an entry came within ``wait_ms``."""
        if not self._options.wait_ms:
            return False
        afters: dict[Any, Any] = {key: start[str(shard)] for shard, key in enumerate(self._keys)}
        try:
            return bool(self._connection().xread(afters, count=1, block=self._options.wait_ms))
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _unreachable(error) from error


def connect(options: EventLogOptions) -> redis.Redis:
    """A connection that waits for a server which is away: growing pauses, a bounded number of them."""
    return redis.Redis.from_url(
        options.redis_url,
        socket_connect_timeout=5.0,
        socket_timeout=30.0 + options.wait_ms / 1_000,
        retry=Retry(ExponentialWithJitterBackoff(base=_RETRY_BASE_S, cap=_RETRY_CAP_S), options.retries),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
    )


def _counts(server: redis.Redis, key: str) -> tuple[int, int]:
    """How many entries were ever added to a shard, and how many it still has."""
    try:
        facts = server.xinfo_stream(key)
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise _unreachable(error) from error
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return 0, 0
        raise
    return int(facts["entries-added"]), int(facts["length"])


def _read_range(server: redis.Redis, shard: int, after: str, until: str) -> Iterator[pa.RecordBatch]:
    reached = after
    while reached != until:
        try:
            page = cast(
                "list[tuple[bytes, dict[bytes, bytes]]]",
                server.xrange(log_key(shard), min=f"({reached}", max=until, count=_PAGE_ENTRIES),
            )
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _unreachable(error) from error
        if not page:
            raise LogDamaged(
                f"shard {shard} of the event log ends at {reached} where entries up to {until} were planned: "
                "entries were removed, or the server lost data; put the log back, or begin with an empty Redis and "
                "data folder: a new checkpoint alone cannot rebuild the streams and patterns of removed entries",
                shard=shard,
                reached=reached,
                planned=until,
            )
        yield _to_rows(shard, page)
        reached = page[-1][0].decode()


def _to_rows(shard: int, page: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> pa.RecordBatch:
    columns = [
        pa.array([shard] * len(page), pa.int32()),
        pa.array([position.decode() for position, _ in page], pa.string()),
        pa.array([_text(fields, b"kind") for _, fields in page], pa.string()),
        pa.array([_text(fields, b"stream") for _, fields in page], pa.string()),
        pa.array([fields.get(b"body", b"") for _, fields in page], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)


def _text(fields: Mapping[bytes, bytes], name: bytes) -> str:
    return fields.get(name, b"").decode(errors="replace")


def _earlier(end: Offset, target: Offset, start: Offset) -> Offset:
    """Per shard the earlier of ``end`` and ``target``, but never before ``start``."""
    bounded = {shard: min(position, target[shard], key=position_order) for shard, position in end.items()}
    return {shard: max(position, start[shard], key=position_order) for shard, position in bounded.items()}


def _unreachable(error: Exception) -> LogUnreachable:
    return LogUnreachable(f"the event log does not answer: {error}; the micro-batch is tried again after a restart")
