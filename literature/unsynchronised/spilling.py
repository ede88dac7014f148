"""Blocks of items on disk, each with its lowest and highest key in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from literature.block_files import BlockFile, BlockFiles, content_of, rows_in
from literature.kernels.unsynchronised.tables import ITEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of items.

    Attributes:
        file: File of the block.
        rows: Number of items.
        lowest: Lowest key.
        highest: Highest key.
    """

    file: BlockFile
    rows: int
    lowest: int
    highest: int


@dataclass(slots=True)
class WaitingBlocks:
    """The blocks of one input on disk, as an index in memory.

    Attributes:
        files: Files of the blocks.
        blocks: Blocks that were not read yet.
        rows: Number of items on disk.
        written: Number of blocks written so far.
        read: Number of blocks read so far.
    """

    files: BlockFiles
    blocks: list[Block] = field(default_factory=list)
    rows: int = 0
    written: int = 0
    read: int = 0

    def write(self, items: NDArray[np.void]) -> None:
        """Sort items by key, and write them as a block."""
        items = items[np.argsort(items["key"], kind="stable")]
        columns = {name: pa.array(np.ascontiguousarray(items[name])) for name in ITEM.names or ()}
        content = content_of(pa.RecordBatch.from_pydict(columns))
        self.write_content(content, len(items), int(items["key"][0]), int(items["key"][-1]))

    def write_content(self, content: bytes, rows: int, lowest: int, highest: int) -> None:
        """Write a block from its content."""
        self.blocks.append(Block(file=self.files.write(content), rows=rows, lowest=lowest, highest=highest))
        self.rows += rows
        self.written += 1

    def take(self, is_wanted: Callable[[Block], bool]) -> Iterator[NDArray[np.void]]:
        """Read the wanted blocks, lowest keys first, and remove them.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        for block in sorted(filter(is_wanted, self.blocks), key=lambda waiting_block: waiting_block.lowest):
            items = self.items_of(block)
            self.blocks.remove(block)
            self.files.drop(block.file)
            self.rows -= block.rows
            self.read += 1
            yield items

    def items_of(self, block: Block) -> NDArray[np.void]:
        """The items of a block.

        Raises:
            JoinStateError: The file is missing or damaged.
        """
        batch = rows_in(self.files.read(block.file))
        items = np.zeros(block.rows, ITEM)
        for name in ITEM.names or ():
            items[name] = batch.column(name).to_numpy()
        return items

    def remove(self) -> None:
        """Remove all blocks."""
        for block in self.blocks:
            self.files.drop(block.file)
        self.blocks.clear()
        self.rows = 0
