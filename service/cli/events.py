"""``forestall events``: the events that streams of the running service have accepted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import orjson
import typer

from service.cli.calling import Caller, Commands, PatientCaller, without_none
from service.cli.output import standard_error
from service.cli.resources import AfterOrNow, AtMost, EndAfter
from service.client import part

events = Commands(help="Events of streams of the running service.")

_Stream = Annotated[str | None, typer.Argument(metavar="STREAM", help="The stream.", show_default=False)]
_OldStream = Annotated[str | None, typer.Option("--stream", hidden=True)]  # the form in earlier releases
_Key = Annotated[str | None, typer.Option(metavar="KEY", help="Only events of this transaction.")]
_Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only events of this type.")]

_NEWEST = 1_000  # the most events that the service returns without a cursor


@events.command("list")
def list_events(
    client: Caller,
    stream: _Stream = None,
    key: _Key = None,
    type_: _Type = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Start after this cursor; 0: begin with the oldest (default: the newest)."),
    ] = None,
    limit: AtMost = 100,
    old_stream: _OldStream = None,
) -> None:
    """List the newest events of a stream, or the events after a cursor; either list begins with its oldest."""
    path, filters = f"/streams/{part(_named_stream(stream, old_stream))}/events", without_none(key=key, type=type_)
    page = client.get(path, limit=min(limit, _NEWEST), **filters, **without_none(after=after))
    if page["trimmed_until"] is not None:
        _note_gap(page["trimmed_until"])
    newest = page["items"][:limit]
    if after is None and not page["next"] and len(newest) == _NEWEST < limit:
        standard_error.notice(
            f"only the newest {_NEWEST:,} events are listed; for all that are kept, start with --after 0"
        )
    later_events = client.pages(path, on_gap=_note_gap, after=page["next"], **filters) if page["next"] else iter(())
    for event in islice((*newest, *islice(later_events, limit - len(newest))), limit):
        _show(client, event)


@events.command("tail")
def tail_events(
    client: PatientCaller,
    stream: _Stream = None,
    key: _Key = None,
    type_: _Type = None,
    after: AfterOrNow = None,
    limit: EndAfter = None,
    old_stream: _OldStream = None,
) -> None:
    """Show events as they come, until interrupted; after an outage of the service, resume where it stopped."""
    path, filters = f"/streams/{part(_named_stream(stream, old_stream))}/events/live", without_none(key=key, type=type_)
    for event in islice(client.live(path, after=after, on_gap=_note_gap, **filters), limit):
        _show(client, event.data)


def _named_stream(stream: str | None, old_stream: str | None) -> str:
    names = [name for name in (stream, old_stream) if name is not None]
    if len(names) != 1:
        raise typer.BadParameter("name one stream.", param_hint="--stream")
    return names[0]


def _note_gap(trimmed_until: str) -> None:
    standard_error.notice(f"no event that came before {trimmed_until} is kept: events may be missing")


def _show(client: Caller, event: Mapping[str, Any]) -> None:
    data = orjson.dumps(event["data"]).decode()
    client.say(event, f"{event['time']}  {event['key']}  {event['type']}  {event['id']}  {data}")
