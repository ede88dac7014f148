"""The derived events and promises of a step, as input of the script ``commit``.

Each derived event enters the log once, because the same script advances the step's position. Events that were derived
before their stream was declared are left out, because they belong to a former stream of the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from shards import STATS, RowBlock
from streams import EventBatch, ScriptInput, Tick, encode_control, is_older, log_key

_MOST_EVENTS = 5_000  # most events in one entry
_TICK = encode_control(Tick(time_us=0, cause="events")).replace(b'"time":0', b'"time":%d')


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Derived events and promises of a step, by stream.

    Each batch of events has the position of its source entry.
    """

    events: Mapping[str, Sequence[tuple[str, EventBatch]]] = field(default_factory=lambda: MappingProxyType({}))
    promises: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, rows: Sequence[RowBlock]) -> Derived:
        """Collect the derived events and promises among the rows of a step."""
        events: defaultdict[str, list[tuple[str, EventBatch]]] = defaultdict(list)
        promises: dict[str, int | None] = {}
        for block in rows:
            if block.found.events is not None:
                events[block.found.subjects[0].as_py()].append((block.position, block.found.events))
            elif block.found.kind is STATS:
                promises |= orjson.loads(next(iter(block)).body)["promises"]
        return cls(events=events, promises=promises)

    @property
    def size_bytes(self) -> int:
        """The size of the events in memory."""
        return sum(batch.columns.nbytes for parts in self.events.values() for _, batch in parts)

    def script_inputs(self, shard: int, until: str, shards: int, sinces: Mapping[str, str]) -> dict[str, ScriptInput]:
        """Return arguments for the script ``commit``, which appends the derived events of a step to the log.

        ``until`` is the position at which the step ends, and ``shards`` the number of shards. ``sinces`` has the time
        at which each stream was declared, in milliseconds. Events of a stream without this time are left out, and the
        script then replies with the time.
        """
        appends, bodies = list[dict[str, Any]](), list[bytes]()
        for stream, parts in self.events.items():
            since, entries = sinces.get(stream, ""), list[tuple[int, EventBatch]]()
            if batches := [batch for position, batch in parts if since and not is_older(position, since)]:
                entries = _entries(EventBatch.joined(batches), shards)
            newest_us = max((str(int(batch.time_us.max())) for _, batch in entries), key=int, default="")
            numbers = [(home, len(batch)) for home, batch in entries]
            appends.append({"stream": stream, "since": since, "newest_us": newest_us, "parts": numbers})
            bodies += [batch.to_bytes() for _, batch in entries]
        promising = [
            (stream, [(shard, "" if time_us is None else str(time_us), until)])
            for stream, time_us in self.promises.items()
        ]
        return {
            "appends": orjson.dumps(appends),
            "promising": orjson.dumps(promising),
            "kind": Tick.KIND.value,
            "tick": _TICK,
            "shards": [log_key(number) for number in range(shards)] if appends or promising else [],
            "bodies": bodies,
        }


NOTHING = Derived()


def _entries(events: EventBatch, shards: int) -> list[tuple[int, EventBatch]]:
    return [
        (shard, part)
        for shard, batch in events.take(events.order_by_time()).split_by_shard(shards).items()
        for part in batch.slices(_MOST_EVENTS)
    ]
