"""What commands say while something takes long: nothing is silent for more than three seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from streams.compiling import CompileProgress

LINES_REST_S = 2.0
"""Seconds between two lines where there is no terminal; callers say something about once a second."""


class Waiting:
    """Says what is waited for, and for how long: on a terminal one line that is rewritten, else a line now and then.

    Args:
        show: Shows a text in place of the one before.
        rest_s: Seconds between two texts.
        end: Takes the last text away.
    """

    def __init__(self, show: Callable[[str], None], rest_s: float, end: Callable[[], None] = lambda: None) -> None:
        self._show = show
        self._rest_s = rest_s
        self._begun = time.monotonic()
        self._shown_at: float | None = None
        self.end = end

    def __call__(self, text: str) -> None:
        """Say it, unless something was said just now."""
        now = time.monotonic()
        if self._shown_at is None or now >= self._shown_at + self._rest_s:
            self._shown_at = now
            self._show(f"{text} ({now - self._begun:.0f} s)")

    def compiling(self, progress: CompileProgress) -> None:
        """Say how far compiling is."""
        self(f"{progress.text}; once per machine")


@contextmanager
def waiting_on(console: Console) -> Iterator[Waiting]:
    """Waiting that is shown on a console until the block ends."""
    if not console.is_terminal:
        yield Waiting(lambda text: console.print(escape(text)), LINES_REST_S)
        return
    line = console.status("")

    def show(text: str) -> None:
        line.update(escape(text))
        line.start()

    try:
        yield Waiting(show, 0.0, line.stop)
    finally:
        line.stop()


def waiting_in(progress: Progress, task: TaskID, console: Console) -> Waiting:
    """Waiting that is shown in place of a bar's title, or as lines where there is no terminal."""
    if console.is_terminal:
        return Waiting(lambda text: progress.update(task, description=text), 0.0)
    return Waiting(lambda text: console.print(escape(text)), LINES_REST_S)
