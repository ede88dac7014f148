"""Where a package keeps what it has made of its code for the next process: beside the compiled kernels.

That is below ``$NUMBA_CACHE_DIR``, or else beside the package's bytecode. Who reads such things runs them, so a folder
counts only if nobody but its owner and his group may write to it and the owner is this user or root.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def kept_folder(package: str, source: str) -> Path:
    """The folder of a package, there or not.

    Args:
        package: Its name.
        source: Any file of its code.
    """
    # house: allow environment: numba's own variable, which says where compiled things are
    top = os.environ.get("NUMBA_CACHE_DIR", "")
    return Path(top).resolve() / package if top else Path(source).resolve().with_name("__pycache__")


def make_kept_folder(folder: Path) -> None:
    """Make it if need be.

    Raises:
        OSError: It cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True, mode=0o700)


def is_trusted(folder: Path) -> bool:
    """Whether nobody else can have put anything into a folder, or another folder in its place.

    Raises:
        OSError: It cannot be looked at.
    """
    for place in (folder, folder.parent):
        found = place.stat()
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
            return False
    return True
