"""Builders of logs for tests: steps of a stream become the entries of its shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from pipeline.rows import OutputRow
from streams import KINDS, ControlRecord, Event, EventBatch, LogEntry, RecordKind, encode_control

Step: TypeAlias = "ControlRecord | Sequence[Event]"


def log_of(steps: Iterable[Step], *, stream: str = "orders", shards: int = 1) -> dict[int, list[LogEntry]]:
    """The log of each shard: control records go to all of them, events to that of their key; one position per step."""
    logs: dict[int, list[LogEntry]] = {shard: [] for shard in range(shards)}
    for number, step in enumerate(steps, start=1):
        for shard, (kind, body) in _bodies(step, shards).items():
            logs[shard].append(LogEntry(position=f"1-{number}", kind=kind, stream=stream, body=body))
    return logs


def event(number: int, event_type: str, key: str = "k", **data: Any) -> Event:
    """The event ``e<number>``, so many seconds after the epoch."""
    return Event(id=f"e{number}", type=event_type, time_us=number * 1_000_000, key=key, data=data)


def bodies(rows: Iterable[OutputRow], kind: str) -> list[Mapping[str, Any]]:
    """Decoded bodies of the rows of one kind."""
    return [orjson.loads(row.body) for row in rows if row.kind == kind]


def _bodies(step: Step, shards: int) -> dict[int, tuple[RecordKind, bytes]]:
    if not isinstance(step, Sequence):
        return dict.fromkeys(range(shards), (KINDS[type(step)], encode_control(step)))
    parts = EventBatch.from_events(step).split_by_shard(shards)
    return {shard: (RecordKind.EVENTS, part.to_bytes()) for shard, part in parts.items()}
