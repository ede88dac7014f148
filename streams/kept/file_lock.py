"""A lock between processes, held by at most one of them until it lets go or ends."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

_POLL_S = 0.02


class FileLock:
    """A lock on a file, which is made if need be and stays.

    Args:
        path: The file. On a file system without locks, taking the lock has no effect.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self, patience_s: float) -> bool:
        """Wait for the lock and take it.

        Args:
            patience_s: How long to wait for a process that holds it.

        Returns:
            Whether it is held now.
        """
        if self._file is not None:
            return True
        deadline = time.monotonic() + patience_s
        with suppress(OSError):
            file = self._path.open("ab")
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        file.close()
                        return False
                    time.sleep(_POLL_S)
                else:
                    self._file = file
                    return True
        return False

    def release(self) -> None:
        """Let go; nothing happens where it is not held."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
