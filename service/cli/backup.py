"""``forestall backup``, ``restore`` and ``reshard``: save, restore and redistribute a stopped service's data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipeline import check_java
from service.access.keyring import KeyRing
from service.cli.inputs import progress_bar
from service.cli.output import counted, echo_json, standard_error
from service.observing.logs import configure_logs
from service.processes.data_folder import FEEDS_FOLDER, take_folder
from service.runtime import Stores, open_stores
from service.settings import Settings, load_settings
from service.upkeep.backup import BackupContent, back_up
from service.upkeep.backup import restore as bring_back
from service.upkeep.resharding import reshard as divide_log
from streams import MAX_SHARDS, SystemClock, format_time

AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]


def _contents(content: BackupContent) -> str:
    return f"{counted(content.keys, 'key', form=',')} of Redis and {counted(content.files, 'file', form=',')}"


@contextmanager
def _stopped(*, as_it_is: bool) -> Iterator[tuple[Settings, Stores]]:
    """Open the settings and stores of a stopped service. The service cannot be started until the block ends."""
    settings = load_settings()
    configure_logs(settings.log_level)
    with (
        closing(take_folder(settings.data_dir, "stop the service first")),
        open_stores(settings, as_it_is=as_it_is) as stores,
    ):
        yield settings, stores


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it contains secrets of webhooks.")],
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file, for good.")] = False,
    is_json: AsJson = False,
) -> None:
    """Back up a stopped service: Redis, checkpoint and saved states, in one file."""
    with _stopped(as_it_is=True) as (settings, stores), progress_bar(f"writing {file.name}") as (progress, task):
        content = back_up(
            settings,
            stores,
            file,
            SystemClock(),
            lambda share: progress.update(task, completed=share),
            replace=replace,
        )
    if is_json:
        echo_json({"file": str(file), "keys": content.keys, "files": content.files})
    standard_error.print(
        f"[green]done[/green]: {_contents(content)} in {escape(str(file))}; keep it from "
        "others, as it contains all events and the secrets of webhooks"
    )
    if any((feeds := settings.data_dir / FEEDS_FOLDER).glob("*")):
        standard_error.warning(
            f"the backup does not contain {feeds}: copy this folder, too, or the feeds cannot continue after a restore"
        )


def restore(
    file: Annotated[Path, typer.Argument(help="The file that forestall backup wrote.")],
    replace: Annotated[bool, typer.Option("--replace", help="Delete all present data first, for good.")] = False,
    is_json: AsJson = False,
) -> None:
    """Restore a backup; the whole file is checked before anything is changed."""
    with _stopped(as_it_is=True) as (settings, stores), progress_bar(f"reading {file.name}") as (progress, task):
        content = bring_back(
            settings,
            stores,
            file,
            lambda share: progress.update(task, completed=share),
            clock=SystemClock(),
            replace=replace,
        )
        is_open = settings.auth == "auto" and not KeyRing(stores.keys, settings, SystemClock()).is_demanded()
    made_at = format_time(content.made_us)
    if is_json:
        echo_json({"keys": content.keys, "files": content.files, "made_at": made_at})
    standard_error.print(f"[green]done[/green]: {_contents(content)} of {made_at}; start the service again")
    if is_open:
        standard_error.warning(
            "the backup has no API keys, so the service is open: every caller on this machine has all rights. Create a "
            "key (forestall keys add), or set FORESTALL_AUTH=keys before the start"
        )


def reshard(
    shards: Annotated[
        int, typer.Option(min=1, max=MAX_SHARDS, help="New number of shards, a multiple of the present one.")
    ],
    is_json: AsJson = False,
) -> None:
    """Increase the number of shards of a stopped service."""
    check_java()
    with _stopped(as_it_is=False) as (settings, stores):
        layout = divide_log(settings, stores, shards, lambda text: standard_error.print(f"{text} ..."))
    if is_json:
        echo_json({"shards": layout.shards})
    standard_error.print(f"[green]done[/green]: the log has {counted(layout.shards, 'shard')}; start the service again")
