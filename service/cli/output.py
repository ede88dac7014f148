"""Output of commands: results on standard output, everything else on standard error; progress of long-running ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Protocol, TypeAlias

import orjson
import typer

from streams import SystemClock, format_time


class _StandardError:
    """Standard error. Rich is imported with the first text that has marks, as most calls write none."""

    def print(self, text: str) -> None:
        """Write a line with the marks of rich."""
        from rich.console import Console  # noqa: PLC0415

        Console(stderr=True, soft_wrap=True, highlight=False).print(text)

    def say(self, text: str) -> None:
        """Write a line without marks."""
        typer.echo(printable(text), err=True)

    def notice(self, text: str) -> None:
        """Write a notice about a call that succeeds; the text has no marks."""
        self._write("notice", text)

    def warning(self, text: str) -> None:
        """Write a warning about a call that succeeds; the text has no marks."""
        self._write("warning", text)

    def _write(self, kind: str, text: str) -> None:
        if not sys.stderr.isatty():
            typer.echo(f"{kind}: {text}", err=True)
            return
        from rich.markup import escape  # noqa: PLC0415

        self.print(f"[yellow]{kind}[/yellow]: {escape(text)}")


standard_error = _StandardError()


def tell_notices(notices: Mapping[str, Sequence[str]]) -> None:
    """Write notices about operators: sentences by the operator's name."""
    for name, sentences in notices.items():
        for sentence in sentences:
            standard_error.notice(f"{name}: {sentence}")


def echo_json(document: Any) -> None:
    """Print a result as one line of JSON."""
    typer.echo(orjson.dumps(document).decode())


def echo_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows of texts in aligned columns below their headings."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    """A text without control characters."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


EventsAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print progress as JSON lines on standard output.")
]


class Tell(Protocol):
    """Prints an event of a command."""

    def __call__(self, event: str, sentence: str, **fields: Any) -> None:
        """Print an event: its name and members for programs, or the same sentence for people, with markup."""


def telling(*, is_json: bool) -> Tell:
    """A function that prints sentences on standard error, or JSON lines on standard output; a full disk loses them."""
    clock = SystemClock()

    def tell(event: str, sentence: str, **fields: Any) -> None:
        with suppress(OSError):
            if is_json:
                echo_json({"event": event, "at": format_time(clock.now_us()), **fields})
            else:
                standard_error.print(sentence)

    return tell
