"""``forestall event-types``: the schemas of a stream's event types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.calling import Caller, Commands
from service.cli.inputs import read_json
from service.cli.output import printable, standard_error
from service.cli.resources import Table
from service.client import Client

event_types = Commands(help="Schemas of event types of the running service.")

Stream = Annotated[str, typer.Argument(help="The stream.")]
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="The event type.")]

_TYPES = Table(("type", "version", "created_at"))


@event_types.command("list")
def list_types(client: Caller, stream: Stream) -> None:
    """List the event types with schemas of a stream, sorted by name."""
    page, checks = client.event_types.page(stream), client.streams.get(stream)["schemas"]
    _TYPES.show(client, page["items"])
    standard_error.print(printable(f"events of {stream} are {'checked' if checks == 'check' else 'not checked'}"))


@event_types.command("show")
def show_type(client: Caller, stream: Stream, name: TypeName) -> None:
    """Show the schema of an event type."""
    client.show(client.event_types.get(stream, name))


@event_types.command("put")
def put_type(
    client: Caller,
    stream: Stream,
    name: TypeName,
    schema: Annotated[Path, typer.Argument(help="JSON Schema for the attributes of its events, as a JSON file.")],
) -> None:
    """Set or replace the schema of an event type."""
    document = read_json(schema)
    event_type = client.event_types.put(stream, name, document)
    client.say(event_type, f"{event_type['type']} of {event_type['stream']}: version {event_type['version']}")


@event_types.command("delete")
def delete_type(client: Client, stream: Stream, name: TypeName) -> None:
    """Remove the schema of an event type."""
    client.event_types.delete(stream, name)
    standard_error.say(f"the schema of type {name} of {stream} is removed")


@event_types.command()
def check(
    client: Caller,
    stream: Stream,
    is_off: Annotated[bool, typer.Option("--off", help="Turn schema checks off (default: on).")] = False,
) -> None:
    """Turn schema checks of a stream on or off."""
    declaration = client.streams.change(stream, {"schemas": "off" if is_off else "check"})
    client.show({"schemas": declaration["schemas"]})
