"""How far the event time of each stream has come: what was appended and when, and the ticks that told all shards so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from service.stores.connection import PREFIX, Client, register
from service.stores.layout import FITTING, LayoutStore
from streams import LAYOUT_KEY, Tick, encode_control, log_key

STREAM_TIMES_KEY = PREFIX + "stream-times"

_NEWEST, _APPENDED, _TICKED = ":newest", ":appended", ":ticked"

# Lua that the append script of the log begins with: ``timed`` notes the newest time of a stream's events, and when they
# were appended, by the clock of Redis.
TIMING = """
local function timed(key, stream, newest)
  local known = redis.call('HGET', key, stream .. ':newest')
  if not known or tonumber(newest) > tonumber(known) then redis.call('HSET', key, stream .. ':newest', newest) end
  local now = redis.call('TIME')
  redis.call('HSET', key, stream .. ':appended', string.format('%d%06d', now[1], now[2]))
end
"""

# KEYS: times, the layout, then every shard. ARGV: stream, time, kind and body of the record, the number of shards.
_TICK = (
    FITTING
    + """
local known = redis.call('HGET', KEYS[1], ARGV[1] .. ':ticked')
if known and tonumber(known) >= tonumber(ARGV[2]) then return 0 end
local unfit = misfit(KEYS[2], ARGV[5])
if unfit then return unfit end
redis.call('HSET', KEYS[1], ARGV[1] .. ':ticked', ARGV[2])
for i = 3, #KEYS do
  redis.call('XADD', KEYS[i], '*', 'kind', ARGV[3], 'stream', ARGV[1], 'body', ARGV[4])
end
return 1
"""
)

_READ = "return {redis.call('TIME'), redis.call('HGETALL', KEYS[1])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimes:
    """What is known of one stream's time; microseconds UTC.

    Attributes:
        newest_us: Time of its newest event.
        appended_us: When events of it were appended last, by the clock of Redis.
        ticked_us: Time of the newest tick; None before the first.
    """

    newest_us: int
    appended_us: int
    ticked_us: int | None


class StreamTimesStore:
    """Times by stream."""

    def __init__(self, client: Client) -> None:
        self._read = register(client, _READ)
        self._tick = register(client, _TICK)

    def read(self) -> tuple[int, dict[str, StreamTimes]]:
        """The clock of Redis, and the times of every stream that has had events."""
        (seconds, micros), pairs = self._read([STREAM_TIMES_KEY], [])
        fields = cast("list[bytes]", pairs)
        values = {name.decode(): int(value) for name, value in zip(fields[::2], fields[1::2], strict=True)}
        streams = [name.removesuffix(_NEWEST) for name in values if name.endswith(_NEWEST)]
        found = {
            stream: StreamTimes(
                newest_us=values[stream + _NEWEST],
                appended_us=values[stream + _APPENDED],
                ticked_us=values.get(stream + _TICKED),
            )
            for stream in streams
        }
        return int(seconds) * 1_000_000 + int(micros), found

    def tick(self, stream: str, tick: Tick, layout: LayoutStore) -> bool:
        """Append a tick to every shard; nothing happens unless it is newer than the last one.

        Returns:
            Whether it was.

        Raises:
            LogResharding: The log is being divided anew.
        """
        arguments: list[str | bytes | int] = [stream, tick.time_us, Tick.KIND.value, encode_control(tick)]

        def append(shards: int) -> Any:
            return self._tick([STREAM_TIMES_KEY, LAYOUT_KEY, *map(log_key, range(shards))], [*arguments, shards])

        return bool(layout.fitted(append))
