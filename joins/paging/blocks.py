"""The file format of a block of spilled rows: an Arrow stream of events, each with its state in the join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.kernels.paging import ROW
from streams import EventBatch, column_of

_OWN = ("sequence", "input", "flags", "counted", "total")
_ROW_TIME = "stored_at"
_MOST_FLAGS = 255


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Stored events of a join as rows of a file, each with its state in the join.

    Attributes:
        rows: ``ROW`` of ``joins.kernels.paging``. The member ``owner`` has no meaning.
        is_counted: Mask of the events that were already part of a result or total.
        totals: For the first event of a key, the key's totals so far, as JSON (``KeyState.pack``). Otherwise null.
    """

    rows: NDArray[np.void]
    events: EventBatch
    is_counted: NDArray[np.bool_]
    totals: pa.Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: NDArray[np.intp]) -> BlockRows:
        return BlockRows(
            self.rows[places],
            self.events.take(places),
            self.is_counted[places],
            self.totals.take(column_of(places.astype(np.int64))),
        )

    def to_bytes(self, label: str) -> bytes:
        """Encode the rows as the content of a file.

        ``label`` is included, so that equal rows of two joins make two files.
        """
        rows = self.rows
        state_columns = [
            column_of(np.ascontiguousarray(rows["sequence"])),
            column_of(rows["input"].astype(np.uint8)),
            column_of(
                np.ascontiguousarray(rows["flags"])
                if np.any(rows["flags"] > _MOST_FLAGS)
                else rows["flags"].astype(np.uint8)
            ),
            pa.array(self.is_counted),
            self.totals,
            column_of(np.ascontiguousarray(rows["time"])),
        ]
        columns = self.events.columns
        batch = pa.RecordBatch.from_arrays(
            [*columns.columns, *state_columns], names=[*columns.schema.names, *_OWN, _ROW_TIME]
        ).replace_schema_metadata({"join": label})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    @classmethod
    def joined(cls, parts: list[BlockRows]) -> BlockRows:
        """Concatenate the rows of one or more blocks."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            EventBatch.joined([part.events for part in parts]),
            np.concatenate([part.is_counted for part in parts]),
            pa.concat_arrays([part.totals for part in parts]),
        )


def rows_in(content: pa.Buffer, places: NDArray[np.int64] | None = None) -> BlockRows:
    """Decode the content of a file. Return the rows with the given indices, or all rows if ``places`` is None."""
    with pa.ipc.open_stream(content) as reader:
        batch = reader.read_next_batch()
    if places is not None:
        batch = batch.take(column_of(places))
    rows = np.zeros(batch.num_rows, ROW)
    for name in ("sequence", "input", "flags"):
        rows[name] = batch.column(name).to_numpy()
    rows["time"] = batch.column(_ROW_TIME).to_numpy()
    events = EventBatch.of_hashed(
        batch.column("id"),
        batch.column("type"),
        batch.column("time").cast(pa.int64()).to_numpy(),
        (batch.column("key"), batch.column("key_hash").to_numpy()),
        batch.column("data"),
    )
    return BlockRows(rows, events, batch.column("counted").to_numpy(zero_copy_only=False), batch.column("total"))
