"""``forestall event-types``: the schemas of a stream's event types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, show, show_sentence
from service.cli.inputs import read_json, standard_error
from service.cli.resources import Table
from service.cli.wording import printable

event_types = typer.Typer(help="Schemas of event types, by stream of the running service.", no_args_is_help=True)

Stream = Annotated[str, typer.Argument(help="The stream.")]
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="The event type.")]

_TYPES = Table(("type", "version", "created_at"))


@event_types.command("list")
def list_types(stream: Stream, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False) -> None:
    """List the event types of a stream that have schemas, by name."""
    with calling(url, api_key) as client:
        found, checks = client.event_types.page(stream), client.streams.get(stream)["schemas"]
    _TYPES.show(found["items"], is_json=is_json)
    standard_error.print(printable(f"events of {stream} are {'checked' if checks == 'check' else 'not checked'}"))


@event_types.command("show")
def show_type(
    stream: Stream, name: TypeName, url: Url = None, api_key: ApiKeyOption = None, is_json: IsJson = False
) -> None:
    """Show the schema of an event type."""
    with calling(url, api_key) as client:
        show(client.event_types.get(stream, name), is_json=is_json)


@event_types.command("put")
def put_type(
    stream: Stream,
    name: TypeName,
    schema: Annotated[Path, typer.Argument(help="JSON file: a JSON Schema for the attributes of its events.")],
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Set or replace the schema of an event type."""
    document = read_json(schema)
    with calling(url, api_key) as client:
        found = client.event_types.put(stream, name, document)
    show_sentence(found, f"{found['type']} of {found['stream']}: version {found['version']}", is_json=is_json)


@event_types.command("delete")
def delete_type(stream: Stream, name: TypeName, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Remove the schema of an event type."""
    with calling(url, api_key) as client:
        client.event_types.delete(stream, name)
    standard_error.print(printable(f"the schema of type {name} of {stream} is removed"), markup=False)


@event_types.command()
def check(
    stream: Stream,
    is_off: Annotated[bool, typer.Option("--off", help="Turn schema checks off.")] = False,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Turn schema checks of a stream on or off."""
    with calling(url, api_key) as client:
        found = client.streams.change(stream, {"schemas": "off" if is_off else "check"})
    show({"schemas": found["schemas"]}, is_json=is_json)
