"""``forestall settings``: all settings, with their current values and where they come from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from service.cli.output import echo_json
from service.settings import load_settings
from service.settings_table import setting_rows, unknown_variables


def warn_of_unknown() -> None:
    """Print a warning for each environment variable that looks like a setting but is none."""
    for fault in unknown_variables():
        typer.echo(f"warning: {fault}", err=True)


def settings(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with types and defaults.")] = False,
) -> None:
    """Print every setting with its current value and source; secrets are hidden."""
    rows = setting_rows(load_settings())
    warn_of_unknown()
    if json:
        echo_json([asdict(row) for row in rows])
        return
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(row.variable) for row in rows)
    for row in rows:
        mark, colour = ("environment", "green") if row.is_set else ("default", "dim")
        console.print(f"{row.variable:{width}}  [{colour}]{mark:11}[/{colour}]  {escape(row.value or '')}")
