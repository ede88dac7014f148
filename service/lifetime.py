"""Ends a supervised process with its supervisor."""

from __future__ import annotations

import os
import signal
import threading

_POLL_S = 1.0


def end_with_parent(parent: int) -> None:
    """Ask this process to end (SIGTERM) once ``parent`` is no longer its parent; watched by a daemon thread."""
    threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
