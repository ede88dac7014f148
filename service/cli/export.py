"""``forestall export``: the running service as a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, Url, calling
from service.cli.output import printable, standard_error
from service.projects import export_project


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; new, or empty.")],
    url: Url = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Export the resources of the running service as a project; applying it changes nothing."""
    with calling(url, api_key) as client:
        files = export_project(client, folder)
    for file in files:
        typer.echo(printable(str(file)))
    standard_error.print(f"[green]done[/green]: {len(files)} files in {escape(printable(str(folder)))}")
