"""Index of the keys whose rows are on disk: the files with the rows, and how long the rows may stay there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.paging.blocks import BlockRows, rows_in
from streams import SpilledFiles

FOREVER = np.iinfo(np.int64).max
_SPARSE = 2  # a block is not worth a file once less than 1 / _SPARSE of its rows are left

AWAY = np.dtype(
    [
        ("key", np.uint64),  # hashed
        ("due", np.int64),  # when time leads to a result of the key, us
        ("gone", np.int64),  # when the last row of the key leaves its window, us
        ("block", np.int32),
        ("first", np.int32),  # index of the key's first row in the block
        ("rows", np.int32),
        ("closed", np.uint16),  # inputs that closed the key, as bits
    ]
)


@dataclass(slots=True)
class _Block:
    """A file of spilled rows, some of which are still needed.

    Attributes:
        rows: Number of rows in the file.
        live: Number of rows that are not back in memory, because their keys had no event since.
        due_us: The first time at which passing time makes a result of one of the rows.
        gone_us: When the last of the rows leaves its window.
    """

    name: str
    size_bytes: int
    rows: int
    live: int
    due_us: int
    gone_us: int


class KeysOnDisk:
    """The index of the keys whose rows are on disk, in blocks of ``files``.

    ``label`` distinguishes the files of this join from files of other joins.
    """

    def __init__(self, files: SpilledFiles, label: str) -> None:
        self._files, self._label = files, label
        self._away = np.zeros(0, AWAY)  # sorted by key
        self._blocks: dict[int, _Block] = {}
        self._next_block = 0
        self._next_due_us = self._next_gone_us = FOREVER
        self.rows_written = self.rows_read = 0

    def __len__(self) -> int:
        return len(self._away)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The hashed keys, ascending."""
        return np.ascontiguousarray(self._away["key"])

    @property
    def rows(self) -> int:
        """The number of rows on disk."""
        return sum(block.live for block in self._blocks.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that are needed."""
        return sum(block.size_bytes for block in self._blocks.values())

    @property
    def file_names(self) -> list[str]:
        """The names of the files that are needed."""
        return [block.name for block in self._blocks.values()]

    def rows_of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return how many rows each of the given distinct keys (hashes) has on disk."""
        counts = np.zeros(len(keys), np.int64)
        places, is_on_disk = self._places(keys)
        counts[is_on_disk] = self._away["rows"][places[is_on_disk]]
        return counts

    def due_places(self, keys: NDArray[np.uint64], until_us: int) -> NDArray[np.intp]:
        """Return the indices of the keys to load from disk: the given ``keys``, and keys with a result by ``until_us``.

        All keys of a block are loaded if one of them has a result by ``until_us``. They are also loaded if the block
        must be read anyway and would keep few keys. The given keys are distinct, and need not be on disk.
        """
        places, is_on_disk = self._places(keys)
        if self._next_due_us > until_us and not is_on_disk.any():
            return np.zeros(0, np.intp)
        is_due = np.zeros(len(self._away), np.bool_)
        is_due[places[is_on_disk]] = True
        touched, owners = np.unique(self._away["block"][is_due], return_inverse=True)
        row_counts = np.bincount(owners, self._away["rows"][is_due], len(touched))
        whole_blocks = [number for number, block in self._blocks.items() if block.due_us <= until_us]
        for number, rows in zip(touched.tolist(), row_counts.tolist(), strict=True):
            block = self._blocks[number]
            if (block.live - rows) * _SPARSE < block.rows:
                whole_blocks.append(number)
        if whole_blocks:
            is_due |= np.isin(self._away["block"], np.array(whole_blocks, np.int32))
        return np.flatnonzero(is_due)

    def take(self, places: NDArray[np.intp]) -> tuple[NDArray[np.void], BlockRows]:
        """Read the rows of keys, given by index, and remove the keys from the index.

        Return the keys (``AWAY``) and their rows. The owner of a row is the index of its key among the returned keys.
        Raise ``StateLost`` and change nothing if a file is missing or damaged.
        """
        keys = self._away[places]
        keys = keys[np.lexsort((keys["first"], keys["block"]))]
        numbers, firsts = np.unique(keys["block"], return_index=True)
        parts = []
        for number, block_keys in zip(numbers.tolist(), np.split(keys, firsts[1:]), strict=True):
            block = self._blocks[number]
            content = self._files.read(block.name, block.size_bytes)
            rows = (
                None
                if int(block_keys["rows"].sum()) == block.rows
                else _ranges(block_keys["first"], block_keys["rows"])
            )
            parts.append(rows_in(content, rows))
        block_rows = BlockRows.joined(parts)
        block_rows.rows["owner"] = np.repeat(np.arange(len(keys)), keys["rows"])
        self._remove(places)
        self.rows_read += len(block_rows)
        return keys, block_rows

    def add(self, keys: NDArray[np.void], block_rows: BlockRows) -> None:
        """Write the rows of ``keys`` (``AWAY``) to one file, and add the keys to the index. No key may be on disk yet.

        The keys are in the order of their rows.
        """
        content = block_rows.to_bytes(self._label)
        name, number = self._files.write(content), self._next_block
        due_us, gone_us = int(keys["due"].min()), int(keys["gone"].max())
        rows = len(block_rows)
        self._next_block += 1
        self._blocks[number] = _Block(name, len(content), rows, rows, due_us, gone_us)
        added = keys.copy()
        added["block"], added["first"] = number, np.cumsum(keys["rows"]) - keys["rows"]
        merged = np.concatenate([self._away, added])
        self._away = merged[np.argsort(merged["key"], kind="stable")]
        self._next_due_us, self._next_gone_us = min(self._next_due_us, due_us), min(self._next_gone_us, gone_us)
        self.rows_written += rows

    def expire(self, now_us: int, *, every: bool = False) -> int:
        """Remove keys whose rows have all left their windows, without reading the rows. Return the number of rows.

        Keys that lead to a result have been loaded before. If ``every`` is false, keys are only removed when all rows
        of their file have left their windows.
        """
        if not every and self._next_gone_us > now_us:
            return 0
        is_gone = self._away["gone"] <= now_us
        if not every:
            expired_blocks = [number for number, block in self._blocks.items() if block.gone_us <= now_us]
            is_gone &= np.isin(self._away["block"], np.array(expired_blocks, np.int32))
        expired = int(self._away["rows"][is_gone].sum())
        self._remove(np.flatnonzero(is_gone))
        return expired

    def forget(self, keys: NDArray[np.uint64]) -> None:
        """Remove those of the distinct ``keys`` that are on disk from the index. Their rows are not read."""
        places, is_on_disk = self._places(keys)
        self._remove(places[is_on_disk])

    def read_all(self) -> Iterator[BlockRows]:
        """Yield all rows on disk, one block at a time."""
        for number, block in self._blocks.items():
            block_keys = np.sort(self._away[self._away["block"] == number], order="first")
            content = self._files.read(block.name, block.size_bytes)
            yield rows_in(content, _ranges(block_keys["first"], block_keys["rows"]))

    def verify(self) -> None:
        """Compare the checksums of all files. Raise ``StateLost``, naming the file, if one is missing or damaged."""
        for block in self._blocks.values():
            self._files.read(block.name, block.size_bytes)

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return the state to save: the files with their lengths, and the index of keys."""
        self._files.note_named(self.file_names)
        blocks = [
            [number, block.name, block.size_bytes, block.rows, block.live, block.due_us, block.gone_us]
            for number, block in self._blocks.items()
        ]
        counts = {"next": self._next_block, "written": self.rows_written, "read": self.rows_read}
        return {"blocks": blocks, **counts}, self._away.tobytes()

    def load(self, head: Mapping[str, Any], index: bytes) -> None:
        """Restore the state that ``dump`` returned. Raise ``StateLost`` if a file is missing, or has another length."""
        self._away = np.frombuffer(index, AWAY).copy()
        self._blocks = {number: _Block(*parts) for number, *parts in head["blocks"]}
        self._next_block, self.rows_written, self.rows_read = head["next"], head["written"], head["read"]
        for block in self._blocks.values():
            self._files.use(block.name, block.size_bytes)
        self._update_times()

    def _places(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the position of each key in ``_away``, and the mask of the keys that are on disk.

        The positions of other keys have no meaning.
        """
        places = np.searchsorted(self._away["key"], keys)
        places[places == len(self._away)] = 0
        return places, self._away["key"][places] == keys if len(self._away) else np.zeros(len(keys), np.bool_)

    def _remove(self, places: NDArray[np.intp]) -> None:
        for number, rows in _sums(self._away["block"][places], self._away["rows"][places]):
            block = self._blocks[number]
            block.live -= rows
            if not block.live:
                self._files.let_go(self._blocks.pop(number).name)
        self._away = np.delete(self._away, places)
        self._update_times()

    def _update_times(self) -> None:
        self._next_due_us = min((block.due_us for block in self._blocks.values()), default=FOREVER)
        self._next_gone_us = min((block.gone_us for block in self._blocks.values()), default=FOREVER)


def _ranges(firsts: NDArray[np.int32], counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the members of several ranges in one array. A range is given by its first number and its length."""
    ends = np.cumsum(counts)
    starts: NDArray[np.int64] = np.repeat(firsts.astype(np.int64) - (ends - counts), counts)
    return starts + np.arange(len(starts))


def _sums(numbers: NDArray[np.int32], values: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    distinct, owners = np.unique(numbers, return_inverse=True)
    sums = np.bincount(owners, values, len(distinct)).astype(np.int64)
    return zip(distinct.tolist(), sums.tolist(), strict=True)
