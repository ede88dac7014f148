"""``forestall events``: the events that streams of the running service have taken."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import orjson
import typer

from service.cli.calling import Caller, Commands, PatientCaller, given
from service.cli.output import standard_error
from service.cli.resources import AfterOrNow, AtMost, EndAfter
from service.client import part

events = Commands(help="Events of streams of the running service.")

_Stream = Annotated[str | None, typer.Argument(metavar="STREAM", help="The stream.", show_default=False)]
_OldStream = Annotated[str | None, typer.Option("--stream", hidden=True)]  # the form of earlier releases
_Key = Annotated[str | None, typer.Option(metavar="KEY", help="Only events of this transaction.")]
_Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only events of this type.")]


@events.command("list")
def list_events(
    client: Caller,
    stream: _Stream = None,
    key: _Key = None,
    type_: _Type = None,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Start after this cursor; 0: the oldest (default: the newest).")
    ] = None,
    limit: AtMost = 100,
    old_stream: _OldStream = None,
) -> None:
    """List the newest events of a stream, or those after a cursor, the oldest first."""
    at, chosen = f"/streams/{part(_one(stream, old_stream))}/events", given(key=key, type=type_)
    page = client.get(at, limit=min(limit, 1_000), **chosen, **given(after=after))
    if page["trimmed_until"] is not None:
        _note_gap(page["trimmed_until"])
    shown = page["items"][:limit]
    rest = client.pages(at, on_gap=_note_gap, after=page["next"], **chosen) if page["next"] else iter(())
    for event in islice((*shown, *islice(rest, limit - len(shown))), limit):
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
    at, chosen = f"/streams/{part(_one(stream, old_stream))}/events/live", given(key=key, type=type_)
    for event in islice(client.live(at, after=after, on_gap=_note_gap, **chosen), limit):
        _show(client, event.data)


def _one(stream: str | None, old_stream: str | None) -> str:
    """The named stream, given as argument or with the former option."""
    named = [one for one in (stream, old_stream) if one is not None]
    if len(named) != 1:
        raise typer.BadParameter("name one stream.", param_hint="--stream")
    return named[0]


def _note_gap(trimmed_until: str) -> None:
    standard_error.notice(f"no event that came before {trimmed_until} is kept: events may be missing")


def _show(client: Caller, event: Mapping[str, Any]) -> None:
    """Print an event as one line, unbuffered, for readers of a pipe."""
    data = orjson.dumps(event["data"]).decode()
    client.say(event, f"{event['time']}  {event['key']}  {event['type']}  {event['id']}  {data}")
