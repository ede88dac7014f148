"""Renamed copies of generated events, because the generation of orders takes longer than matching."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.filled_log import renamed
from streams import EventBatch


def repeated(batch: EventBatch, copies: int) -> EventBatch:
    """Return the events, followed by copies with other keys and later times. All attributes are columns."""
    columns = EventBatch.joined([renamed(EventBatch(batch.columns), copy) for copy in range(copies)]).columns
    attributes = {path: pa.concat_arrays([column] * copies) for path, column in batch.attributes.items()}
    return EventBatch(columns, attributes)
