"""More events of the same kind: generating orders takes longer than matching them."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.filled_log import renamed
from streams import EventBatch


def repeated(batch: EventBatch, copies: int) -> EventBatch:
    """The events, and after them the same ones of other keys, later, with all attribute columns."""
    columns = EventBatch.joined([renamed(EventBatch(batch.columns), copy) for copy in range(copies)]).columns
    attributes = {path: pa.concat_arrays([column] * copies) for path, column in batch.attributes.items()}
    return EventBatch(columns, attributes)
