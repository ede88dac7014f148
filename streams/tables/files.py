"""The files of tables in the cache folder of this user and machine, found by the digest of their content.

A table is an Arrow file of its rows and a file of its index, which is built once. Processes map both into memory, and
so share one copy. Missing files are fetched from the store, and files that were not used for 30 days are removed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from streams.kept.folder import kept_folder, make_kept_folder, note_use
from streams.kept.replaced_files import replacing
from streams.tables.errors import TableMissing
from streams.tables.form import TableForm
from streams.tables.mapped import MappedTable, form_in, keys_in, slots_of

Fetch: TypeAlias = Callable[[str, BinaryIO], bool]
"""A function that writes the content with a digest from a store to a file. It returns False if the store lacks it."""

STORED = "forestall:table:"
"""Prefix of a table's key in the store, before its digest. The value is a list of compressed pieces."""

_ROWS, _INDEX, _DRAFT = ".arrow", ".keys", ".tmp"
_DIGEST_BYTES = 20
_PIECE_BYTES = 1 << 22
_SIZE_BYTES = 4
_CODEC = "zstd"


def fetching(read: Callable[[str, int], bytes | None]) -> Fetch:
    """Return a ``Fetch``, a function that fetches the content of a table from a store by its digest.

    ``read`` returns an item of a list in the store, by list key and index.
    """

    def fetch(digest: str, file: BinaryIO) -> bool:
        place = 0
        while (piece := read(f"{STORED}{digest}", place)) is not None:
            size = int.from_bytes(piece[:_SIZE_BYTES], "little")
            file.write(pa.decompress(piece[_SIZE_BYTES:], size, codec=_CODEC, asbytes=True))
            place += 1
        return place > 0

    return fetch


def pieces_of_file(path: Path) -> Iterator[bytes]:
    """Yield the content of a table's file in compressed pieces, which a store keeps as a list."""
    with path.open("rb") as file:
        while part := file.read(_PIECE_BYTES):
            yield len(part).to_bytes(_SIZE_BYTES, "little") + pa.compress(part, codec=_CODEC, asbytes=True)


def piece_count(path: Path) -> int:
    """Return the number of pieces in which a store keeps the file of a table. Such a file is never empty."""
    return -(-path.stat().st_size // _PIECE_BYTES)


class TableFiles:
    """Opens tables in the cache folder by the digest of their content.

    ``fetch`` provides the content of a missing file. If it is None, all files must exist.
    """

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch
        self._open: WeakValueDictionary[str, MappedTable] = WeakValueDictionary()

    def open(self, digest: str) -> MappedTable:
        table = self._open.get(digest)
        if table is None:
            table = self._open[digest] = _mapped(self.path(digest))
        return table

    def path(self, digest: str) -> Path:
        """Return the path of a table's rows. A missing file is fetched first."""
        path = _folder() / f"{digest}{_ROWS}"
        if not path.exists():
            self._get(digest)
        os.utime(path)
        return path

    def _get(self, digest: str) -> None:
        with draft_file() as draft:
            with draft.open("wb") as file:
                is_found = self._fetch is not None and self._fetch(digest, file)
            if not is_found or _digest_of(draft) != digest:
                raise TableMissing(f"the content of a table, {digest}, is neither on this machine nor in the store")
            keep_draft(draft)


@contextmanager
def draft_file() -> Iterator[Path]:
    """Create an empty file in the cache folder for the rows of a table. It is removed when the block ends.

    ``keep_draft`` moves it before.
    """
    folder = _folder()
    make_kept_folder(folder)
    handle, name = tempfile.mkstemp(_DRAFT, dir=folder)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def keep_draft(draft: Path) -> tuple[str, int]:
    """Move a file of a table's rows to its final path, and write the index beside it.

    Return the digest of the rows and -1. If a key is repeated, nothing is moved, and the second value is the first row
    that repeats a key.
    """
    form, rows = _read(draft)
    slots, repeated = slots_of(keys_in(form, rows))
    digest = _digest_of(draft)
    if repeated < 0:
        path = _folder() / f"{digest}{_ROWS}"
        with replacing(path.with_suffix(_INDEX), is_durable=False) as file:
            slots.tofile(file)
        draft.replace(path)
        note_use(path)
    return digest, repeated


def _mapped(path: Path) -> MappedTable:
    form, rows = _read(path)
    index = path.with_suffix(_INDEX)
    if not index.exists():
        with replacing(index, is_durable=False) as file:
            slots_of(keys_in(form, rows))[0].tofile(file)
    os.utime(index)
    return MappedTable.of_rows(form, rows, np.memmap(index, np.uint32, "r"))


def _read(path: Path) -> tuple[TableForm, pa.RecordBatch]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        return form_in(reader.schema), reader.get_batch(0)


def _digest_of(path: Path) -> str:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    with path.open("rb") as file:
        while part := file.read(_PIECE_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _folder() -> Path:
    return kept_folder("tables")
