"""Payloads of events: in memory as long as their event is, and in its block once the event is on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.items import Item

_SLACK = 1024


class PayloadStore:
    """The payloads of events in memory, and of events that the current batch read from disk."""

    def __init__(self) -> None:
        self._held: dict[int, bytes] = {}
        self._read: dict[int, bytes] = {}
        self._flushed: list[int] = []

    def __len__(self) -> int:
        """The number of payloads in memory, including those of events that have left and are not pruned yet."""
        return len(self._held)

    def add(self, first: int, kinds: NDArray[np.uint8], payloads: Sequence[bytes | None]) -> None:
        """Add the payloads of a batch whose first event has the number ``first``; closings and times have none."""
        places = np.flatnonzero((kinds == Item.EVENT) | (kinds == Item.PLACE)).tolist()
        for number, place in enumerate(places):
            self._held[first + number] = payloads[place] or b""

    def of(self, sequences: NDArray[np.int64]) -> pa.BinaryArray:
        """The payloads of events that are in memory, or left it or were read during the current batch."""
        held, read = self._held, self._read
        return pa.array(
            [held[sequence] if sequence in held else read[sequence] for sequence in sequences.tolist()], pa.binary()
        )

    def note_flushed(self, sequences: NDArray[np.int64]) -> None:
        """Note events that were written to disk."""
        self._flushed.extend(sequences.tolist())

    def note_read(self, sequences: NDArray[np.int64], payloads: pa.BinaryArray) -> None:
        """Note events on disk that became part of results."""
        self._read.update(zip(sequences.tolist(), payloads.to_pylist(), strict=True))

    def note_back(self, sequences: NDArray[np.int64], payloads: pa.BinaryArray) -> None:
        """Note events on disk that were moved back into memory."""
        back = dict(zip(sequences.tolist(), payloads.to_pylist(), strict=True))
        self._held.update(back)
        self._flushed = [sequence for sequence in self._flushed if sequence not in back]

    def end(self) -> None:
        """Forget payloads of events that were written to disk or read, as the batch's results are complete."""
        for sequence in self._flushed:
            self._held.pop(sequence, None)
        self._flushed.clear()
        self._read.clear()

    def is_crowded(self, in_memory: int) -> bool:
        """Whether most payloads belong to events that have left."""
        return len(self._held) > 2 * in_memory + _SLACK

    def prune(self, sequences: NDArray[np.int64]) -> None:
        """Keep the payloads of the given events only, those in memory."""
        self._held = {sequence: self._held[sequence] for sequence in sequences.tolist()}

    def dump(self) -> dict[str, bytes]:
        """The state as arrays by name."""
        sequences = np.array(list(self._held), np.int64)
        sizes = np.array(list(map(len, self._held.values())), np.int64)
        return {
            "payload_sequences": sequences.tobytes(),
            "payload_sizes": sizes.tobytes(),
            "payloads": b"".join(self._held.values()),
        }

    def load(self, arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned.

        Raises:
            KeyError: An array is missing.
            ValueError: The sizes of the arrays do not fit.
        """
        sequences = np.frombuffer(arrays["payload_sequences"], np.int64)
        ends = np.cumsum(np.frombuffer(arrays["payload_sizes"], np.int64))
        if len(ends) != len(sequences) or (len(ends) and ends[-1] != len(arrays["payloads"])):
            raise ValueError("the payloads do not fit their sizes")
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
        parts = zip(sequences.tolist(), begins.tolist(), ends.tolist(), strict=True)
        self._held = {sequence: arrays["payloads"][begin:end] for sequence, begin, end in parts}
