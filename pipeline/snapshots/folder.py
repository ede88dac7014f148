"""Snapshots as files, one folder per shard."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class FolderSnapshots:
    """Files ``<shard>/<position>.state``; each appears whole or not at all.

    Args:
        folder: Made when it is first written to.
        is_durable: Wait until the disk has what is written; without, a crash of the machine may lose or damage it.
    """

    def __init__(self, folder: Path, *, is_durable: bool) -> None:
        self._folder = folder
        self._is_durable = is_durable

    def write(self, shard: int, position: str, body: bytes) -> None:
        """Keep the bytes; writing the same again changes nothing."""
        path = self._path(shard, position)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        with draft.open("wb") as file:
            file.write(body)
            if self._is_durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if self._is_durable:
            _sync_folder(path.parent)

    def read(self, shard: int, position: str) -> bytes | None:
        """The bytes, if they are there."""
        try:
            return self._path(shard, position).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, shard: int, position: str) -> bool:
        """Whether the bytes are there."""
        return self._path(shard, position).is_file()

    def remove(self, shard: int, position: str) -> None:
        """Forget the bytes, if they are there."""
        self._path(shard, position).unlink(missing_ok=True)

    def positions(self, shard: int) -> list[str]:
        """What is there of a shard, in no order."""
        return [path.stem for path in (self._folder / str(shard)).glob("*.state")]

    def keep_only(self, shard: int, positions: tuple[str, ...]) -> None:
        """Remove all other files of a shard, unfinished ones of processes that died included."""
        kept = {f"{position}.state" for position in positions}
        for path in (self._folder / str(shard)).glob("*"):
            if path.name not in kept:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _path(self, shard: int, position: str) -> Path:
        return self._folder / str(shard) / f"{position}.state"


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
