"""The commands of ``forestall``, and how an error leaves the process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer
from rich.console import Console
from rich.markup import escape

from streams import ForestallError

COMMANDS = (
    "serve",
    "reshard",
    "backup",
    "restore",
    "demo",
    "alerts",
    "match",
    "backtest",
    "check",
    "replay",
    "feed",
    "generate",
    "constraints",
    "discover",
    "conformance",
    "doctor",
    "settings",
    "keys",
)


def build_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line application.

    Args:
        names: The commands that it knows, each a function or a group of commands in the module of its name. Only their
            modules are imported: ``match`` must not wait for Spark.
    """
    app = typer.Typer(
        help="Complex event processing that knows the workflow behind the events.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_several)
    for name in names:
        found = getattr(import_module(f"service.cli.{name}"), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def main() -> None:
    """Entry point: an error of this project is one sentence on standard error and exit status 2."""
    wanted = sys.argv[1:2]
    try:
        build_app(wanted if wanted and wanted[0] in COMMANDS else COMMANDS)()
    except ForestallError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error[/red]: {escape(error.message)}")
        sys.exit(2)


def _several() -> None:
    """Complex event processing that knows the workflow behind the events."""
