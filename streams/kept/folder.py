"""The cache folder of this user and machine, with files that one process makes from the code for later processes.

The folder is ``forestall`` in the platform's cache folder, or the folder that ``NUMBA_CACHE_DIR`` names. Its files are
compiled kernels, the parser's tables, and an archive of Java classes. All commands, checkouts and data folders share
them. A process executes these files, so it uses the folder only if no user but its own and root can have written to it.
Missing files are created again, so the folder may be deleted at any time.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import uuid
from contextlib import suppress
from pathlib import Path

from streams.errors import KeptFolderRefused

_PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_UNUSED_S = 30 * 86_400
_GONE = ".gone-"


def kept_top() -> Path:
    """Return the top of this user's cache folder, which may be missing; raises ``OSError`` without a home directory."""
    # house: allow environment: numba's own variable, which says where compiled things are
    setting = os.environ.get("NUMBA_CACHE_DIR", "")
    return Path(setting).resolve() if setting else _cache_folder() / "forestall"


def kept_folder(kind: str) -> Path:
    """Return the folder in the cache for one kind of files, such as ``kernels``. The folder may be missing."""
    return kept_top() / kind


def make_kept_folder(folder: Path) -> None:
    """Create a folder that only this user may access, unless it exists.

    Raises ``KeptFolderRefused`` if other users may write to the folder.
    """
    missing = [folder, *(parent for parent in folder.parents if not parent.exists())]
    for place in reversed(dict.fromkeys(missing)):
        place.mkdir(exist_ok=True, mode=_PRIVATE)
    require_trusted(folder)


def require_trusted(folder: Path) -> None:
    """Raise ``KeptFolderRefused`` if another user can have written to a folder, or can have replaced the folder."""
    top = kept_top()
    _require_own(folder, _OTHERS_WRITE)
    for place in folder.parents:
        is_sticky = place.stat().st_mode & stat.S_ISVTX  # in a sticky folder, users can replace only their own files
        _require_own(place, 0 if is_sticky else stat.S_IWOTH)
        if place == top:
            break


def note_use(place: Path) -> None:
    """Mark a file or folder as used, and remove its siblings that were not used for 30 days.

    Several processes may do this at once while others use the remaining files. A file or folder is renamed before it is
    removed, so other processes see it as a whole or not at all. A process that misses it creates it again.
    """
    with suppress(OSError):
        os.utime(place)
        now = place.stat().st_mtime
        for sibling in place.parent.iterdir():
            with suppress(OSError):
                if now - sibling.stat().st_mtime > _UNUSED_S:
                    _remove(sibling)


def _remove(place: Path) -> None:
    doomed = place
    if not place.name.startswith(_GONE):
        doomed = place.with_name(f"{_GONE}{uuid.uuid4().hex}")
        place.rename(doomed)
    if doomed.is_dir():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink(missing_ok=True)


def _require_own(place: Path, forbidden: int) -> None:
    status = place.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise _refused(place, f"belongs to user {status.st_uid}, not to user {os.geteuid()}, who would run it")
    if status.st_mode & forbidden:
        raise _refused(place, "can be written by other users, whose code would be run")


def _cache_folder() -> Path:
    try:
        home = Path.home()
    except RuntimeError as error:
        raise FileNotFoundError(f"no folder for caches: {error}; set NUMBA_CACHE_DIR") from error
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    # house: allow environment: the platform's own variable for the folder of caches (XDG Base Directory)
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return folder if folder.is_absolute() else home / ".cache"


def _refused(place: Path, reason: str) -> KeptFolderRefused:
    return KeptFolderRefused(
        f"{place} holds compiled code and {reason}; name another folder with NUMBA_CACHE_DIR, on machines of a cluster "
        "with FORESTALL_SPARK__WORKER_FOLDER",
        folder=str(place),
    )
