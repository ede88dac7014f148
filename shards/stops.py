"""Stops: operators that stop before the log reaches their pause, because a backlog precedes the pause.

A *stop* is a control decision beside the log. From a position of a shard on, its operators receive no events, and
control records about them have no effect up to the pause. The position is stored before any later entry is matched, and
a process that matches these entries again stops the operators at the same position. So the state remains a function of
the log and its stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson

from shards.entries import Entry, StoredEntry
from streams import (
    ControlRecord,
    OperatorOff,
    OperatorOn,
    PatternOff,
    PatternOn,
    PatternPause,
    RecordKind,
    decode_control,
    position_order,
)

_Stopped: TypeAlias = tuple[str, tuple[str, str]]  # a stream, and the kind and name of an operator on it

STOPPED = "stopped"
"""Kind of the note that a shard receives before the first entry after a stop. The log itself has no such entries."""


def stop_note(until: str, records: str, entry: StoredEntry) -> StoredEntry:
    """Create an entry (the note) that stops operators of a shard. It precedes ``entry`` in what the shard reads.

    ``until`` is the position of the last control record of the pause. ``records`` is a JSON list of the pause's
    records, each with stream, kind, and body as text.
    """
    body = orjson.dumps([until, orjson.loads(records)])
    return StoredEntry(position=entry.position, kind=STOPPED, stream=entry.stream, body=body)


class Stops:
    """The operators of a shard that are stopped before the log reaches their pause (``stop`` in the glossary).

    Args:
        pending: For each position of a pause, the records that stop operators, as stream, kind and body.
    """

    def __init__(self, pending: Iterable[tuple[str, Sequence[Sequence[str]]]] = ()) -> None:
        self._pending = dict(pending)

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def names(self) -> frozenset[str]:
        """The positions of the pauses, which identify the stops."""
        return frozenset(self._pending)

    def begin(self, note: Entry, position: str) -> list[_Stopped]:
        """Return the operators that the stop note ``note`` stops.

        There are none if they are already stopped, or if their pause is not after ``position``.
        """
        until, records = orjson.loads(note.body)
        if until in self._pending or position_order(until) <= position_order(position):
            return []
        self._pending[until] = records
        return _operators_in(records)

    def ignores(self, stream: str, record: ControlRecord) -> bool:
        """Return whether a record of the log is ignored, because it concerns a stopped operator."""
        return any(
            (stream, operator_of(record)) == (operator_stream, operator)
            for records in self._pending.values()
            for operator_stream, operator in _operators_in(records)
        )

    def reads(self, stream: str) -> bool:
        """Return whether a stopped operator reads a stream."""
        return any(record[0] == stream for records in self._pending.values() for record in records)

    def pass_to(self, position: str) -> None:
        """Drop the stops whose pauses are at or before the position of an applied entry."""
        order = position_order(position)
        for until in [until for until in self._pending if position_order(until) <= order]:
            del self._pending[until]

    def to_json(self) -> list[Any]:
        return [[until, list(records)] for until, records in self._pending.items()]


def _operators_in(records: Sequence[Sequence[str]]) -> list[_Stopped]:
    return [(stream, operator_of(decode_control(RecordKind(kind), body.encode()))) for stream, kind, body in records]


def operator_of(record: ControlRecord) -> tuple[str, str]:
    """Return kind and name of the operator that a control record starts or stops. Both are empty for other records."""
    match record:
        case PatternOn(name=name) | PatternOff(name=name) | PatternPause(name=name):
            return "pattern", name
        case OperatorOn(operator=operator):
            return operator.kind, operator.name
        case OperatorOff(operator=kind, name=name):  # also OperatorPause
            return kind, name
    return "", ""
