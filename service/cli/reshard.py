"""``forestall reshard``: more shards for a stopped service."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import orjson
import typer

from pipeline import check_java
from service.cli.inputs import standard_error
from service.observing.logs import configure_logs
from service.processes.data_folder import take_folder
from service.runtime import open_stores
from service.settings import load_settings
from service.upkeep.resharding import reshard as divide_log
from streams import MAX_SHARDS


def reshard(
    shards: Annotated[
        int, typer.Option(min=1, max=MAX_SHARDS, help="New number of shards, a multiple of the present one.")
    ],
    is_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Increase the number of shards of a stopped service."""
    check_java()
    settings = load_settings()
    configure_logs(settings.log_level)
    with closing(take_folder(settings.data_dir)), open_stores(settings) as stores:
        layout = divide_log(settings, stores, shards, lambda text: standard_error.print(f"{text} ..."))
    if is_json:
        typer.echo(orjson.dumps({"shards": layout.shards}).decode())
    standard_error.print(f"[green]done[/green]: the log has {layout.shards} shards; start the service again")
