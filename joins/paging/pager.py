"""Paging of a join's rows: a bounded number is in memory, and the rows of the least recently used keys are on disk.

A key is on disk with all of its state, or not at all. The key is loaded before its next item is joined, and before time
leads to a result of the key, so paging does not change the results of the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.held_events import HeldEvents
from joins.kernels.paging import KEY
from joins.kernels.tables import NEVER
from joins.paging.blocks import BlockRows
from joins.paging.index import AWAY, KeysOnDisk
from joins.retracting import KeyState
from joins.windowed import WindowJoin
from streams import SpilledFiles

_BLOCKS = 8  # number of blocks that the rows in memory would fill, unless blocks get too small or too large
_LEAST_BLOCK, _LARGEST_BLOCK = 1_024, 8_192  # rows; each file that is read has a fixed cost
_LEAST_PART = 8_192  # rows that may be loaded for items that are joined at once, however small the memory


class Pager:
    """Moves a join's least recently used keys, with all of their rows, to disk, and loads them when they are needed.

    Memory holds at most ``rows`` rows, besides the keys whose items are being joined. ``label`` distinguishes this join
    from others that use the same files.
    """

    def __init__(self, rows: int, files: SpilledFiles, label: str) -> None:
        self._most = rows
        self._block_rows = min(max(rows // _BLOCKS, _LEAST_BLOCK), _LARGEST_BLOCK)
        self._part_rows = max(rows, _LEAST_PART)
        self.disk = KeysOnDisk(files, label)
        self.expired = 0

    def cuts(self, keys: NDArray[np.uint64]) -> list[int]:
        """Return the indices at which to divide items into parts, so that the rows of each part fit into memory.

        ``keys`` are the hashed keys of the items.
        """
        if not len(self.disk):
            return []
        distinct, firsts = np.unique(keys, return_index=True)
        back = np.zeros(len(keys), np.int64)
        back[firsts] = self.disk.rows_of(distinct)
        parts = np.cumsum(back) // self._part_rows
        borders: list[int] = np.flatnonzero(np.diff(parts) > 0).tolist()
        return [place + 1 for place in borders]

    def load_keys(
        self, join: WindowJoin, held: HeldEvents, key_state: KeyState, keys: NDArray[np.uint64], until_us: int
    ) -> None:
        """Load rows into the state of the join: of the given keys, and of keys that lead to a result by ``until_us``.

        Raise ``StateLost`` and change nothing if a file is missing or damaged.
        """
        now_us = join.now_us
        self.expired += self.disk.expire(NEVER if now_us is None else now_us)
        places = self.disk.due_places(np.unique(keys), until_us)
        if not len(places):
            return
        away, block_rows = self.disk.take(places)
        order = np.argsort(block_rows.rows["sequence"], kind="stable")
        key_rows = np.zeros(len(away), KEY)
        key_rows["key"], key_rows["closed"] = away["key"], away["closed"]
        join.put_back(key_rows, block_rows.rows[order])
        held.restore(block_rows.rows["sequence"][order], block_rows.events.take(order), block_rows.is_counted[order])
        firsts = np.cumsum(away["rows"]) - away["rows"]
        packed = block_rows.totals.take(pa.array(firsts)).to_pylist()
        key_state.unpack(away["key"].tolist(), packed, block_rows.rows, held)

    def spill(self, join: WindowJoin, held: HeldEvents, key_state: KeyState) -> HeldEvents:
        """Move the least recently used keys to disk if too many rows are in memory.

        Return the events that stay in memory. Afterwards, half of the allowed number of rows is in memory.
        """
        if join.stored <= self._most:
            return held
        key_rows, rows = join.take(join.coldest(join.stored - self._most // 2))
        due_us, gone_us = join.leaving(key_rows, rows)
        away = np.zeros(len(key_rows), AWAY)
        for name in ("key", "closed", "rows"):
            away[name] = key_rows[name]
        away["due"], away["gone"] = due_us, np.maximum(gone_us, key_state.until_us(key_rows["key"].tolist()))
        ends = np.cumsum(key_rows["rows"])
        blocks = (ends - 1) // self._block_rows
        borders = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(key_rows)]
        for first, last in pairwise(borders):
            begin, end = int(ends[first] - key_rows["rows"][first]), int(ends[last - 1])
            content = self._rows(key_rows["key"][first:last], rows[begin:end], held, key_state)
            self.disk.add(away[first:last], content)
        return held.only(key_state.needed())

    def expire(self, now_us: int) -> None:
        """Remove all keys on disk whose rows are out of their windows."""
        self.expired += self.disk.expire(now_us, every=True)

    def clear_counts(self) -> None:
        """Restart the counts of expired, written and read rows from 0."""
        self.expired = self.disk.rows_written = self.disk.rows_read = 0

    def texts(self) -> Iterator[tuple[NDArray[np.uint64], pa.Array]]:
        """Yield for each file on disk the keys of its rows, as hashes and as texts."""
        for rows in self.disk.read_all():
            yield rows.events.key_hashes, rows.events.columns.column("key")

    def measures(self) -> dict[str, int]:
        """Return how much is on disk (rows, keys, bytes of the files), and how many rows were ever written and read."""
        return {
            "spilled": self.disk.rows,
            "spilled_keys": len(self.disk),
            "spilled_bytes": self.disk.size_bytes,
            "spill_writes": self.disk.rows_written,
            "spill_reads": self.disk.rows_read,
        }

    def dump(self) -> tuple[dict[str, Any], bytes]:
        head, index = self.disk.dump()
        return {**head, "expired": self.expired}, index

    def load(self, head: Mapping[str, Any], index: bytes) -> None:
        """Restore the state that ``dump`` returned. Raise ``StateLost`` if a file is missing, or has another length."""
        self.disk.load(head, index)
        self.expired = head["expired"]

    @staticmethod
    def _rows(keys: NDArray[np.uint64], rows: NDArray[np.void], held: HeldEvents, key_state: KeyState) -> BlockRows:
        places = held.rows_of(rows["sequence"])
        firsts = np.flatnonzero(np.diff(rows["owner"], prepend=-1))
        texts: list[bytes | None] = [None] * len(rows)
        for place, packed in zip(firsts.tolist(), key_state.pack(keys.tolist(), rows, held), strict=True):
            texts[place] = packed
        return BlockRows(rows, held.batch(places), held.is_counted(places), pa.array(texts, pa.binary()))
