"""``forestall streams``: the streams of the running service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, given, show
from service.cli.inputs import named_paths
from service.cli.resources import Resource, Table, add_list, add_show

streams = typer.Typer(help="Streams of the running service.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the stream.")]


class LatePolicy(StrEnum):
    """What to do with events that are too late."""

    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    PROCESS = "process"


class TieOrder(StrEnum):
    """How events with equal timestamps are ordered."""

    LOG = "log"
    SIMULTANEOUS = "simultaneous"


_STREAMS = Resource(
    path="/streams",
    one="stream",
    listed="the streams, by name",
    table=Table(("name", "key", "end_events:ended by", "lateness")),
)

add_list(streams, _STREAMS)
add_show(streams, _STREAMS, "the declaration of a stream")


@streams.command("add")
def add_stream(
    name: Name,
    key: Annotated[
        str | None, typer.Option(metavar="PATH", help="Path of the correlation key (default: subject).")
    ] = None,
    further_key: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="A further correlation key. Repeatable.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Allowed event type (default: any). Repeatable.")
    ] = None,
    end: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Event type that ends a transaction. Repeatable.")
    ] = None,
    ties: Annotated[TieOrder | None, typer.Option(help="How events with equal timestamps are ordered.")] = None,
    lateness: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Out-of-orderness bound: seconds that an event may be late."),
    ] = None,
    late: Annotated[LatePolicy | None, typer.Option(help="What to do with events later than that.")] = None,
    idle_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Session gap: end a transaction after these seconds without an event."),
    ] = None,
    quiet_after: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Source idleness: seconds without events after which time passes anyway."),
    ] = None,
    derived: Annotated[bool | None, typer.Option("--derived", help="Patterns with INTO make its events.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Declare a stream; a declaration cannot be changed later."""
    body: dict[str, Any] = given(
        name=name,
        key=key,
        keys=named_paths(further_key or []),
        event_types=type_,
        end_events=end,
        ties=ties,
        lateness=lateness,
        late=late,
        idle_timeout=idle_timeout,
        quiet_after=quiet_after,
        derived=derived,
    )
    with calling(url, api_key) as client:
        show(client.post("/streams", body), is_json=is_json)
