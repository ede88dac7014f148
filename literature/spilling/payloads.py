"""What events carry besides their keys: in memory as long as the event is, and in its block once it is on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.items import Item

_SLACK = 1024


class PayloadStore:
    """The payloads of the events in memory, and of those that the current batch read from disk."""

    def __init__(self) -> None:
        self._held: dict[int, bytes] = {}
        self._read: dict[int, bytes] = {}
        self._flushed: list[int] = []

    def __len__(self) -> int:
        """Payloads in memory, those of events that have left included until they are pruned."""
        return len(self._held)

    def add(self, first: int, kinds: NDArray[np.uint8], payloads: Sequence[bytes | None]) -> None:
        """A batch comes, whose first event has a sequence number; what closings and times carry is ignored."""
        places = np.flatnonzero((kinds == Item.EVENT) | (kinds == Item.PLACE)).tolist()
        for number, place in enumerate(places):
            self._held[first + number] = payloads[place] or b""

    def of(self, sequences: NDArray[np.int64]) -> pa.BinaryArray:
        """The payloads of events that are in memory, or were so or were read in the current batch."""
        held, read = self._held, self._read
        return pa.array([held[one] if one in held else read[one] for one in sequences.tolist()], pa.binary())

    def note_flushed(self, sequences: NDArray[np.int64]) -> None:
        """Events went to disk."""
        self._flushed.extend(sequences.tolist())

    def note_read(self, sequences: NDArray[np.int64], payloads: pa.BinaryArray) -> None:
        """Events on disk became part of results."""
        self._read.update(zip(sequences.tolist(), payloads.to_pylist(), strict=True))

    def note_back(self, sequences: NDArray[np.int64], payloads: pa.BinaryArray) -> None:
        """Events on disk are in memory again."""
        back = dict(zip(sequences.tolist(), payloads.to_pylist(), strict=True))
        self._held.update(back)
        self._flushed = [one for one in self._flushed if one not in back]

    def end(self) -> None:
        """The results of the batch are written: forget what went to disk and what was read."""
        for sequence in self._flushed:
            self._held.pop(sequence, None)
        self._flushed.clear()
        self._read.clear()

    def is_crowded(self, in_memory: int) -> bool:
        """Whether most payloads are of events that have left."""
        return len(self._held) > 2 * in_memory + _SLACK

    def prune(self, sequences: NDArray[np.int64]) -> None:
        """Keep the payloads of the events in memory."""
        self._held = {one: self._held[one] for one in sequences.tolist()}

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
        """Take what ``dump`` gave.

        Raises:
            KeyError: An array is missing.
            ValueError: Their sizes do not fit.
        """
        sequences = np.frombuffer(arrays["payload_sequences"], np.int64)
        ends = np.cumsum(np.frombuffer(arrays["payload_sizes"], np.int64))
        if len(ends) != len(sequences) or (len(ends) and ends[-1] != len(arrays["payloads"])):
            raise ValueError("the payloads do not fit their sizes")
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
        parts = zip(sequences.tolist(), begins.tolist(), ends.tolist(), strict=True)
        self._held = {sequence: arrays["payloads"][begin:end] for sequence, begin, end in parts}
