"""Files of spilled rows. Each is written once, and its name is the checksum of its content.

So a saved state that names a file finds the original content in it, even after later writes. Processes that write the
same rows write the same file. This module does not know which files are needed. In a folder that the caller provides,
the owner of the saved states removes the files that no state names (``keep_only``). In a scratch folder, a file is
removed after its last use (``let_go``), unless a saved state names it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

from streams.errors import StateLost
from streams.kept.replaced_files import replacing

_SUFFIX = ".rows"
_DIGEST_BYTES = 20


class SpilledFiles:
    """A folder of files with rows that do not fit into memory. The name of a file is the checksum of its content.

    If ``folder`` is None, a scratch folder is used. The first file creates the folder. ``may_be_lost`` says whether the
    caller can continue without a lost file.
    """

    def __init__(self, folder: Path | None = None, *, may_be_lost: bool = False) -> None:
        self.may_be_lost = may_be_lost
        self._given = folder
        self._folder = folder
        self._users: Counter[str] = Counter()
        self._named: set[str] = set()
        self._verified: set[str] = set()
        self._synced: set[str] = set()

    def __reduce__(self) -> tuple[type[SpilledFiles], tuple[Path | None]]:
        """Pickle the folder that the caller provided. Without one, the other process makes its own scratch folder."""
        return SpilledFiles, (self._given,)

    @property
    def folder(self) -> Path:
        """The path of the folder. A scratch folder is created on first use."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="forestall-rows-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def write(self, content: bytes) -> str:
        """Write a file and return its name. Before ``sync``, a crash of the machine may lose the file."""
        name = _name_of(content)
        self._users[name] += 1
        self._verified.discard(name)
        self._synced.discard(name)
        path = self.folder / name  # an existing file may be damaged, so it is replaced
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(path, is_durable=False) as file:
            file.write(content)
        return name

    def sync(self, names: Iterable[str]) -> None:
        """Wait until files are on disk. Callers do so before a saved state names the files.

        Raises ``StateLost`` if a file cannot be opened.
        """
        unsynced = sorted(set(names) - self._synced)
        paths = [self.folder / name for name in unsynced]
        for path in [*paths, *sorted({path.parent for path in paths})]:
            try:
                handle = os.open(path, os.O_RDONLY)
            except OSError as error:
                raise StateLost(f"the file {path} of spilled rows cannot be read: {error}", file=path.name) from error
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        self._synced.update(unsynced)

    def use(self, name: str, size_bytes: int) -> None:
        """Count one more use of a file, because a loaded state names it.

        Raises ``StateLost`` if the file is missing or its size differs from ``size_bytes``.
        """
        path = self.folder / name
        actual_bytes = path.stat().st_size if path.is_file() else None
        if actual_bytes != size_bytes:
            fault = "is missing" if actual_bytes is None else f"has {actual_bytes} bytes, not {size_bytes}"
            raise StateLost(f"the file {path} of spilled rows {fault}", file=name)
        self._users[name] += 1

    def read(self, name: str, size_bytes: int) -> pa.Buffer:
        """Return the content of a file, mapped into memory. The first read verifies the checksum.

        Raises ``StateLost`` if the file is missing or damaged.
        """
        path = self.folder / name
        try:
            with pa.memory_map(str(path)) as file:
                content = file.read_buffer(size_bytes)
        except (OSError, pa.ArrowException) as error:
            raise StateLost(f"the file {path} of spilled rows cannot be read: {error}", file=name) from error
        if name not in self._verified:
            if _name_of(content) != name:
                raise StateLost(f"the file {path} of spilled rows is damaged: its checksum is another one", file=name)
            self._verified.add(name)
        return content

    def let_go(self, name: str) -> None:
        """End one use of a file.

        After its last use, a file of a scratch folder that no saved state names is removed.
        """
        self._users[name] -= 1
        if self._users[name] <= 0:
            del self._users[name]
            self._verified.discard(name)
            self._synced.discard(name)
            if self._given is None and name not in self._named:
                (self.folder / name).unlink(missing_ok=True)

    def note_named(self, names: Iterable[str]) -> None:
        """Record that a saved state names these files, so that ``let_go`` does not remove them."""
        if self._given is None:
            self._named.update(names)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all files except these. Unfinished files of processes that died are removed as well."""
        needed = set(names)
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if path.name not in needed and path.suffix in (_SUFFIX, ".tmp"):
                path.unlink(missing_ok=True)


def _name_of(content: bytes | pa.Buffer) -> str:
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest() + _SUFFIX
