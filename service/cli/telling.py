"""What commands that run until they are interrupted tell meanwhile: sentences, or JSON lines for a program."""

from __future__ import annotations

from typing import Annotated, Any, Protocol, TypeAlias

import orjson
import typer

from service.cli.inputs import told
from streams import SystemClock, format_time

EventsAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="What happens as JSON, one line each, on standard output.")
]


class Tell(Protocol):
    """Tells what happens."""

    def __call__(self, event: str, sentence: str, **fields: Any) -> None:
        """Tell it.

        Args:
            event: What it is, for a program.
            sentence: The same for people, with markup.
            fields: What a program is told besides.
        """


def telling(*, is_json: bool) -> Tell:
    """How to tell: a sentence on standard error, or one JSON object a line on standard output, written at once."""
    clock = SystemClock()

    def tell(event: str, sentence: str, **fields: Any) -> None:
        if is_json:
            typer.echo(orjson.dumps({"event": event, "at": format_time(clock.now_us()), **fields}).decode())
        else:
            told.print(sentence)

    return tell
