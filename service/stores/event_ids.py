"""The ids of events that streams have taken, so that an event that is sent again is not taken again.

Ids are kept as digests in sets, one after the other: when the newest has a quarter of the ids that are to be known, the
next is begun and the oldest of six goes. So the last million ids are known, unless they are older than a day, and a
stream takes a bounded part of Redis' memory. The script that appends events asks and writes here, so an id is known if
and only if its event is in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, cast

from service.stores.connection import PREFIX, Client

EVENT_IDS_KEY = PREFIX + "event-ids:"
DUPLICATES_KEY = PREFIX + "event-duplicates"

DIGEST_BYTES: Final = 12
_SETS = 4

# Lua that the append script of the log begins with. ``ids_of`` takes packed digests apart; ``known_ids`` gives the
# numbers, from 0, of those that are known; ``know_ids`` makes them known. ``key`` holds the number of the newest set.
KNOWING = f"""
local function ids_of(packed)
  local ids = {{}}
  for at = 1, #packed, {DIGEST_BYTES} do ids[#ids + 1] = string.sub(packed, at, at + {DIGEST_BYTES - 1}) end
  return ids
end
local function known_ids(key, ids)
  local newest, known = tonumber(redis.call('HGET', key, 'set') or 0), {{}}
  for set = math.max(0, newest - {_SETS}), newest do
    for first = 1, #ids, 4000 do
      local last = math.min(first + 3999, #ids)
      for i, is_in in ipairs(redis.call('SMISMEMBER', key .. ':' .. set, unpack(ids, first, last))) do
        if is_in == 1 then known[#known + 1] = first + i - 2 end
      end
    end
  end
  return known
end
local function know_ids(key, ids, most, life_ms)
  if #ids == 0 then return end
  local set = tonumber(redis.call('HGET', key, 'set') or 0)
  if redis.call('SCARD', key .. ':' .. set) >= most / {_SETS} then
    set = redis.call('HINCRBY', key, 'set', 1)
    redis.call('UNLINK', key .. ':' .. (set - {_SETS + 1}))
  elseif set == 0 then
    redis.call('HSET', key, 'set', 0)
  end
  for first = 1, #ids, 4000 do
    redis.call('SADD', key .. ':' .. set, unpack(ids, first, math.min(first + 3999, #ids)))
  end
  redis.call('PEXPIRE', key .. ':' .. set, life_ms)
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdLimits:
    """How long ids of events are known.

    Attributes:
        kept: At least so many of a stream, unless they are older.
        life_s: At least so long, unless more than that came since.
    """

    kept: int = 1_000_000
    life_s: int = 86_400


def event_digest(source: str, event_id: str) -> bytes:
    """The identity of an event: that of a CloudEvent is source and id, that of a plain object its id."""
    return blake2b(f"{len(source)}:{source}{event_id}".encode(), digest_size=DIGEST_BYTES).digest()


def packed(digests: Sequence[bytes | None]) -> bytes:
    """Digests in one text, those that are None left out."""
    return b"".join(digest for digest in digests if digest is not None)


def known_rows(digests: Sequence[bytes | None], numbers: Sequence[int]) -> list[int]:
    """The rows of what the script says of ``packed`` digests, in their order, each once."""
    rows = [row for row, digest in enumerate(digests) if digest is not None]
    return sorted({rows[number] for number in numbers})


class DuplicateStore:
    """How many events of each stream were dropped as they had been taken before.

    Args:
        client: Where they are counted.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def counts(self) -> dict[str, int]:
        """By stream; streams without one are left out."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(DUPLICATES_KEY))
        return {stream.decode(): int(count) for stream, count in sorted(found.items())}
