"""Waiting for what other processes and threads do, as long as it can still come."""

from __future__ import annotations

import time
from collections.abc import Callable
from subprocess import Popen
from threading import Event
from typing import Any, TypeVar

import pytest

from service.processes.temporary import TemporaryService, watch

T = TypeVar("T")
PATIENCE_S = 600.0  # a busy machine gives a process a tenth of a core


def until(
    condition: Callable[[], T | None],
    what: str = "a condition",
    watched: TemporaryService | Popen[Any] | None = None,
    pause_s: float = 0.05,
) -> T:
    """Wait until a condition holds, and return its value.

    Args:
        condition: Evaluated again and again.
        what: The subject of the wait, for the message.
        watched: A process or a service without which the condition never holds: its end ends the wait.
        pause_s: Time between two evaluations.
    """
    reason_of, deadline = end_of(watched), time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if reason := reason_of() or (time.monotonic() > deadline and f"{PATIENCE_S:.0f} s are over"):
            pytest.fail(f"waited for {what}: {reason}")
        Event().wait(pause_s)
    return found


def end_of(watched: TemporaryService | Popen[Any] | None) -> Callable[[], str]:
    """A function whose value says why a process or a service does nothing any more; empty while it lives."""
    if isinstance(watched, TemporaryService):
        return watch(watched.supervisor)
    return lambda: "" if watched is None or watched.poll() is None else f"the process ended with {watched.returncode}"
