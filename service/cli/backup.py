"""``forestall backup``: all data of a stopped service in one file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.markup import escape

from service.cli.inputs import progress_bar, standard_error
from service.observing.logs import configure_logs
from service.processes.data_folder import take_folder
from service.runtime import open_stores
from service.settings import load_settings
from service.upkeep.backup import back_up
from streams import SystemClock


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it contains secrets of webhooks.")],
    is_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Back up a stopped service: Redis, checkpoint and saved states, in one file."""
    settings = load_settings()
    configure_logs(settings.log_level)
    with (
        closing(take_folder(settings.data_dir)),
        open_stores(settings, as_it_is=True) as stores,
        progress_bar(f"writing {file.name}") as (progress, task),
    ):
        content = back_up(settings, stores, file, SystemClock(), lambda share: progress.update(task, completed=share))
    if is_json:
        result = {"file": str(file), "keys": content.keys, "files": content.files}
        typer.echo(orjson.dumps(result).decode())
    standard_error.print(
        f"[green]done[/green]: {content.keys:,} keys and {content.files:,} files in {escape(str(file))}; keep it from "
        "others, as it contains all events and the secrets of webhooks"
    )
