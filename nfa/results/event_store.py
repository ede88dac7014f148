"""Storage of the events that partial matches bind. It outlives batches, and is saved as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.table_rows import ROW, SEPARATOR
from streams import EventBatch, column_of, joined_texts, shown_texts

_SLACK = 1_024  # up to this number of unbound rows, a compaction is not worthwhile
_MOST_PARTS = 16

FIELDS = ("id", "key", "type", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvents:
    """Events sorted by sequence number.

    ``columns`` are id, key, type (strings) and data (JSON as bytes). Type and data are empty if no pattern reads them.
    Events of a compact batch may have whole numbers as ids and a dictionary of keys. With FOR EACH ROW, the key is
    followed by the name of the row (``nfa.conditions.table_rows.split_names``).
    """

    sequences: NDArray[np.int64]
    times_us: NDArray[np.int64]
    columns: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.sequences)

    def take(self, rows: NDArray[np.intp]) -> StoredEvents:
        columns = self.columns.take(column_of(rows))
        return StoredEvents(sequences=self.sequences[rows], times_us=self.times_us[rows], columns=columns)

    def find(self, sequences: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the rows of the events with the given sequence numbers, all of which must be present."""
        return np.searchsorted(self.sequences, sequences)


def events_of_batch(
    batch: EventBatch, rows: NDArray[np.intp], first_sequence: int, *, keeps_data: bool
) -> StoredEvents:
    """Return the events in ``rows`` of a batch. The rows must be ascending."""
    columns = batch.columns.select(list(FIELDS if keeps_data else FIELDS[:2])).take(column_of(rows))
    arrays = columns.columns
    if ROW in batch.attributes:
        arrays[1] = joined_texts([shown_texts(arrays[1]), SEPARATOR, batch.attributes[ROW].take(column_of(rows))])
    if keeps_data:
        arrays[2] = arrays[2].dictionary.take(arrays[2].indices)
    else:
        arrays += [_empty(len(rows), pa.string()), _empty(len(rows), pa.binary())]
    kept = pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))
    return StoredEvents(sequences=rows + first_sequence, times_us=batch.time_us[rows], columns=kept)


def _empty(rows: int, kind: pa.DataType) -> pa.Array:
    offsets = pa.py_buffer(bytes(4 * (rows + 1)))
    return pa.Array.from_buffers(kind, rows, [None, offsets, pa.py_buffer(b"")])


def no_events() -> StoredEvents:
    """Return an empty table of events."""
    arrays = [pa.nulls(0, kind) for kind in (pa.string(), pa.string(), pa.string(), pa.binary())]
    columns = pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))
    return StoredEvents(sequences=np.zeros(0, np.int64), times_us=np.zeros(0, np.int64), columns=columns)


def shown_columns(columns: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of events, with ids and keys as texts."""
    text_columns = [shown_texts(column) for column in columns.columns[:2]]
    return pa.RecordBatch.from_arrays([*text_columns, *columns.columns[2:]], names=columns.schema.names)


class EventStore:
    """The events that partial matches may bind, sorted by sequence number.

    Events that are no longer bound are dropped once they outnumber the bound events.
    """

    def __init__(self, events: StoredEvents | None = None) -> None:
        self._parts = [events or no_events()]

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def parts(self) -> tuple[StoredEvents, ...]:
        """All events in consecutive parts. The result does not change when events are added later."""
        return tuple(self._parts)

    @property
    def events(self) -> StoredEvents:
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return self._parts[0]

    def append(self, events: StoredEvents) -> None:
        """Add events. Their sequence numbers must be above the numbers of all stored events."""
        if len(self._parts) == _MOST_PARTS:
            self._parts = [self.events]
        if len(events):
            self._parts.append(events)

    def is_worth_compacting(self, held: int) -> bool:
        return len(self) > 2 * held + _SLACK

    def compact(self, held: NDArray[np.int64]) -> None:
        """Keep only the events with the sequence numbers ``held``, which must be sorted and all present."""
        self._parts = [select_events(self._parts, held)]


def select_events(parts: Sequence[StoredEvents], sequences: NDArray[np.int64]) -> StoredEvents:
    """Return the events with the given sequence numbers from consecutive parts.

    The sequence numbers are ascending, and all of them are present.
    """
    filled = [part for part in parts if len(part)]
    borders = np.searchsorted(sequences, [part.sequences[0] for part in filled[1:]])
    sequence_parts = np.split(sequences, borders)
    pieces = [part.take(part.find(some)) for part, some in zip(filled, sequence_parts, strict=False) if len(some)]
    return joined(pieces) if pieces else no_events()


def joined(parts: Sequence[StoredEvents]) -> StoredEvents:
    """Return the events of all parts as one table."""
    parts = [part for part in parts if len(part)] or [no_events()]
    if len(parts) == 1:
        return parts[0]
    columns = [part.columns for part in parts]
    if any(record_batch.schema != columns[0].schema for record_batch in columns):  # only some batches are compact
        columns = [shown_columns(record_batch) for record_batch in columns]
    table = pa.Table.from_batches(columns).combine_chunks()
    batches = table.to_batches()
    return StoredEvents(
        sequences=np.concatenate([part.sequences for part in parts]),
        times_us=np.concatenate([part.times_us for part in parts]),
        columns=batches[0] if batches else no_events().columns,
    )


def saved_events(events: StoredEvents) -> dict[str, NDArray[Any]]:
    """Return bound events as arrays for saving. ``read_events`` restores them.

    ``event_sequences`` and ``event_times_us`` are int64. A text column is in ``event_NAME_ends`` and
    ``event_NAME_bytes``.
    """
    arrays: dict[str, NDArray[Any]] = {"event_sequences": events.sequences, "event_times_us": events.times_us}
    columns = shown_columns(events.columns)
    for name in FIELDS:
        arrays |= saved_texts(f"event_{name}", columns.column(name))
    return arrays


def read_events(arrays: Mapping[str, NDArray[Any]]) -> StoredEvents:
    """Restore the events of ``saved_events``.

    Raises:
        KeyError: An array is missing.
        ValueError: The arrays are inconsistent.
    """
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
    """Return a text column as two arrays: the ends of texts in ``NAME_ends``, int64, and ``NAME_bytes``."""
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
    """Restore a column of ``saved_texts``.

    Raises:
        KeyError: An array is missing.
        ValueError: The arrays are inconsistent.
    """
    ends, raw = arrays[f"{name}_ends"], arrays[f"{name}_bytes"]
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    if ends.dtype != np.int64 or raw.dtype != np.uint8 or np.any(np.diff(offsets) < 0) or offsets[-1] != len(raw):
        raise ValueError(f"the texts of {name} do not fit their lengths")
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).cast(pa.binary()).cast(kind)
