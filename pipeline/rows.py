"""What leaves a shard, from alerts to dead letters, as rows with deterministic ids.

The id of a row is a hash of what the row says, never of when or how often it was computed: a replay, a retry and a
restart give the same ids, so whoever stores rows by id stores each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

import orjson

from pipeline.entries import Entry
from streams import ForestallError

ID_LENGTH = 32


class RowKind(StrEnum):
    """Kind of an output row."""

    ALERT = "alert"
    TIMEOUT = "timeout"
    ENDING = "ending"
    ENDING_COUNT = "ending-count"  # endings that are not told one by one
    DEVIATION = "deviation"
    CORRECTION = "correction"
    DEAD_LETTER = "dead-letter"
    STATS = "stats"  # for the driver only, see pipeline.measures


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRow:
    """One thing that a shard has to say.

    Attributes:
        kind: What it is.
        stream: Name of the stream; may be empty in a dead letter.
        id: 32 hexadecimal digits, the same however often the row is computed.
        body: JSON object in UTF-8, ``id`` and ``stream`` included.
        position: Place in the shard's log of the entry that caused it.
        shard: Where it was computed.
    """

    kind: RowKind
    stream: str
    id: str
    body: bytes
    position: str
    shard: int


def row_id(kind: RowKind, *parts: Any) -> str:
    """Hash of plain JSON values: first 32 hexadecimal digits of SHA-256 over their canonical JSON."""
    return sha256(orjson.dumps([kind.value, *parts], option=orjson.OPT_SORT_KEYS)).hexdigest()[:ID_LENGTH]


def alert_id(stream: str, pattern: str, version: int, key: str, bindings: Mapping[str, Sequence[str]]) -> str:
    """Id of the alert for one match of a pattern version: which events are bound to which alias decides.

    How and when it became certain does not: an alert that is told early is the one that would have been told late.
    """
    return row_id(RowKind.ALERT, stream, pattern, version, key, {alias: list(ids) for alias, ids in bindings.items()})


def dead_letter(shard: int, entry: Entry, error: ForestallError) -> OutputRow:
    """The row for an entry that could not be applied; the entry itself stays in the log at its position."""
    body = dead_letter_body(shard, entry, error)
    return OutputRow(
        kind=RowKind.DEAD_LETTER,
        stream=entry.stream,
        id=body["id"],
        body=orjson.dumps(body),
        position=entry.position,
        shard=shard,
    )


def dead_letter_body(shard: int, entry: Entry, error: ForestallError, *parts: Any) -> dict[str, Any]:
    """What a dead letter says of an entry; ``parts`` tell the letters of one entry apart, plain JSON values."""
    return {
        "id": row_id(RowKind.DEAD_LETTER, shard, entry.position, *parts),
        "stream": entry.stream,
        "shard": shard,
        "position": entry.position,
        "kind": entry.kind,
        **({"route": entry.route} if entry.route else {}),
        "size_bytes": len(entry.body),
        "code": error.code,
        "reason": error.message,
    }
