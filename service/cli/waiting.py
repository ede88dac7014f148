"""Progress of long commands, so that none is silent for more than three seconds."""

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
"""Seconds between two lines if the output is not a terminal. Callers report about once a second."""

_NEW_LINE = "\r\x1b[2K"  # return to the line's start, and clear the line


class Bar(Protocol):
    """A progress bar, such as rich's."""

    def update(self, task: Any, /, *, description: str | None = None, completed: float | None = None) -> None:
        """Show a new title, and move the bar to a share from 0 to 1. A parameter that is None changes nothing."""
        ...


class Waiting:
    """Shows what the command waits for, and for how long.

    On a terminal, the text is one line that is rewritten. Otherwise, each text is a further line. ``show`` replaces the
    previous text, at most every ``rest_s`` seconds, and ``clear`` removes the last text.
    """

    def __init__(self, show: Callable[[str], None], rest_s: float, clear: Callable[[], None] = lambda: None) -> None:
        self._show = show
        self._rest_s = rest_s
        self._begun = time.monotonic()
        self._shown_at: float | None = None
        self.clear = clear

    def __call__(self, text: str) -> None:
        """Show a text, unless the previous one was shown less than ``rest_s`` seconds ago."""
        now = time.monotonic()
        if self._shown_at is None or now >= self._shown_at + self._rest_s:
            self._shown_at = now
            self._show(f"{text} ({now - self._begun:.0f} s)")

    def compiling(self, progress: CompileProgress) -> None:
        self(f"{progress.text}; once per machine")


@contextmanager
def waiting_on(stream: IO[str] | None = None) -> Iterator[Waiting]:
    """Yield a ``Waiting`` that shows what the command waits for, on ``stream`` or by default on standard error.

    At the end of the block, the text is removed.
    """
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
    """Print ``what`` every two seconds while the block runs.

    The text describes the work, as in "matching 1,000 events".
    """
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
    with suppress(OSError):
        print(text, file=out, flush=True)


def waiting_in(bar: Bar, task: Any, *, is_shown: bool) -> Waiting:
    """Return a ``Waiting`` whose texts users can see while a command waits.

    If the bar is visible, a text is the title of the bar. Otherwise, it is a line on standard error.
    """
    if is_shown:
        return Waiting(lambda text: bar.update(task, description=text), 0.0)
    return Waiting(lambda text: _print_line(text, sys.stderr), LINES_REST_S)
