"""Output of commands: results on standard output, and notices, warnings and progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Protocol, TypeAlias

import orjson
import typer

from streams import SystemClock, format_time


class _StandardError:
    """Writes to standard error. Only ``print`` takes rich's markup.

    Rich is imported when the first text with markup is printed, which most calls never do.
    """

    def print(self, text: str) -> None:
        from rich.console import Console  # noqa: PLC0415

        Console(stderr=True, soft_wrap=True, highlight=False).print(text)

    def say(self, text: str) -> None:
        typer.echo(printable(text), err=True)

    def notice(self, text: str) -> None:
        self._write("notice", text)

    def warning(self, text: str) -> None:
        self._write("warning", text)

    def _write(self, kind: str, text: str) -> None:
        if not sys.stderr.isatty():
            typer.echo(f"{kind}: {text}", err=True)
            return
        from rich.markup import escape  # noqa: PLC0415

        self.print(f"[yellow]{kind}[/yellow]: {escape(text)}")


standard_error = _StandardError()


def tell_notices(notices: Mapping[str, Sequence[str]]) -> None:
    """Print notices about operators. ``notices`` maps operators' names to sentences."""
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


def counted(count: int, noun: str, plural: str = "", form: str = "") -> str:
    """Return a number with its noun: ``noun`` if the number is 1, otherwise ``plural``, by default ``noun`` with an s.

    ``form`` is the format of the number, such as ``,`` for separators of thousands.
    """
    return f"{count:{form}} {noun if count == 1 else plural or f'{noun}s'}"


def printable(text: str) -> str:
    """Escape the control characters of a text."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


EventsAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print progress as JSON lines on standard output.")
]


class Tell(Protocol):
    """A function that prints a progress event of a command."""

    def __call__(self, event: str, sentence: str, **fields: Any) -> None:
        """Print an event. Programs get its name and its fields, and users get the sentence, which may have markup."""


def telling(*, is_json: bool) -> Tell:
    """Return a function that prints the progress of a command.

    With ``is_json``, it prints JSON lines on standard output. Otherwise it prints sentences on standard error. Write
    errors are ignored.
    """
    clock = SystemClock()

    def tell(event: str, sentence: str, **fields: Any) -> None:
        with suppress(OSError):
            if is_json:
                echo_json({"event": event, "at": format_time(clock.now_us()), **fields})
            else:
                standard_error.print(sentence)

    return tell
