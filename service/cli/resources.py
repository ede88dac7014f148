"""Commands that all resources of the running service share: ``list``, ``show``, ``delete``.

A resource is described by its name, its path in the API, and the columns of its list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from service.cli.calling import Caller, show_list, without_none
from service.cli.output import standard_error
from service.client import Client, part

Shaping: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
OfStream: TypeAlias = Annotated[str | None, typer.Option(metavar="STREAM", help="Only items of this stream.")]
After: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="CURSOR", help="Continue after this cursor, as 'more:' shows it; 0: begin with the oldest."),
]
AfterOrNow: TypeAlias = Annotated[
    str | None, typer.Option(metavar="CURSOR", help="Start after this cursor; 0: begin with the oldest (default: now).")
]
EndAfter: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Stop after this number of items.")]
AtMost: TypeAlias = Annotated[int, typer.Option(min=1, help="Maximum number of entries.")]


def _unchanged(document: dict[str, Any]) -> dict[str, Any]:
    return document


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a printed list, as ``member`` or ``member:heading``. ``shaped`` prepares an item for users."""

    columns: tuple[str, ...]
    shaped: Shaping = _unchanged

    def show_pages(self, client: Caller, path: str, limit: int, **filters: str | None) -> None:
        """Print the first ``limit`` items of a paged list."""
        self.show(client, list(client.pages(path, most=limit, on_more=note_more, **without_none(**filters))))

    def show(self, client: Caller, items: Sequence[Mapping[str, Any]]) -> None:
        pairs = [column.partition(":") for column in self.columns]
        columns = [(heading or member.replace("_", " "), member) for member, _, heading in pairs]
        shaped = items if client.is_json else [self.shaped({**item}) for item in items]
        show_list(shaped, columns, is_json=client.is_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of resource of the running service: its path in the API, and how it is named and shown.

    Attributes:
        listed: Description of the list and its order, such as ``the joins, by name``.
        detailed: Prepares a single resource for users.
        identified: Finds the id of a resource by the name that a user gave. It is None if the path contains the name.
    """

    path: str
    one: str
    listed: str
    table: Table
    detailed: Shaping = _unchanged
    identified: Callable[[Client, str], str] | None = None

    def path_of(self, client: Client, name: str) -> str:
        return f"{self.path}/{part(name if self.identified is None else self.identified(client, name))}"


def reason_of(reason: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reason of early terminations for users: the cause, the missing step, and the count."""
    return {"by": reason["chain"] or reason["form"], "missing": reason["atom"], "count": reason["count"]}


def note_more(cursor: str) -> None:
    """Print on standard error the cursor with which the list continues."""
    standard_error.say(f"more: --after {cursor}")


def add_list(app: typer.Typer, resource: Resource) -> None:
    """Add the command ``list`` for resources that belong to no stream."""

    @app.command("list", help=f"List {resource.listed}.")
    def list_all(client: Caller) -> None:
        resource.table.show(client, client.get(resource.path)["items"])


def add_list_of_stream(app: typer.Typer, resource: Resource) -> None:
    """Add the command ``list``, without pages, for resources of streams."""

    @app.command("list", help=f"List {resource.listed}.")
    def list_all(client: Caller, stream: OfStream = None) -> None:
        resource.table.show(client, client.get(resource.path, **without_none(stream=stream))["items"])


def add_list_of_latest(app: typer.Typer, resource: Resource, name: str = "list") -> None:
    """Add a command that lists paged results. The service keeps only the latest of these results."""

    @app.command(name, help=f"List {resource.listed}.")
    def list_latest(client: Caller, stream: OfStream = None, after: After = None, limit: AtMost = 20) -> None:
        resource.table.show_pages(client, resource.path, limit, stream=stream, after=after)


def add_show(app: typer.Typer, resource: Resource, what: str) -> None:
    """Add the command ``show`` for a resource that the user names. The help text is ``Show`` followed by ``what``."""
    name_argument = argument_of(resource)

    @app.command("show", help=f"Show {what}.")
    def show_one(client: Caller, name: str = name_argument) -> None:
        document = client.get(resource.path_of(client, name))
        client.show(document if client.is_json else resource.detailed(document))


def add_delete(app: typer.Typer, resource: Resource, what: str, verb: str = "delete") -> None:
    """Add the command ``delete``, or ``verb``, for a resource that the user names. The help text is ``what``."""
    name_argument = argument_of(resource)

    @app.command(verb, help=what)
    def delete_one(client: Client, name: str = name_argument) -> None:
        client.delete(resource.path_of(client, name))
        standard_error.say(f"the {resource.one} {name} is {verb}d")


def argument_of(resource: Resource) -> Any:
    """Return the positional argument of a command that takes the name or id of a resource."""
    metavar = resource.one.rpartition(" ")[2].upper()
    form = "Id or name" if resource.identified is not None else "Id" if "id" in resource.table.columns else "Name"
    return typer.Argument(
        metavar=metavar, help=f"{form} of the {resource.one}, as the list shows it.", show_default=False
    )
