"""The events that a join may still need, beside its numbers: what results say of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams import EventBatch

_SPARSE = 2  # with so many times more events than are needed, those that are not go


class HeldEvents:
    """Events by their sequence numbers.

    Args:
        sequences: int64, ascending.
        batch: The events.
        is_counted: Which of them have taken part in something.
    """

    def __init__(self, sequences: NDArray[np.int64], batch: EventBatch, is_counted: NDArray[np.bool_]) -> None:
        self.sequences = sequences
        self.batch = batch
        self.is_counted = is_counted

    @classmethod
    def empty(cls) -> HeldEvents:
        """None."""
        return cls(np.zeros(0, np.int64), EventBatch.from_events([]), np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.sequences)

    def add(self, sequences: NDArray[np.int64], batch: EventBatch) -> None:
        """More events, with numbers behind those that are there."""
        if not len(sequences):
            return
        self.sequences = np.concatenate([self.sequences, sequences])
        self.batch = EventBatch.joined([self.batch, batch]) if len(self.batch) else batch
        self.is_counted = np.concatenate([self.is_counted, np.zeros(len(sequences), np.bool_)])

    def rows_of(self, sequences: NDArray[np.int64]) -> NDArray[np.intp]:
        """The rows of some events that are there."""
        return np.searchsorted(self.sequences, sequences)

    def not_counted(self, sequences: NDArray[np.int64]) -> list[int]:
        """Those of some events that have not taken part in anything so far, in their order; from now on they have."""
        found: list[int] = []
        for sequence, row in zip(sequences.tolist(), self.rows_of(sequences).tolist(), strict=True):
            if not self.is_counted[row]:
                self.is_counted[row] = True
                found.append(sequence)
        return found

    def is_sparse(self, needed: int) -> bool:
        """Whether most are not needed, when so many are."""
        return len(self) > _SPARSE * needed

    def keep_only(self, needed: NDArray[np.int64]) -> None:
        """Forget what is not needed.

        Args:
            needed: Sequence numbers, ascending.
        """
        rows = self.rows_of(needed)
        self.sequences, self.batch = needed, self.batch.take(rows)
        self.is_counted = self.is_counted[rows]

    def dump(self, needed: NDArray[np.int64]) -> dict[str, bytes]:
        """What is needed, as sections by name."""
        rows = self.rows_of(needed)
        return {
            "sequences": needed.tobytes(),
            "events": self.batch.take(rows).to_bytes(),
            "counted": self.is_counted[rows].tobytes(),
        }

    @classmethod
    def load(cls, sections: dict[str, bytes]) -> HeldEvents:
        """What ``dump`` gave.

        Raises:
            BatchFormatError: The events cannot be read.
        """
        return cls(
            np.frombuffer(sections["sequences"], np.int64),
            EventBatch.from_bytes(sections["events"]),
            np.frombuffer(sections["counted"], np.bool_).copy(),
        )
