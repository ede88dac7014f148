"""Blocks of rows on disk, each a file of ``streams.SpilledFiles``: written once, and named by its checksum.

A folder belongs to one join. A file that the join no longer needs is removed, unless a saved state names it; then it
stays until a later state is safe. So every state that may still be needed is readable, whatever was written later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from joins.errors import JoinStateError
from streams import SpilledFiles, StateLost


class BlockFile(NamedTuple):
    """The name of a file, and its size in bytes."""

    name: str
    size: int


class BlockFiles:
    """The files of a join.

    Args:
        folder: Folder of this join alone; created with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._files = SpilledFiles(folder)
        self._uses: Counter[str] = Counter()
        self._saved: frozenset[str] = frozenset()  # named by a state that may still be needed
        self._last_saved: frozenset[str] = frozenset()

    def write(self, content: bytes) -> BlockFile:
        """Write a block without waiting for the disk."""
        file = BlockFile(self._files.write(content), len(content))
        self._uses[file.name] += 1
        return file

    def read(self, file: BlockFile) -> pa.Buffer:
        """The content of a block.

        Raises:
            JoinStateError: The file is missing or damaged.
        """
        with _as_join_state():
            return self._files.read(file.name, file.size)

    def drop(self, file: BlockFile) -> None:
        """Remove a block that the join no longer needs, unless a saved state names it."""
        self._files.let_go(file.name)
        self._uses[file.name] -= 1
        if not self._uses[file.name]:
            del self._uses[file.name]
            if file.name not in self._saved:
                (self._files.folder / file.name).unlink(missing_ok=True)

    def save(self) -> None:
        """Make all blocks durable; their files and those of the previous state stay until ``release``."""
        self._files.sync(self._uses)
        self._last_saved = frozenset(self._uses)
        self._saved |= self._last_saved

    def release(self) -> None:
        """Remove files named only by states before the last saved state, which is safe."""
        self._saved = self._last_saved
        self._files.keep_only(self._saved | set(self._uses))

    def restore(self, files: Iterable[BlockFile]) -> None:
        """Use the blocks of a saved state, and remove all other files.

        Raises:
            JoinStateError: A file is missing, or has another length.
        """
        self._uses.clear()
        for file in files:
            with _as_join_state():
                self._files.use(file.name, file.size)
            self._uses[file.name] += 1
        self._saved = self._last_saved = frozenset(self._uses)
        self._files.keep_only(self._saved)

    def clear(self) -> None:
        """Remove all files."""
        self._uses.clear()
        self._saved = self._last_saved = frozenset()
        self._files.keep_only(())


def content_of(batch: pa.RecordBatch) -> bytes:
    """The content of a block: rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_in(content: pa.Buffer | bytes) -> pa.RecordBatch:
    """The rows of a block."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()


@contextmanager
def _as_join_state() -> Iterator[None]:
    try:
        yield
    except StateLost as error:
        raise JoinStateError(str(error)) from error
