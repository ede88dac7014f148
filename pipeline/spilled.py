"""Files of shard states that are partly on disk: where they are stored, and when they are removed.

The files are beside the snapshots, in a folder for each shard. So every process or machine that continues from a saved
state can reach the files that the state names. Before a state is stored as a snapshot or handed over, the list of its
files is written. If neither such a list nor the current state names a file, it is removed. Another process may still
have an older state in memory. If this state lacks a file, the process continues from a stored state.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pipeline.snapshots.stores import IN_REDIS
from pipeline.sources.options import EventLogOptions
from shards import Kind
from streams import SpilledFiles, replacing

_FOLDER = "spilled"
_LIST = ".list"


class SpilledStates:
    """The files with spilled parts of shard states, which are on disk instead of in memory, for one layout."""

    def __init__(self, options: EventLogOptions, kinds: Iterable[Kind]) -> None:
        self._folder = spill_folder(options)
        self._kinds = tuple(kinds)
        self._files: dict[int, SpilledFiles] = {}

    def kinds(self, shard: int, *, may_be_lost: bool = False) -> Mapping[str, Kind]:
        """Return the kinds of operators by name, with the shard's folder as the store for their files.

        With ``may_be_lost``, a missing file stops only the operators that need the file. Otherwise, it stops the shard.
        """
        folder = None if self._folder is None else self._folder / str(shard)
        files = self._files[shard] = SpilledFiles(folder, may_be_lost=may_be_lost)
        return {kind.name: kind.spilling_to(files) for kind in self._kinds}

    def keep(self, shard: int, position: str, names: Collection[str], *, is_durable: bool) -> None:
        """List the files of a state before the state is stored at a position, so that ``sweep`` keeps them.

        With ``is_durable``, the state is stored as a snapshot, so files are synced to disk. Raise ``StateLost`` if one
        is gone.
        """
        if self._folder is None or not names:
            return
        lists = self._lists(shard)
        lists.mkdir(parents=True, exist_ok=True)
        path = lists / f"{position}{_LIST}"
        with replacing(path, is_durable=False) as file:
            file.write("\n".join(sorted(names)).encode())
        if is_durable:
            files = self._files.setdefault(shard, SpilledFiles(self._folder / str(shard)))
            files.sync([*names, str(path.relative_to(files.folder))])

    def has_files(self, shard: int) -> bool:
        """Check whether a shard has files, or had some since the last cleanup."""
        return self._folder is not None and self._lists(shard).is_dir()

    def sweep(self, shard: int, positions: Collection[str], current: Collection[str]) -> None:
        """Remove the files of a shard that neither its current state nor a state stored at ``positions`` needs.

        ``current`` are the names of the current state's files.
        """
        if self._folder is None:
            return
        needed = set(current)
        for path in self._lists(shard).glob("*"):
            if path.suffix == _LIST and path.stem in positions:
                needed.update(path.read_text().splitlines())
            else:
                path.unlink(missing_ok=True)
        SpilledFiles(self._folder / str(shard)).keep_only(needed)
        if not needed:
            shutil.rmtree(self._folder / str(shard), ignore_errors=True)

    def take_over(
        self, shard: int, before: SpilledStates, from_shard: int, position: str, names: Collection[str]
    ) -> None:
        """Link or copy the files that a new shard's state needs from the folder of the shard that was divided.

        ``before`` has the files of the previous layout, and ``from_shard`` is the number of the divided shard.
        ``names`` are the files to take over. The new state is about to be stored at ``position``.
        """
        if self._folder is None or before._folder is None:
            return
        target = self._folder / str(shard)
        for name in names:
            target.mkdir(parents=True, exist_ok=True)
            source = before._folder / str(from_shard) / name
            (target / name).unlink(missing_ok=True)
            try:
                os.link(source, target / name)
            except OSError:
                shutil.copyfile(source, target / name)
        self.keep(shard, position, names, is_durable=True)

    def remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _lists(self, shard: int) -> Path:
        assert self._folder is not None
        return self._folder / str(shard) / "kept"


def spill_folder(options: EventLogOptions) -> Path | None:
    """Return the folder of the files, or None if snapshots are in Redis, because then machines share no folder."""
    if options.snapshots == IN_REDIS:
        return None
    folder = Path(options.snapshots)
    return (folder / f"generation-{options.generation}" if options.generation else folder) / _FOLDER
