"""The commands of ``forestall``, and how an error leaves the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from service.errors import ServiceOverloaded, ServiceUnreachable, StoreUnavailable
from streams import ForestallError

COMMANDS = (
    "serve",
    "status",
    "reshard",
    "backup",
    "restore",
    "demo",
    "streams",
    "event-types",
    "workflows",
    "constraints",
    "patterns",
    "webhooks",
    "keys",
    "replay",
    "feed",
    "alerts",
    "traces",
    "endings",
    "deviations",
    "dead-letters",
    "match",
    "check",
    "backtest",
    "backtests",
    "generate",
    "discover",
    "conformance",
    "doctor",
    "settings",
)

_REFUSED, _AWAY = 2, 3
_COMPLETING = "_FORESTALL_COMPLETE"
_TYPED = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")  # the one of bash, and that of the other shells


def build_app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line application.

    Args:
        names: The commands that it knows, each a function or a group of commands in the module of its name. Only their
            modules are imported: ``match`` must not wait for Spark.
    """
    app = _bare()
    for name in names:
        module = name.replace("-", "_")
        found = getattr(import_module(f"service.cli.{module}"), module)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def called_app() -> typer.Typer:
    """The application, with the command that this process is called for."""
    # house: allow environment: shells say there what is to be completed, which is no setting
    return _app_for(sys.argv[1:], os.environ)


def run(app: typer.Typer) -> None:
    """Run the command of this process: an error of this project is one sentence on standard error.

    The exit status is then 3 where the service, or its Redis, does not answer or takes no more for now, so that the
    same call may succeed later, and 2 else.
    """
    try:
        app(prog_name="forestall")
    except ForestallError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error[/red]: {escape(error.message)}")
        is_away = isinstance(error, (ServiceUnreachable, ServiceOverloaded, StoreUnavailable))
        sys.exit(_AWAY if is_away else _REFUSED)


def _app_for(arguments: Sequence[str], environment: Mapping[str, str]) -> typer.Typer:
    """An application that knows the command that is called or completed; all of them, where none is."""
    if _COMPLETING not in environment:
        first = arguments[:1]
        return build_app(first if first and first[0] in COMMANDS else COMMANDS)
    typed = next((environment[name].split() for name in _TYPED if name in environment), [])[1:2]
    if typed and typed[0] in COMMANDS:
        return build_app(typed)
    app = _bare()
    for name in COMMANDS:
        app.command(name)(_named)
    return app


def _bare() -> typer.Typer:
    app = typer.Typer(
        help="Complex event processing that knows the workflow behind the events.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_several)
    return app


def _named() -> None:
    """Stands for a command of which only the name is asked for."""


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"forestall {version('forestall')}")
        raise typer.Exit


def _several(
    _: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Complex event processing that knows the workflow behind the events."""
