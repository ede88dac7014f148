"""The part of a key's state that is not in its rows: totals, and results that may be retracted.

It moves to disk and back with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.held_events import HeldEvents
from joins.kernels.tables import JOINED
from joins.retracting.ledger import FOREVER_US
from joins.retracting.retractions import Retractions
from joins.returns import packed_totals, unpacked_totals
from joins.totalling import KeyTotals
from joins.windowed import WindowJoin
from streams import EventBatch, pieces_of, texts_of


class KeyState:
    """The part of a join's state by key that is not in rows: totals and retractions. ``retractions`` may be None.

    It moves to disk and back with the rows of the key.
    """

    def __init__(self, join: WindowJoin, totals: KeyTotals, retractions: Retractions | None) -> None:
        self._join, self._totals, self._retractions = join, totals, retractions

    def pack(self, keys: Sequence[int], rows: NDArray[np.void], held: HeldEvents) -> list[bytes | None]:
        """Remove the totals and retractions of keys from memory. Return them as bytes, or None for a key without any.

        The keys are in the order of their ``rows`` (``ROW``).
        """
        totals = [[*self._totals.open.pop(key)] if key in self._totals.open else None for key in keys]
        if self._retractions is None:
            return [None if total is None else packed_totals(total) for total in totals]
        states: list[bytes | None] = []
        written = np.split(rows["sequence"], np.flatnonzero(np.diff(rows["owner"])) + 1)
        for key, total, key_sequences in zip(keys, totals, written, strict=True):
            part = self._part(self._retractions, key, key_sequences, held)
            state = total if part is None else [*(total or (None, None)), part]
            states.append(None if state is None else packed_totals(state))
        return states

    def texts(self, held: HeldEvents) -> dict[int, str]:
        """Return the text of each key, by hash, that has a total or an event that is needed in memory."""
        rows = held.rows_of(self.needed())
        texts = dict(zip(held.hashes(rows).tolist(), held.keys(rows).to_pylist(), strict=True))
        return texts | {key: text for key, (text, _) in self._totals.open.items()}

    def unpack(
        self, keys: Sequence[int], packed: Sequence[bytes | None], rows: NDArray[np.void], held: HeldEvents
    ) -> None:
        """Restore the totals and retractions that ``pack`` returned. The caller has restored the ``rows`` before.

        The owner of a row is the index of its key in ``keys``.
        """
        retractions, plain = self._retractions, np.ones(len(keys), np.bool_)
        for place, (key, content) in enumerate(zip(keys, packed, strict=True)):
            if content is None:
                continue
            text, total, *parts = unpacked_totals(content)
            if text is not None:
                self._totals.open[key] = text, total
            if parts and retractions is not None:
                plain[place] = False
                self._restore(retractions, key, parts[0], held)
        if retractions is not None:
            is_joined = plain[rows["owner"]] & (rows["flags"] & JOINED != 0)
            retractions.settle_joined(held, np.sort(rows["sequence"][is_joined]))

    def until_us(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """Return for each key the time until which its totals or retractions are needed.

        The rows of the key may leave their windows earlier.
        """
        ledger = None if self._retractions is None else self._retractions.ledger
        return np.array(
            [FOREVER_US if key in self._totals.open else 0 if ledger is None else ledger.until_us(key) for key in keys],
            np.int64,
        )

    def needed(self) -> NDArray[np.int64]:
        """Return the sequence numbers of the events that are needed in memory, ascending."""
        return self._join.held_sequences() if self._retractions is None else self._retractions.needed()

    @staticmethod
    def _part(retractions: Retractions, key: int, written: NDArray[np.int64], held: HeldEvents) -> Any:
        """Remove the part of the ledger about a key and return it as plain JSON, or None if there is none.

        It includes needed events of the key that are not in ``written``, the sequence numbers of its rows.
        """
        ledger = retractions.ledger
        part = ledger.part_of(key)
        if part is None:
            return None
        others = np.setdiff1d(np.array(sorted(ledger.sequences_of(key)), np.int64), written)
        ledger.drop([key])
        if len(others):
            rows = held.rows_of(others)
            batch = held.batch(rows)
            columns = [batch.columns.column(name).to_pylist() for name in ("id", "type", "key", "data")]
            part["rows"] = [
                [sequence, time_us, is_counted, identity, kind, text, data.decode()]
                for sequence, time_us, is_counted, identity, kind, text, data in zip(
                    others.tolist(), batch.time_us.tolist(), held.is_counted(rows).tolist(), *columns, strict=True
                )
            ]
        return part

    @staticmethod
    def _restore(retractions: Retractions, key: int, part: Any, held: HeldEvents) -> None:
        retractions.ledger.add_part(key, part)
        if "rows" in part:
            sequences, times_us, counted, ids, kinds, texts, data = zip(*part["rows"], strict=True)
            batch = EventBatch.of_hashed(
                texts_of(ids),
                texts_of(kinds).dictionary_encode(),
                np.array(times_us, np.int64),
                (texts_of(texts), np.full(len(texts), key, np.uint64)),
                pieces_of([document.encode() for document in data], pa.binary()),
            )
            held.restore(np.array(sequences, np.int64), batch, np.array(counted, np.bool_))
