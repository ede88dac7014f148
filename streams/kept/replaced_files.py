"""Files that are replaced as a whole: a reader sees either the old or the new content, never a mixture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, *, is_durable: bool = True) -> Iterator[BinaryIO]:
    """Write a file beside ``path``, and rename it to ``path`` when the block has ended without an error.

    The folder must exist. If ``is_durable`` is true, wait until the file and its name are on disk, so that they survive
    a crash of the machine.
    """
    draft = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        yield file
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)
    if is_durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
