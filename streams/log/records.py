"""Entries of the event log: batches of events, and control records that take effect at their position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LAYOUT_KEY = "forestall:layout"
"""The Redis hash with the number of shards of the log, and the start of each shard."""

NOTED_KEY = "forestall:log:noted"
"""The Redis key with the number of the indexer's latest batch, the only batch that the sink writes.

The key is missing while Spark's micro-batches are written.
"""

TASKS_JOB_KEY = "forestall:tasks:job"
"""The Redis key with the identity of the job whose tasks may hold shards. Without it, no continuous tasks run."""

TASKS_OWNERS_KEY = "forestall:tasks:owners"
"""The Redis hash with the task that holds each shard."""


APPENDED_KEY = "forestall:log:counts"
"""The Redis hash with the numbers of appended entries, events and bytes: in total, and by shard."""

STREAMS_KEY = "forestall:streams"
"""The Redis hash with the declarations of streams."""

ROUTES_KEY = "forestall:routes"
"""The Redis hash with the further keys of each stream; ``-`` for a removed stream."""

STREAM_TIMES_KEY = "forestall:stream-times"
"""The Redis hash with the newest event time of each stream, and the time at which its events were appended."""

DERIVED_PROMISES_KEY = "forestall:derived:promises"
"""The Redis hash with the time before which each shard adds no more events to a derived stream."""

CLOSED_US = 2**62
"""The least time of a closing tick. It is later than every valid time.

Closing ticks of a derived stream have the times CLOSED_US + 1, + 2, and so on. A shard in which no operator feeds the
stream through the log any more promises the time of the first closing tick that it has not read. Records of former
versions have the time CLOSED_US.
"""


class RecordKind(StrEnum):
    """Kind of a log entry. The value is stored in the entry."""

    EVENTS = "events"
    STREAM_ON = "stream-on"
    STREAM_OFF = "stream-off"
    PATTERN_ON = "pattern-on"
    PATTERN_OFF = "pattern-off"
    PATTERN_PAUSE = "pattern-pause"
    OPERATOR_ON = "operator-on"
    OPERATOR_OFF = "operator-off"
    OPERATOR_PAUSE = "operator-pause"
    CONSTRAINTS_ON = "constraints-on"
    TABLE_ON = "table-on"
    TABLE_OFF = "table-off"
    TABLE_ROW = "table-row"
    TICK = "tick"
    TRACE_END = "trace-end"
    PUNCTUATION = "punctuation"
    ASK = "ask"
    LATENESS = "lateness"
    KEYS_CLOSED = "keys-closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One entry of one shard of the event log.

    Attributes:
        position: Position in the shard, ``<ms>-<n>``. ``position_order`` compares positions.
        body: A batch in wire form for ``EVENTS``, otherwise a control record (``streams.log.control``).
        route: For ``EVENTS``, the name of the further key by which the events are keyed. It is empty for the
            correlation key.
    """

    position: str
    kind: RecordKind
    stream: str
    body: bytes
    route: str = ""


def log_key(shard: int) -> str:
    """Return the Redis key of a shard's log."""
    return f"forestall:log:{shard}"


def questions_key(shard: int) -> str:
    """Return the Redis key of the questions (``Ask``) that a shard has not answered yet."""
    return f"{log_key(shard)}:questions"


def answers_key(question: str) -> str:
    """Return the Redis key of all answers to the asker of a question.

    The id of a question begins with its asker and a dot.
    """
    return f"forestall:answers:{question.partition('.')[0]}"


def stops_key(shard: int) -> str:
    """Return the Redis key of a shard's stops: the pauses of operators that take effect before the backlog is read.

    The key stores a hash with a field for each pause. The field is the position of the last control record of the
    pause. The value is a JSON list with the stream, the kind and the body (as text) of each of these records. The
    script that appends the records also writes the hash.
    """
    return f"forestall:stops:{shard}"


def position_order(position: str) -> tuple[int, int]:
    """Return a key that sorts the positions of one shard (texts ``<ms>-<n>``) in log order."""
    milliseconds, _, sequence = position.partition("-")
    return int(milliseconds), int(sequence or 0)


def is_older(position: str, since: str) -> bool:
    """Check whether a log position is before the declaration of a stream.

    ``since`` is its time in ms, or empty without one.
    """
    return int(position.partition("-")[0]) < int(since or 0)


@dataclass(frozen=True, slots=True)
class Input:
    """A stream that an operator reads. ``key`` names a further key, or is empty for the correlation key."""

    stream: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One version of an operator. Versions count from 1 and never repeat under a name.

    ``body`` is the document of the operator, in the form of its ``kind``.
    """

    kind: str
    name: str
    version: int
    inputs: tuple[Input, ...]
    body: Mapping[str, Any]
