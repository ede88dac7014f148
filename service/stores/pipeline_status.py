"""What the pipeline tells of itself: what each shard has matched, how the latest micro-batch went, and totals.

What a shard tells comes with the rows of its micro-batch, before Spark commits it, and is counted together with the
counters of the log in one script; a micro-batch that is written again after a crash is known by its positions and
changes nothing. How long a micro-batch took is told after its commit, and lost when the process dies in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import orjson

from service.stores.backlog import APPENDED_KEY, MARKS_KEPT, MARKS_KEY, MATCHED_KEY
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode
from streams import log_key

SHARDS_KEY = PREFIX + "pipeline:shards"
TOTALS_KEY = PREFIX + "pipeline:totals"
LATEST_KEY = PREFIX + "pipeline:latest"
STARTED_KEY = PREFIX + "pipeline:started"

# KEYS: appended, matched, marks, reports of shards, then the shards. ARGV: marks kept, then of each shard its
# number, the position that it is matched to, and its report.
# Returns 1 for each shard that was counted.
_NOTE = """
local function later(one, other)
  local ms, n = string.match(one, '(%d+)-(%d+)')
  local other_ms, other_n = string.match(other, '(%d+)-(%d+)')
  if ms ~= other_ms then return tonumber(ms) > tonumber(other_ms) end
  return tonumber(n) > tonumber(other_n)
end
local names = {'entries', 'events', 'bytes'}
local function appended(shard)
  local counts = {}
  for j, name in ipairs(names) do counts[j] = tonumber(redis.call('HGET', KEYS[1], name .. ':' .. shard) or 0) end
  return counts
end
-- What is matched when a shard is matched up to a position: all at its end, else what the last counted entry says.
local function reached(key, shard, known, position)
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  if #last == 0 or not later(last[1][1], position) then return appended(shard) end
  local from = position
  while true do
    local found = redis.call('XREVRANGE', key, from, '(' .. known, 'COUNT', 1)
    if #found == 0 then return {} end
    for i = 1, #found[1][2], 2 do
      if found[1][2][i] == 'upto' then
        local entries, events, bytes = string.match(found[1][2][i + 1], '(%d+):(%d+):(%d+)')
        return {tonumber(entries), tonumber(events), tonumber(bytes)}
      end
    end
    from = '(' .. found[1][1]
  end
end
local fresh, done = {}, {0, 0, 0}
for i = 5, #KEYS do
  local at = 2 + (i - 5) * 3
  local shard, position = ARGV[at], ARGV[at + 1]
  local known = redis.call('HGET', KEYS[2], 'position:' .. shard) or '0-0'
  fresh[i - 4] = 0
  if later(position, known) then
    fresh[i - 4] = 1
    for j, count in ipairs(reached(KEYS[i], shard, known, position)) do
      local field = names[j] .. ':' .. shard
      local rise = count - tonumber(redis.call('HGET', KEYS[2], field) or 0)
      redis.call('HINCRBY', KEYS[2], field, string.format('%.0f', rise))
      redis.call('HINCRBY', KEYS[2], names[j], string.format('%.0f', rise))
      done[j] = done[j] + rise
    end
    redis.call('HSET', KEYS[2], 'position:' .. shard, position)
    redis.call('HSET', KEYS[4], shard, ARGV[at + 2])
  end
end
if done[1] > 0 then
  local now = redis.call('TIME')
  local mark = string.format('[%.0f,%.0f,%.0f,%.0f]', now[1] * 1000000 + now[2], done[1], done[2], done[3])
  redis.call('LPUSH', KEYS[3], mark)
  redis.call('LTRIM', KEYS[3], 0, ARGV[1] - 1)
