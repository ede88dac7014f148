"""The rows of feeds of any kind. A row is one event as JSON, with its origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

FEED_DDL = "place BIGINT, body BINARY, origin STRING, fault STRING"
FEED_SCHEMA = pa.schema({"place": pa.int64(), "body": pa.binary(), "origin": pa.string(), "fault": pa.string()})


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """One event on its way to the sink.

    Attributes:
        place: Index of the row in the micro-batch. It rises, possibly with gaps, and is the same at each reading of a
            range.
        body: A JSON object, which is not checked. For a row with a fault, the beginning of the input.
        origin: Source of the row as plain JSON: file and row, or topic, partition and offset.
        fault: Why the input is not an event. None for an event.
    """

    place: int
    body: bytes
    origin: Mapping[str, Any]
    fault: str | None = None


def to_batch(rows: Iterable[FeedRow]) -> pa.RecordBatch:
    """Encode the rows in columns of ``FEED_DDL``."""
    feed_rows = list(rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row.place for row in feed_rows], pa.int64()),
            pa.array([row.body for row in feed_rows], pa.binary()),
            pa.array([orjson.dumps(row.origin).decode() for row in feed_rows], pa.string()),
            pa.array([row.fault for row in feed_rows], pa.string()),
        ],
        schema=FEED_SCHEMA,
    )


def from_table(table: pa.Table) -> list[FeedRow]:
    """Return the rows of a micro-batch, in order."""
    columns = (table.column(name).to_pylist() for name in ("place", "body", "origin", "fault"))
    return [
        FeedRow(place=place, body=body or b"", origin=orjson.loads(origin), fault=fault)
        for place, body, origin, fault in zip(*columns, strict=True)
    ]
