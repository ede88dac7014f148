"""The data folder: its lock, as it belongs to one service at a time, and the name of the folder of feeds in it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from service.errors import DataFolderUnusable
from service.settings import PREFIX

FEEDS_FOLDER = "feeds"


def take_folder(folder: Path, advice: str) -> IO[str]:
    """Lock a data folder until the returned file is closed.

    Raises ``DataFolderUnusable`` with the advice if another process of a service uses the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "serve.lock").open("a+")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataFolderUnusable(
            f"the data folder {folder} cannot be used ({reason}); name a writable one with {PREFIX}DATA_DIR"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise DataFolderUnusable(
            f"the data folder {folder} is in use by another forestall process: {advice}"
        ) from error
    return lock
