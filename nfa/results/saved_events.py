"""Bound events as plain arrays, for saved state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.results.event_store import FIELDS, StoredEvents, shown_columns


def saved_events(events: StoredEvents) -> dict[str, NDArray[Any]]:
    """The arrays of bound events: ``event_sequences`` and ``event_times_us``, int64.

    Text columns as ``event_NAME_ends`` and bytes.
    """
    arrays: dict[str, NDArray[Any]] = {"event_sequences": events.sequences, "event_times_us": events.times_us}
    columns = shown_columns(events.columns)
    for name in FIELDS:
        arrays |= saved_texts(f"event_{name}", columns.column(name))
    return arrays


def read_events(arrays: Mapping[str, NDArray[Any]]) -> StoredEvents:
    """Load the events of ``saved_events``; KeyError if an array is missing, ValueError if they do not fit together."""
    sequences, times_us = arrays["event_sequences"], arrays["event_times_us"]
    if sequences.dtype != np.int64 or times_us.dtype != np.int64 or not np.all(np.diff(sequences) > 0):
        raise ValueError("bound events are not listed in ascending order")
    columns = [read_texts(arrays, f"event_{name}", pa.binary() if name == "data" else pa.string()) for name in FIELDS]
    if any(len(column) != len(sequences) for column in [*columns, times_us]):
        raise ValueError("columns of bound events differ in number")
    batch = pa.RecordBatch.from_arrays(columns, names=list(FIELDS))
    batch.validate(full=True)
    return StoredEvents(sequences=sequences, times_us=times_us, columns=batch)


def saved_texts(name: str, column: pa.Array) -> dict[str, NDArray[Any]]:
    """A text column as ``NAME_ends``, int64, and ``NAME_bytes``."""
    texts = column.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else np.zeros(1, np.int64)
    )
    raw = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    return {f"{name}_ends": ends[1:] - ends[0], f"{name}_bytes": raw}


def read_texts(arrays: Mapping[str, NDArray[Any]], name: str, kind: pa.DataType) -> pa.Array:
    """Load a column of ``saved_texts`` as a type; KeyError if an array is missing, ValueError if they do not fit."""
    ends, raw = arrays[f"{name}_ends"], arrays[f"{name}_bytes"]
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    if ends.dtype != np.int64 or raw.dtype != np.uint8 or np.any(np.diff(offsets) < 0) or offsets[-1] != len(raw):
        raise ValueError(f"the texts of {name} do not fit their lengths")
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).cast(pa.binary()).cast(kind)
