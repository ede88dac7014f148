"""``forestall results`` for results of any kind, command groups for the frequent kinds, and ``forestall audit``."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import orjson
import typer

from service.cli.calling import Caller, Commands
from service.cli.output import printable
from service.cli.resources import (
    After,
    AfterOrNow,
    AtMost,
    EndAfter,
    OfStream,
    Resource,
    Table,
    add_list_of_latest,
    reason_of,
)
from service.client import Client
from shards import RESULT_KINDS

_LISTED = {kind.plural: kind.name for kind in RESULT_KINDS.values() if kind.plural}
_TABLE = Table(("id", "time", "stream", "pattern", "key", "reason"))
_REASONS = Table(("pattern", "by", "missing", "count"))
_CHANGES = Table(("at", "key_name:key", "client", "method", "resource", "http_status:status"))


def _listing(help: str, path: str, singular: str, plural: str, columns: tuple[str, ...]) -> Commands:
    group = Commands(help=help)
    listed = f"recent {plural}, the newest first"
    add_list_of_latest(group, Resource(path=path, one=singular, listed=listed, table=Table(columns)))
    return group


derived_events = _listing(
    "Matches that became events of derived streams in the running service.",
    "/derived-events",
    "derived event",
    "derived events",
    ("time", "stream", "into", "type", "key", "pattern"),
)
deviations = _listing(
    "Deviations reported by the running service: transactions that break their constraints.",
    "/deviations",
    "deviation",
    "deviations",
    ("time", "stream", "key", "event_type:event", "kind", "reason"),
)
endings = _listing(
    "Early terminations reported by the running service.",
    "/endings",
    "ending",
    "early terminations",
    ("time", "pattern", "key", "reason"),
)
results = Commands(help="Results of any kind of the running service.")
audit = Commands(help="Changes that callers of the running service requested. Needs a key with the scope admin.")


@endings.command()
def summary(client: Caller, stream: OfStream = None) -> None:
    """Count early terminations by pattern and reason."""
    items = client.endings.summary(stream=stream)["items"]
    reasons = [{"pattern": item["pattern"], **reason_of(reason)} for item in items for reason in item["reasons"]]
    _REASONS.show(client, items if client.is_json else reasons)


def _known_kind(kind: str) -> str:
    if kind not in _LISTED:
        raise typer.BadParameter(f"{kind!r} is not a kind of results; there are {', '.join(_LISTED)}")
    return kind


@results.command("list")
def list_results(
    client: Caller,
    kind: Annotated[
        str, typer.Argument(callback=_known_kind, help="The kind, such as corrections, timeouts, suspensions.")
    ],
    stream: OfStream = None,
    after: After = None,
    limit: AtMost = 20,
) -> None:
    """List recent results of a kind, the newest first."""
    _TABLE.show_pages(client, f"/{kind}", limit, stream=stream, after=after)


@results.command("tail")
def tail_results(
    client: Annotated[Client, 60.0],
    kinds: Annotated[list[str], typer.Argument(help="Kinds of results, separated by spaces: alerts corrections.")],
    stream: OfStream = None,
    after: AfterOrNow = None,
    limit: EndAfter = None,
) -> None:
    """Show results of several kinds as they are found, as JSON lines, until interrupted."""
    result_kinds = ",".join(_LISTED[_known_kind(kind)] for kind in kinds)
    for result in islice(client.results.live(kinds=result_kinds, stream=stream, after=after), limit):
        typer.echo(printable(orjson.dumps(result.data).decode()))


@audit.command("list")
def list_changes(client: Caller, after: After = None, limit: AtMost = 20) -> None:
    """List recent changes, the newest first."""
    _CHANGES.show_pages(client, "/audit", limit, after=after)
