"""The removal of folders that may be symbolic links, because users keep checkpoints and states on another disk."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it exists. A symbolic link or a mount point stays, and only its contents are removed.

    Raises ``OSError`` if contents cannot be removed.
    """
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    with suppress(OSError):
        folder.rmdir()
