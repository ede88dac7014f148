"""Progress of commands that take long: none is silent for more than three seconds."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import IO, Any, Protocol

from streams.compiling import CompileProgress

LINES_REST_S = 2.0
"""Seconds between two lines where there is no terminal; callers say something about once a second."""

_NEW_LINE = "\r\x1b[2K"  # to the line's beginning, and clear it


class Bar(Protocol):
    """Shows the progress of some work, such as a bar of rich."""

    def update(self, task: Any, /, *, description: str | None = None, completed: float | None = None) -> None:
        """Show a title, or a share, from 0 to 1; None: as before."""
        ...


class Waiting:
    """Shows what the command waits for, and for how long: on a terminal one rewritten line, else a line now and then.

    ``show`` replaces the text before, at most every ``rest_s`` seconds; ``clear`` removes the last text.
    """

    def __init__(self, show: Callable[[str], None], rest_s: float, clear: Callable[[], None] = lambda: None) -> None:
        self._show = show
        self._rest_s = rest_s
        self._begun = time.monotonic()
        self._shown_at: float | None = None
        self.clear = clear

    def __call__(self, text: str) -> None:
        """Show a text, unless one was shown just now."""
        now = time.monotonic()
        if self._shown_at is None or now >= self._shown_at + self._rest_s:
            self._shown_at = now
            self._show(f"{text} ({now - self._begun:.0f} s)")

    def compiling(self, progress: CompileProgress) -> None:
        """Show the progress of compiling."""
        self(f"{progress.text}; once per machine")


@contextmanager
def waiting_on(stream: IO[str] | None = None) -> Iterator[Waiting]:
    """Waiting that is shown on a stream (default: standard error) until the block ends."""
    out = stream or sys.stderr
    if not out.isatty():
        yield Waiting(lambda text: _print_line(text, out), LINES_REST_S)
        return
    has_line = False

    def write(text: str) -> None:
        nonlocal has_line
        if text or has_line:
            out.write(_NEW_LINE + text[: shutil.get_terminal_size().columns - 1])
            out.flush()
        has_line = bool(text)

    try:
        yield Waiting(write, 0.0, lambda: write(""))
    finally:
        write("")


@contextmanager
def working(what: str, stream: IO[str] | None = None) -> Iterator[None]:
    """Name the work of a block (``what``, such as "matching 1,000 events") now and then, from its third second on."""
    over = Event()
    with waiting_on(stream) as waiting:

        def say() -> None:
            while not over.wait(LINES_REST_S):
                waiting(what)

        thread = Thread(target=say, name="working", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _print_line(text: str, out: IO[str]) -> None:
    """Print a line; lost if it cannot be written, because the disk is full."""
    with suppress(OSError):
        print(text, file=out, flush=True)


def waiting_in(bar: Bar, task: Any, *, is_shown: bool) -> Waiting:
    """Waiting that is shown in place of a bar's title; as lines on standard error where the bar is not shown."""
    if is_shown:
        return Waiting(lambda text: bar.update(task, description=text), 0.0)
    return Waiting(lambda text: _print_line(text, sys.stderr), LINES_REST_S)
