"""A lock between processes. A process holds it until it releases the lock or ends."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

_POLL_S = 0.02


class FileLock:
    """A lock between processes on a file. The file is created if it is missing, and never removed.

    On a file system without locks, nothing is locked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self, patience_s: float) -> bool:
        """Take the lock. If another process holds it, wait up to ``patience_s``. Return whether it is held now."""
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
        """Release the lock. If it is not held, do nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
