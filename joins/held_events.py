"""The events that a join may still need for its results, with ids, types and data. The kernel has only numbers.

The events are columns, and new events are appended. Events that are no longer needed are removed once they are the
majority, so the cost per event does not depend on the number of stored events.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streams import EventBatch, GrowingNumbers, GrowingTexts, column_of, texts_of

_SPARSE = 2  # rows are removed once there are this many times the needed rows


class HeldEvents:
    """The events that a join may still need: merged events with ids, types, times, keys and data.

    They are sorted by sequence number (int64), which counts the events of the join. The kernel stores the sequence
    numbers only. An event is *counted* (marked) once it is part of a result or total.
    """

    def __init__(self, sequences: NDArray[np.int64], batch: EventBatch, is_counted: NDArray[np.bool_]) -> None:
        self._types: dict[str, int] = {}
        self._sequences = GrowingNumbers(sequences)
        self._rows: GrowingNumbers | None = None  # row of each sequence number; None: rows are in sequence order
        self._is_counted = GrowingNumbers(is_counted)
        self._times_us = GrowingNumbers(batch.time_us)
        self._hashes = GrowingNumbers(batch.key_hashes)
        self._codes = GrowingNumbers(self._coded(batch))
        self._ids, self._keys, self._data = (GrowingTexts(batch.columns.column(name)) for name in ("id", "key", "data"))

    @classmethod
    def empty(cls) -> HeldEvents:
        return cls(np.zeros(0, np.int64), EventBatch.from_events([]), np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, sequences: NDArray[np.int64], batch: EventBatch) -> None:
        """Append events. Their sequence numbers must exceed all present ones."""
        if self._rows is not None:
            self._rows.add(len(self) + np.arange(len(sequences)))
        self._sequences.add(sequences)
        self._append(batch, np.zeros(len(sequences), np.bool_))

    def restore(self, sequences: NDArray[np.int64], batch: EventBatch, is_counted: NDArray[np.bool_]) -> None:
        """Add events that were stored before and have been removed. Events that are present already are left unchanged.

        ``sequences`` are ascending.
        """
        held_sequences = self._sequences.values
        places = np.searchsorted(held_sequences, sequences)
        is_new = np.ones(len(sequences), np.bool_)
        inside = places < len(held_sequences)
        is_new[inside] = held_sequences[places[inside]] != sequences[inside]
        new_places = np.flatnonzero(is_new)
        rows = np.arange(len(held_sequences)) if self._rows is None else self._rows.values
        self._rows = GrowingNumbers(
            np.insert(rows, places[new_places], len(held_sequences) + np.arange(len(new_places)))
        )
        self._sequences = GrowingNumbers(np.insert(held_sequences, places[new_places], sequences[new_places]))
        self._append(batch.take(new_places), is_counted[new_places])

    def _append(self, batch: EventBatch, is_counted: NDArray[np.bool_]) -> None:
        self._is_counted.add(is_counted)
        self._times_us.add(batch.time_us)
        self._hashes.add(batch.key_hashes)
        self._codes.add(self._coded(batch))
        for held, name in ((self._ids, "id"), (self._keys, "key"), (self._data, "data")):
            held.add(batch.columns.column(name))

    def rows_of(self, sequences: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the indices of events in the columns, given by sequence number. All must be present."""
        places = np.searchsorted(self._sequences.values, sequences)
        return places if self._rows is None else cast("NDArray[np.intp]", self._rows.values[places])

    def ids(self, rows: NDArray[np.intp]) -> pa.Array:
        """Return the ids of the given events, as strings."""
        return self._ids.take(rows)

    def keys(self, rows: NDArray[np.intp]) -> pa.Array:
        """Return the keys of the given events, as strings."""
        return self._keys.take(rows)

    def data(self, rows: NDArray[np.intp]) -> pa.Array:
        """Return the data of the given events: JSON documents with the type and data of the original events."""
        return self._data.take(rows)

    def times_us(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return cast("NDArray[np.int64]", self._times_us.values[rows])

    def hashes(self, rows: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return the hashed keys of the given events."""
        return cast("NDArray[np.uint64]", self._hashes.values[rows])

    def batch(self, rows: NDArray[np.intp]) -> EventBatch:
        types = texts_of(list(self._types)).take(column_of(self._codes.values[rows])).dictionary_encode()
        keys = self.keys(rows), self.hashes(rows)
        return EventBatch.of_hashed(self.ids(rows), types, self.times_us(rows), keys, self.data(rows))

    def is_counted(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return the mask of the events that were already part of a result or total."""
        return cast("NDArray[np.bool_]", self._is_counted.values[rows])

    def mark_counted(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Mark distinct events as part of a result or total. Return the mask of the events that had no mark before."""
        is_new = ~self._is_counted.values[rows]
        self._is_counted.values[rows] = True
        return cast("NDArray[np.bool_]", is_new)

    def is_sparse(self, needed: int, least: int) -> bool:
        """Check whether the unneeded events should be removed by ``only``.

        This is so if less than half of the events are needed, and more than ``least`` events are present.
        """
        return len(self) > max(_SPARSE * needed, least)

    def only(self, needed: NDArray[np.int64]) -> HeldEvents:
        """Return a copy with only those events whose sequence numbers are in ``needed`` (ascending)."""
        rows = self.rows_of(needed)
        return HeldEvents(needed, self.batch(rows), self._is_counted.values[rows])

    def dump(self, needed: NDArray[np.int64]) -> dict[str, bytes]:
        """Return the events to save, as sections by name. ``needed`` has their sequence numbers, ascending."""
        rows = self.rows_of(needed)
        return {
            "sequences": needed.tobytes(),
            "events": self.batch(rows).to_bytes(),
            "counted": self._is_counted.values[rows].tobytes(),
        }

    @classmethod
    def load(cls, sections: dict[str, bytes]) -> HeldEvents:
        """Restore the events that ``dump`` saved. Raise ``BatchFormatError`` if they cannot be read."""
        return cls(
            np.frombuffer(sections["sequences"], np.int64),
            EventBatch.from_bytes(sections["events"]),
            np.frombuffer(sections["counted"], np.bool_),
        )

    def _coded(self, batch: EventBatch) -> NDArray[np.int32]:
        numbers = [self._types.setdefault(name, len(self._types)) for name in batch.type_names]
        return np.array(numbers, np.int32)[batch.type_codes]
