"""Rows that end a trace without an event: as an end event would, but no pattern and no guard sees one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.guards.protocol import TRACE_END
from nfa.traces.idle_traces import EndedTraces
from streams import EventBatch, column_of, time_column


def end_rows(ended: EndedTraces) -> EventBatch:
    """A row for each of some traces, in their order."""
    size = len(ended)
    schema = EventBatch.from_events([]).columns.schema
    types = pa.DictionaryArray.from_arrays(column_of(np.zeros(size, np.int32)), pa.array([TRACE_END]))
    columns = {
        "id": pa.array([""] * size, pa.string()),
        "type": types,
        "time": time_column(ended.times_us),
        "key": pa.array([""] * size, pa.string()),
        "key_hash": column_of(ended.keys),
        "data": pa.array([b"{}"] * size, pa.binary()),
    }
    return EventBatch(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema))


def with_ends(batch: EventBatch, ended: EndedTraces) -> tuple[EventBatch, NDArray[np.bool_]]:
    """A batch with the ends of traces among its rows, each before its row; and which of the rows they are."""
    size = len(batch)
    places = np.concatenate([2 * np.arange(size) + 1, 2 * ended.rows])
    order = np.argsort(places, kind="stable")
    return EventBatch.joined([batch, end_rows(ended)]).take(order), order >= size
