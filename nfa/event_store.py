"""Identity and time of the events that partial matches bind, kept from batch to batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SLACK = 1_024  # forgotten rows that are not worth a compaction


class EventStore:
    """Rows by sequence number, ascending; forgotten rows are dropped when they outnumber the held ones.

    Attributes:
        sequences: int64.
        ids: Arrow strings.
        times_us: int64.
    """

    def __init__(
        self,
        sequences: NDArray[np.int64] | None = None,
        ids: pa.Array | None = None,
        times_us: NDArray[np.int64] | None = None,
    ) -> None:
        self.sequences = np.zeros(0, np.int64) if sequences is None else sequences
        self.ids = pa.array([], pa.string()) if ids is None else ids
        self.times_us = np.zeros(0, np.int64) if times_us is None else times_us

    def __len__(self) -> int:
        return len(self.sequences)

    def append(self, sequences: NDArray[np.int64], ids: pa.Array, times_us: NDArray[np.int64]) -> None:
        """Add rows; their sequence numbers are above all present ones."""
        if len(sequences):
            self.sequences = np.concatenate([self.sequences, sequences])
            self.ids = pa.concat_arrays([self.ids, ids])
            self.times_us = np.concatenate([self.times_us, times_us])

    def find(self, sequences: NDArray[np.int64]) -> NDArray[np.intp]:
        """Row numbers of sequence numbers that are held."""
        return np.searchsorted(self.sequences, sequences)

    def is_worth_compacting(self, held: int) -> bool:
        """Whether so few of the rows are held that the others should go."""
        return len(self) > 2 * held + _SLACK

    def compact(self, held: NDArray[np.int64]) -> None:
        """Drop every row that is not among ``held`` (ascending, all present)."""
        rows = self.find(held)
        self.sequences, self.times_us = self.sequences[rows], self.times_us[rows]
        self.ids = self.ids.take(pa.array(rows))
