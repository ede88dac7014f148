"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import typer


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


def printable(text: str) -> str:
    """A text without control characters."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
