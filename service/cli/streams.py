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
    """What becomes of events that are too late."""

    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    PROCESS = "process"


class TieOrder(StrEnum):
    """What events of one time are."""

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
    key: Annotated[str | None, typer.Option(help="Path of the correlation key; subject else.")] = None,
    further_key: Annotated[
        list[str] | None, typer.Option(help="NAME=PATH of a further correlation key; repeatable.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="A type that may come; any else; repeatable.")
    ] = None,
    end: Annotated[list[str] | None, typer.Option(help="A type that ends a transaction; repeatable.")] = None,
    ties: Annotated[TieOrder | None, typer.Option(help="What events of one time are.")] = None,
    lateness: Annotated[float | None, typer.Option(min=0, help="Seconds that an event may be late.")] = None,
    late: Annotated[LatePolicy | None, typer.Option(help="What becomes of later events.")] = None,
    idle_timeout: Annotated[float | None, typer.Option(help="Seconds without event that end a transaction.")] = None,
    quiet_after: Annotated[float | None, typer.Option(help="Seconds after which time passes without events.")] = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Declare a stream, once: it does not change later."""
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
    )
    with calling(url, api_key) as client:
        show(client.post("/streams", body), is_json=is_json)
