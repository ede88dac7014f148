"""``forestall restore``: brings a service back to the state of its backup."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import orjson
import typer

from service.cli.inputs import progress_bar, standard_error
from service.observing.logs import configure_logs
from service.processes.data_folder import take_folder
from service.runtime import open_stores
from service.settings import load_settings
from service.upkeep.backup import restore as bring_back
from streams import SystemClock, format_time


def restore(
    file: Annotated[Path, typer.Argument(help="The file that forestall backup wrote.")],
    replace: Annotated[bool, typer.Option("--replace", help="Delete all present data first, for good.")] = False,
    is_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Restore a backup; the whole file is checked before anything is changed."""
    settings = load_settings()
    configure_logs(settings.log_level)
    with (
        closing(take_folder(settings.data_dir)),
        open_stores(settings, as_it_is=True) as stores,
        progress_bar(f"reading {file.name}") as (progress, task),
    ):
        content = bring_back(
            settings,
            stores,
            file,
            lambda share: progress.update(task, completed=share),
            clock=SystemClock(),
            replace=replace,
        )
    if is_json:
        result = {"keys": content.keys, "files": content.files, "made_at": format_time(content.made_us)}
        typer.echo(orjson.dumps(result).decode())
    standard_error.print(
        f"[green]done[/green]: {content.keys:,} keys and {content.files:,} files of {format_time(content.made_us)}; "
        "start the service again"
    )
