"""Progress of long-running commands: sentences, or JSON lines for a program."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Protocol, TypeAlias

import typer

from service.cli.output import echo_json, standard_error
from streams import SystemClock, format_time

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
