"""A lock between processes, held by at most one of them until it releases the lock or ends."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

_POLL_S = 0.02


class FileLock:
    """A lock on a file, which is created if missing and never removed.

    On a file system without locks, taking the lock has no effect.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def take(self, patience_s: float) -> bool:
        """Wait for the lock and take it; returns whether this process holds it now.

        ``patience_s``: how long to wait for a process that holds it.
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
        """Release the lock; no effect if it is not held."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