end
return fresh
"""

# KEYS: the latest micro-batch, totals. ARGV: how it went, then of each total its field and by how much it rises.
_KEEP = """
redis.call('SET', KEYS[1], ARGV[1])
for i = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1]) end
return 1
"""


_LATE = "late_"


class ReportRow(Protocol):
    """What the pipeline hands over for a shard of a micro-batch."""

    @property
    def shard(self) -> int: ...

    @property
    def position(self) -> str: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """The state of one stream in one shard; values that the shard does not report are None.

    Attributes:
        watermark_us: How far event time has come; None before the first event.
        open_traces: Traces that have not ended.
        held: Partial matches that it holds.
        waiting: Events that wait to be put in order.
        late: Late events since the state began, by what was done with them.
    """

    watermark_us: int | None
    open_traces: int | None
    held: int | None
    waiting: int | None
    late: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReport:
    """What a shard told last.

    Attributes:
        position: Where it stood in its log.
        state_bytes: Size of its saved state.
        streams: By name.
    """

    shard: int
    position: str
    state_bytes: int | None
    streams: Mapping[str, StreamReport]


class PipelineStatus:
    """What the pipeline told of itself."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._note = register(client, _NOTE)
        self._keep = register(client, _KEEP)

    def note(self, rows: Sequence[ReportRow]) -> list[bool]:
        """Count what a micro-batch has matched, and keep what its shards tell.

        Args:
            rows: Of the kind ``stats``; at most one per shard.

        Returns:
            Of each row whether it was counted: not when that place of its shard had been reached before.
        """
        if not rows:
            return []
        arguments: list[str | bytes | int] = [MARKS_KEPT]
        for row in rows:
            arguments += [row.shard, row.position, report_of(row)]
        keys = [APPENDED_KEY, MATCHED_KEY, MARKS_KEY, SHARDS_KEY, *(log_key(row.shard) for row in rows)]
        return [bool(fresh) for fresh in self._note(keys, arguments)]

    def begin(self, now_us: int) -> None:
        """The pipeline starts now."""
        self._client.set(STARTED_KEY, now_us)

    def started_us(self) -> int | None:
        """When the pipeline started last, microseconds UTC; None when it never did."""
        found = cast("bytes | None", self._client.get(STARTED_KEY))
        return None if found is None else int(found)

    def keep(self, progress: Mapping[str, Any]) -> None:
        """Keep how a micro-batch went, and add its times to the totals.

        Args:
            progress: The JSON form of ``pipeline.BatchProgress``.
        """
        raised = [(_field("batches"), 1)]
        raised += [(_field("batch_us", part), round(ms * 1_000)) for part, ms in progress["parts_ms"].items()]
        self._keep([LATEST_KEY, TOTALS_KEY], [encode(**progress), *(item for pair in raised for item in pair)])

    def latest(self) -> dict[str, Any] | None:
        """How the latest micro-batch went; None before the first."""
        found = cast("bytes | None", self._client.get(LATEST_KEY))
        return None if found is None else decode(found, "the latest micro-batch")

    def totals(self) -> dict[tuple[str, ...], int]:
        """Totals over all micro-batches, by name and labels: ``("batches",)`` and ``("batch_us", part)``."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(TOTALS_KEY))
        return {tuple(orjson.loads(field)): int(count) for field, count in found.items()}

    def shards(self) -> list[ShardReport]:
        """What each shard told last; shards that never told are not there."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(SHARDS_KEY))
        reports = [_report(decode(record, f"the report of shard {shard.decode()}")) for shard, record in found.items()]
        return sorted(reports, key=lambda report: report.shard)


def report_of(row: ReportRow) -> bytes:
    """What a shard tells, as it is kept."""
    return encode(**{**orjson.loads(row.body), "shard": row.shard, "position": row.position})


def _field(*names: str) -> str:
    return orjson.dumps(names).decode()


def _report(told: Mapping[str, Any]) -> ShardReport:
    streams = {name: _stream_report(fares) for name, fares in told.get("streams", {}).items()}
    return ShardReport(
        shard=told["shard"], position=told["position"], state_bytes=told.get("state_bytes"), streams=streams
    )


def _stream_report(fares: Mapping[str, Any]) -> StreamReport:
    return StreamReport(
        watermark_us=fares.get("watermark_us"),
        open_traces=fares.get("open_traces"),
        held=fares.get("held"),
        waiting=fares.get("waiting"),
        late={name.removeprefix(_LATE): count for name, count in fares.items() if name.startswith(_LATE)},
    )
