"""Snapshots as files, one folder per shard."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from streams import replacing


class FolderSnapshots:
    """Snapshots as files ``<shard>/<position>.state``; a file appears whole or not at all.

    The folder is created on the first write. ``is_durable``: sync files to disk; without, a crash of the machine may
    lose or damage them.
    """

    def __init__(self, folder: Path, *, is_durable: bool) -> None:
        self._folder = folder
        self._is_durable = is_durable

    def write(self, shard: int, position: str, body: bytes) -> None:
        path = self._path(shard, position)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, is_durable=self._is_durable) as file:
            file.write(body)

    def read(self, shard: int, position: str) -> bytes | None:
        try:
            return self._path(shard, position).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, shard: int, position: str) -> bool:
        return self._path(shard, position).is_file()

    def remove(self, shard: int, position: str) -> None:
        self._path(shard, position).unlink(missing_ok=True)

    def positions(self, shard: int) -> list[str]:
        """The positions of a shard's files, in no order."""
        return [path.stem for path in (self._folder / str(shard)).glob("*.state")]

    def keep_only(self, shard: int, positions: tuple[str, ...]) -> None:
        """Remove all other files of a shard, including unfinished ones of dead processes."""
        kept = {f"{position}.state" for position in positions}
        for path in (self._folder / str(shard)).glob("*"):
            if path.name not in kept:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _path(self, shard: int, position: str) -> Path:
        return self._folder / str(shard) / f"{position}.state"
