"""The commands of ``forestall``, and how an error leaves the process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from service.cli.check import check
from service.cli.demo import demo
from service.cli.generate import generate
from service.cli.match import match
from service.cli.replay import replay
from service.cli.serve import serve
from streams import ForestallError

_COMMANDS: Mapping[str, Callable[..., Any]] = {
    "serve": serve,
    "demo": demo,
    "match": match,
    "check": check,
    "replay": replay,
    "generate": generate,
}


def build_app() -> typer.Typer:
    """The command line application."""
    app = typer.Typer(
        help="Complex event processing that knows the workflow behind the events.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name, command in _COMMANDS.items():
        app.command(name)(command)
    return app


def main() -> None:
    """Entry point: an error of this project is one sentence on standard error and exit status 2."""
    try:
        build_app()()
    except ForestallError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error[/red]: {escape(error.message)}")
        sys.exit(2)
