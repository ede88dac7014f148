"""Blocks of rows on disk, each a file of ``streams.SpilledFiles``: written once, and named by its checksum.

A folder belongs to one join. A file is removed when the join needs it no more, unless a saved state names it; then it
stays until a later state is safe. So every state that may still be needed is readable, whatever was written after it.
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
    """A file by its name, with its bytes."""

    name: str
    size: int


class BlockFiles:
    """The files of a join.

    Args:
        folder: The join's alone; made when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self._files = SpilledFiles(folder)
        self._uses: Counter[str] = Counter()
        self._saved: frozenset[str] = frozenset()  # named by a state that may still be needed
        self._last_saved: frozenset[str] = frozenset()

    def write(self, content: bytes) -> BlockFile:
        """Write a block, not waiting for the disk."""
        file = BlockFile(self._files.write(content), len(content))
        self._uses[file.name] += 1
        return file

    def read(self, file: BlockFile) -> pa.Buffer:
        """The content of a block.

        Raises:
            JoinStateError: Its file is missing or damaged.
        """
        with _as_join_state():
            return self._files.read(file.name, file.size)

    def drop(self, file: BlockFile) -> None:
        """The join needs a block no more."""
        self._files.let_go(file.name)
        self._uses[file.name] -= 1
        if not self._uses[file.name]:
            del self._uses[file.name]
            if file.name not in self._saved:
                (self._files.folder / file.name).unlink(missing_ok=True)

    def save(self) -> None:
        """Make all blocks durable; their files stay until ``release``, as those of the state before."""
        self._files.sync(self._uses)
        self._last_saved = frozenset(self._uses)
        self._saved |= self._last_saved

    def release(self) -> None:
        """The last saved state is safe: remove the files that only earlier ones name."""
        self._saved = self._last_saved
        self._files.keep_only(self._saved | set(self._uses))

    def restore(self, files: Iterable[BlockFile]) -> None:
        """Have the blocks of a saved state, and remove all other files.

        Raises:
            JoinStateError: A file is missing, or of another length.
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
    """Rows as a block has them: an Arrow stream."""
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
