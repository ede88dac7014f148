"""Trace contexts of the requests that sent events, with which an alert continues the distributed trace of a request.

The script that appends events also stores the trace context of a traced request. A Redis hash contains the contexts of
one stream and one period of time, by the clock of Redis. The hash has a limited number of events and expires as a
whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from service.settings import TracingSettings
from service.stores.connection import PREFIX, Client, register
from streams import EventBatch

CONTEXTS_KEY = PREFIX + "request-contexts:"

_READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The trace context of the request that sent an event.

    ``time_us`` is the time of the event. ``shard`` and ``position`` identify the event's entry in the log.
    """

    traceparent: str
    time_us: int
    shard: int
    position: str

    @property
    def taken_us(self) -> int:
        """Time at which the event was appended, by the clock of Redis: microseconds UTC, rounded to milliseconds."""
        return int(self.position.partition("-")[0]) * 1_000


class RequestContextStore:
    """Looks up the trace contexts of the requests that sent events."""

    def __init__(self, client: Client, tracing: TracingSettings) -> None:
        self._life_ms = tracing.remember_s * 1_000
        self._find = register(client, "log/find_contexts")

    def find(self, stream: str, events: Sequence[str]) -> Mapping[str, RequestContext]:
        """Return the contexts of the requests that sent the given events, by event id.

        Events of requests that were not traced, or whose context has expired, are left out.
        """
        contexts: dict[str, RequestContext] = {}
        for start in range(0, len(events), _READ_AT_ONCE):
            event_ids = events[start : start + _READ_AT_ONCE]
            records = cast(
                "list[bytes | None]",
                self._find(contexts=CONTEXTS_KEY + stream, life_ms=self._life_ms, events=event_ids),
            )
            contexts |= {
                event: _read(record) for event, record in zip(event_ids, records, strict=True) if record is not None
            }
        return contexts


def packed_context(context: str, parts: Sequence[tuple[int, Sequence[str]]], tracing: TracingSettings) -> bytes:
    """Encode the argument of the Lua function ``remember``, which stores the trace context of a request.

    ``parts`` are pairs of a shard and the list of its events, as returned by ``events_of``.
    """
    listed = [[str(shard), *events] for shard, events in parts]
    life_ms, most = tracing.remember_s * 1_000, tracing.remember_events
    return orjson.dumps({"context": context, "life_ms": life_ms, "most": most, "parts": listed})


def events_of(batch: EventBatch) -> list[str]:
    """Return the ids and times of a batch's events in one list: id, time, id, time, and so on."""
    ids, times = batch.columns.column("id").to_pylist(), batch.time_us.tolist()
    return [part for id_, time_us in zip(ids, times, strict=True) for part in (id_, str(time_us))]


def _read(record: bytes) -> RequestContext:
    traceparent, time_us, shard, position = record.decode().split(" ")
    return RequestContext(traceparent=traceparent, time_us=int(time_us), shard=int(shard), position=position)
