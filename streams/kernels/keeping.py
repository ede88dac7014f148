"""The cache of compiled kernels: in this user's cache folder, under a digest of all kernel sources.

Numba's own cache depends on the folder of the source, and if several processes need the same kernel, all of them
compile it. Here a kernel has the same path for all checkouts: ``kernels/<digest>/<module>.<name>``. The digest covers
the sources of all kernels and everything else that machine code depends on, so an existing entry is always valid. A
process that needs a missing entry takes the lock beside the entry. Other processes wait, and then load the code that
this process has compiled.
"""

from __future__ import annotations

import logging
import os
import pickle  # noqa: TID251 - for the error of a damaged file; numba pickles, in a folder that only this user writes
import platform
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import __version__ as numba_version
from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target

from streams.kept.file_lock import FileLock
from streams.kept.folder import kept_folder, make_kept_folder, note_use, require_trusted
from streams.kept.kernel_digest import digest_for, kernel_digest

_KIND = "kernels"
_NEEDS = ".needs"
_ENTRY = (".nbi", ".1.nbc")  # numba's files: index, code of its first signature
_PATIENCE_S = 180.0  # longer than any compilation; if a lock is held longer, its process hangs


class KeptKernel(FunctionCache):
    """The cache entry of one kernel, in the interface that numba requires of a cache.

    The source is read on construction, before it can change. The folder is created when code is first requested.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._name = entry_name(function)
        self._stamp = _source_digest(function.__code__.co_filename)
        self._sources = digest_for(function.__module__, function.__code__.co_filename)
        self._folder: Path | None = None
        self._lock: FileLock | None = None
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder of the compiled code. It is None until code is requested, or if code cannot be stored on disk."""
        return None if self._folder is None else str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for a signature, or None if this process has to compile the kernel.

        Without stored code, this method takes the lock of the entry. If another process holds the lock because it
        compiles the kernel, this method waits and then loads its code. Unlike numba's own cache, it does not import the
        compiler's modules, which would take longer than loading the code. Stored code counts no references, so it does
        not need these modules.
        """
        if not self._enabled or not self._open():
            return None
        code = self._load(sig, target_context)
        if code is None and self._lock is not None:
            self._lock.take(_PATIENCE_S)
            code = self._load(sig, target_context)
            if code is not None:
                self._lock.release()
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code and release the lock. If storing fails, each process compiles its own code."""
        if self._lock is None:
            return
        try:
            self._save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _say_not_kept(str(error))
        finally:
            self._lock.release()

    def is_being_compiled(self) -> bool:
        """Return whether another process is compiling the kernel."""
        if not self._open() or self._lock is None:
            return False
        is_free = self._lock.take(0.0)
        self._lock.release()
        return not is_free

    def flush(self) -> None:
        """Remove the stored code."""
        if self._open():
            self._cache_file.flush()  # type: ignore[no-untyped-call]

    def _open(self) -> bool:
        """Choose the folder on the first call. Return whether compiled code can be stored there."""
        if self._lock is None:
            try:
                folder = _made_folder(self._sources)
            except OSError as error:
                _say_not_kept(str(error))
                return False
            self._folder, self._impl = folder, _Code(folder)
            self._lock = FileLock(folder / f"{self._name}.lock")
            self._cache_file = IndexDataCacheFile(str(folder), self._name, self._stamp)  # type: ignore[no-untyped-call]
        return True

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (EOFError, pickle.UnpicklingError):  # the machine lost power during a write
            self.flush()
            return None


class _Code(CompileResultCacheImpl):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locator = self
        self._lineno = 0
        self._py_file = ""

    def ensure_cache_path(self) -> None:
        make_kept_folder(self._folder)


def entry_name(function: Callable[..., Any]) -> str:
    """Return the name of a kernel in the cache: its module and qualified name."""
    return f"{function.__module__}.{function.__qualname__}"


def kernels_folder() -> Path:
    """Return the folder of the compiled kernels of these sources for this machine. The folder may be missing."""
    return _folder(kernel_digest())


def kept_of(names: Iterable[str]) -> frozenset[str]:
    """Return those of the kernel ``names`` whose compiled code is stored."""
    try:
        files = {entry.name for entry in os.scandir(kernels_folder())}
    except OSError:
        return frozenset()
    return frozenset(name for name in names if all(f"{name}{ending}" in files for ending in _ENTRY))


def keep_needs(exercise: str, names: Iterable[str]) -> None:
    """Store the names of the kernels that an exercise needs."""
    try:
        place = _made_folder(kernel_digest()) / f"{exercise}{_NEEDS}"
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        draft.write_text("".join(f"{name}\n" for name in dict.fromkeys(names)), encoding="utf-8")
        draft.replace(place)
    except OSError as error:
        _say_not_kept(str(error))


def kept_needs(exercise: str) -> frozenset[str] | None:
    """Return the names of the kernels that an exercise needs, or None if they are not stored."""
    try:
        folder = kernels_folder()
        require_trusted(folder)
        return frozenset((folder / f"{exercise}{_NEEDS}").read_text(encoding="utf-8").split())
    except OSError:
        return None


def is_compiling_off() -> bool:
    """Return whether ``NUMBA_DISABLE_JIT`` is set, so that kernels run as plain Python."""
    flags: Any = config
    return bool(flags.DISABLE_JIT)


def _folder(sources: str) -> Path:
    return kept_folder(_KIND) / _place_name(sources)


def _made_folder(sources: str) -> Path:
    folder = _folder(sources)
    make_kept_folder(folder)
    note_use(folder)
    return folder


@cache
def _place_name(sources: str) -> str:
    """Hash everything that machine code depends on: sources, versions, compiler flags, and the processor's features.

    With ``NUMBA_CPU_NAME=generic``, all processors of an architecture have the same result.
    """
    flags: Any = config
    parts = (
        sources,
        (numba_version, np.__version__, platform.python_version()),
        cpu_target.target_context.codegen().magic_tuple(),
        (flags.BOUNDSCHECK, flags.OPT, flags.DEBUGINFO_DEFAULT),
    )
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@cache
def _source_digest(file: str) -> str:
    path = Path(file)
    return blake2b(path.read_bytes(), digest_size=8).hexdigest() if path.is_file() else ""


@cache
def _say_not_kept(reason: str) -> None:
    logging.getLogger(__name__).warning(
        "compiled kernels cannot be kept, so each process compiles its own: %s; name a folder with NUMBA_CACHE_DIR",
        reason,
    )
