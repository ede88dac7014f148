"""``forestall results``: results of any kind of the running service, listed or followed."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import orjson
import typer

from service.cli.calling import Caller, Commands
from service.cli.resources import After, AtMost, OfStream, Table
from service.cli.wording import printable
from service.client import Client
from shards import RESULT_KINDS

results = Commands(help="Results of any kind of the running service.")

_LISTED = {kind.plural: kind.name for kind in RESULT_KINDS.values() if kind.plural}
_TABLE = Table(("id", "time", "stream", "pattern", "key", "reason"))
_PATIENCE_S = 60.0  # as long as a service may take to come back


def _known(kind: str) -> str:
    if kind not in _LISTED:
        raise typer.BadParameter(f"{kind!r} is not a kind of results; there are {', '.join(_LISTED)}")
    return kind


@results.command("list")
def list_results(
    client: Caller,
    kind: Annotated[str, typer.Argument(callback=_known, help="The kind, such as corrections, timeouts, suspensions.")],
    stream: OfStream = None,
    after: After = None,
    limit: AtMost = 20,
) -> None:
    """List recent results of a kind, the newest first."""
    _TABLE.show_pages(client, f"/{kind}", limit, is_json=client.is_json, stream=stream, after=after)


@results.command("tail")
def tail_results(
    client: Annotated[Client, _PATIENCE_S],
    kinds: Annotated[list[str], typer.Argument(help="Kinds, such as alerts corrections.")],
    stream: OfStream = None,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Start after this cursor; 0: the oldest (default: now).")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after this number of results.")] = None,
) -> None:
    """Show results of several kinds as they are found, as JSON lines, until interrupted."""
    wanted = ",".join(_LISTED[_known(kind)] for kind in kinds)
    for result in islice(client.results.live(kinds=wanted, stream=stream, after=after), limit):
        typer.echo(printable(orjson.dumps(result.data).decode()))
