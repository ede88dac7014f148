"""Operators that stop before their pause is reached in the log, as it lies behind a backlog.

A *stop* is a control decision beside the log: from a position of a shard on its operators see nothing, and the control
records about them up to the pause do nothing. The position is on record before anything behind it is matched, and a
process that matches these entries again begins there, too. So the state stays a function of the log and its stops.
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

_Stopped: TypeAlias = tuple[str, tuple[str, str]]  # a stream, and kind and name of an operator on it

STOPPED = "stopped"
"""The kind of what a shard is given in front of the first entry behind a stop; the log itself has none."""


def stop_note(until: str, records: str, entry: StoredEntry) -> StoredEntry:
    """What a shard is given in front of an entry, from which on some operators see nothing.

    Args:
        until: Position of the last control record by which they stop.
        records: JSON list that has of each record its stream, its kind and its body as text.
        entry: The entry.
    """
    body = orjson.dumps([until, orjson.loads(records)])
    return StoredEntry(position=entry.position, kind=STOPPED, stream=entry.stream, body=body)


class Stops:
    """The stops of a shard whose pause is not reached.

    Args:
        standing: By position of the pause the records by which operators stop: stream, kind and body.
    """

    def __init__(self, standing: Iterable[tuple[str, Sequence[Sequence[str]]]] = ()) -> None:
        self._standing = dict(standing)

    def __bool__(self) -> bool:
        return bool(self._standing)

    @property
    def names(self) -> frozenset[str]:
        """Positions of the pauses."""
        return frozenset(self._standing)

    def begin(self, note: Entry, position: str) -> list[_Stopped]:
        """The operators that stop with a note, at a position; none if they have, or their pause is past."""
        until, records = orjson.loads(note.body)
        if until in self._standing or position_order(until) <= position_order(position):
            return []
        self._standing[until] = records
        return _operators_in(records)

    def ignores(self, stream: str, record: ControlRecord) -> bool:
        """Whether a record of the log is about an operator that is stopped."""
        return any(
            (stream, _operator_of(record)) == (of, operator)
            for records in self._standing.values()
            for of, operator in _operators_in(records)
        )

    def reads(self, stream: str) -> bool:
        """Whether an operator is stopped that read a stream."""
        return any(one[0] == stream for records in self._standing.values() for one in records)

    def pass_to(self, position: str) -> None:
        """The entry at a position was applied: stops up to there are past."""
        order = position_order(position)
        for until in [until for until in self._standing if position_order(until) <= order]:
            del self._standing[until]

    def to_json(self) -> list[Any]:
        """As plain JSON."""
        return [[until, list(records)] for until, records in self._standing.items()]


def _operators_in(records: Sequence[Sequence[str]]) -> list[_Stopped]:
    """The streams of some records, and the operators that they are about."""
    return [(stream, _operator_of(decode_control(RecordKind(kind), body.encode()))) for stream, kind, body in records]


def _operator_of(record: ControlRecord) -> tuple[str, str]:
    """Kind and name of the operator that a control record starts or stops; empty: it is about none."""
    match record:
        case PatternOn(name=name) | PatternOff(name=name) | PatternPause(name=name):
            return "pattern", name
        case OperatorOn(operator=operator):
            return operator.kind, operator.name
        case OperatorOff(operator=kind, name=name):  # OperatorPause, too
            return kind, name
    return "", ""
