"""Logs for tests: steps of a stream become the entries of its shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from joins import FIGURE
from shards.entries import Entry
from shards.rows import OutputRow
from shards.state import ShardState
from streams import (
    AttributePath,
    ControlRecord,
    Event,
    EventBatch,
    LogEntry,
    PatternOff,
    PatternOn,
    PatternPause,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    encode_control,
)

_UNSAVED = frozenset(  # specific to this process, or memory sizes
    {"guard_builds", "guard_refusals", "under_bits", "peak_held", "state_bytes"}
)

Step: TypeAlias = "ControlRecord | Sequence[Event]"


def run_inline(logs: Mapping[int, Iterable[Entry]], states: Mapping[int, ShardState] | None = None) -> list[OutputRow]:
    """Rows of all shards, shard by shard, each in the order of its log; nothing is appended to the logs.

    ``states``: initial states, which are advanced. A missing shard begins empty.
    """
    given = states or {}
    rows: list[OutputRow] = []
    for shard, entries in sorted(logs.items()):
        state = given.get(shard) or ShardState(shard)
        rows.extend(state.apply(entries))
    return rows


def log_of(steps: Iterable[Step], *, stream: str = "orders", shards: int = 1) -> dict[int, list[LogEntry]]:
    """The log of each shard: control records for all shards, events for the shard of each key in use at that time.

    One position per step, and one more for each further key.
    """
    logs: dict[int, list[LogEntry]] = {shard: [] for shard in range(shards)}
    routes = _Routes()
    number = 0
    for step in steps:
        routes.note(step)
        for route, path in routes.of(step):
            number += 1
            for shard, (kind, body) in _bodies(step, shards, path).items():
                position = f"1-{number}"
                logs[shard].append(LogEntry(position=position, kind=kind, stream=stream, body=body, route=route))
    return logs


class _Routes:
    """The further keys that the patterns of a log use."""

    def __init__(self) -> None:
        self._declaration: StreamDeclaration | None = None
        self._used: dict[str, str] = {}

    def note(self, step: Step) -> None:
        match step:
            case StreamOn(declaration):
                self._declaration = declaration
            case PatternOn(name=name, route=route):
                self._used[name] = route
            case PatternOff(name) | PatternPause(name):
                self._used.pop(name, None)

    def of(self, step: Step) -> list[tuple[str, AttributePath]]:
        """The keys by which a step is sent: the correlation key, and for events each further key in use."""
        found: list[tuple[str, AttributePath]] = [("", ())]
        if isinstance(step, Sequence) and self._declaration is not None:
            names = sorted(set(self._used.values()) - {""})
            found += [(name, self._declaration.attribute_of(name)) for name in names]
        return found


def event(number: int, event_type: str, key: str = "k", **data: Any) -> Event:
    """The event ``e<number>``, ``number`` seconds after the epoch."""
    return Event(id=f"e{number}", type=event_type, time_us=number * 1_000_000, key=key, data=data)


def bodies(rows: Iterable[OutputRow], kind: str) -> list[Mapping[str, Any]]:
    """Decoded bodies of the rows of one kind."""
    return [orjson.loads(row.body) for row in rows if row.kind == kind]


def _bodies(step: Step, shards: int, path: AttributePath) -> dict[int, tuple[RecordKind, bytes]]:
    if not isinstance(step, Sequence):
        return dict.fromkeys(range(shards), (step.KIND, encode_control(step)))
    batch = EventBatch.from_events(step)
    parts = (batch.keyed_by(path) if path else batch).split_by_shard(shards)
    return {shard: (RecordKind.EVENTS, part.to_bytes()) for shard, part in parts.items()}


def saved_measures(state: ShardState) -> dict[str, dict[str, int | None]]:
    """The measures of a shard that saving and loading do not change."""
    return {
        label: {name: number for name, number in measured.items() if name not in _UNSAVED and FIGURE not in name}
        for label, measured in state.measures().items()
    }
