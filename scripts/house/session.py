"""Plugins for test runs: output during silence, a time limit, and the release of memory."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest


class Heartbeat:
    """Shows the running tests whenever no test has finished for some seconds.

    Args:
        say: The function that shows a line.
        silence_s: Seconds without a finished test after which the running tests are shown.
    """

    def __init__(self, say: Callable[[str], object], silence_s: float = 5.0) -> None:
        self._say, self._silence_s = say, silence_s
        self._began: dict[str, float] = {}
        self._shown = time.monotonic()
        self._ended = threading.Event()

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._began[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._shown = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._began.pop(nodeid, None)

    def pytest_sessionfinish(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(self._silence_s / 5):
            now = time.monotonic()
            if now - self._shown >= self._silence_s:
                self._shown = now
                tests = [f"{name}, {now - began:.0f} s" for name, began in self._began.copy().items()]
                self._say("; ".join(tests) or "collecting the tests")


def line_writer() -> Callable[[str], object]:
    """Return a function that writes a line to the current standard output, even while a test's output is captured."""
    out = os.dup(1)
    return lambda text: os.write(out, f"\n  ... {text}\n".encode())


class Bound:
    """Interrupts the tests of this process, as Ctrl+C does, when a time limit has passed.

    Args:
        seconds: The time limit in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._interrupt)

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores the signal
        self._timer.daemon = True
        self._timer.start()

    def pytest_sessionfinish(self) -> None:
        self._timer.cancel()

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)


def slow_files_first(items: list[pytest.Item]) -> None:
    """Move files with slow tests to the front, in their order.

    At the end, one process would run them while others idle.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in slow)


def release_memory() -> None:
    """Return freed memory to the operating system.

    Without this call, malloc and Arrow keep freed memory, so the process would grow with each large test.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
