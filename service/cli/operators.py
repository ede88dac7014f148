"""Commands for operators of every kind: the changes of state, and the whole group for kinds registered as documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import orjson
import typer
import yaml

from service.cli.calling import Caller, Commands, given
from service.cli.output import echo_json, printable, standard_error
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show, argument_of
from service.client import Client, part
from service.errors import FileUnreadable
from streams import indefinite

DocumentFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The document, YAML or JSON.", show_default=False)
]
IsDraft: TypeAlias = Annotated[bool, typer.Option("--draft", help="Check and store it; 'activate' starts it.")]

_COLUMNS = ("name", "stream", "state", "version", "severity", "body")


def add_moves(app: typer.Typer, resource: Resource, **helps: str) -> None:
    """Add a command for each action that changes an operator's state; ``helps`` maps actions to help texts."""
    for action, meaning in helps.items():
        _add_move(app, resource, action, meaning)


def operator_commands(
    one: str, plural: str, columns: tuple[str, ...] = _COLUMNS, *, is_asked: bool = False, is_plotted: bool = False
) -> typer.Typer:
    """The group of commands of a kind that is registered as documents; ``plural`` is also its name in the API."""
    app = Commands(help=f"{plural.capitalize()} of the running service.")
    resource = Resource(path=f"/{plural}", one=one, listed=f"the {plural}, by name", table=Table(columns))
    add_list_of_stream(app, resource)
    add_show(app, resource, indefinite(one))
    _add_add(app, resource)
    _add_explain(app, resource)
    if is_asked:
        _add_ask(app, resource)
    if is_plotted:
        _add_plot(app, resource)
    add_moves(
        app,
        resource,
        activate=f"Start {indefinite(one)} that was added with --draft.",
        pause=f"Pause {indefinite(one)}: it sees no events, and its state is dropped.",
        resume=f"Resume a paused or suspended {one}.",
        retire=f"Retire {indefinite(one)} for good; it stays listed with its results.",
    )
    add_delete(app, resource, f"Delete {indefinite(one)}; its results are kept.")
    return app


def tell_operator(client: Caller, found: Mapping[str, Any]) -> None:
    """Print the state of an operator after a change."""
    kept = f"; it has kept its state since {found['held_since']}" if found.get("is_continued") else ""
    client.say(found, f"{found['name']}: version {found['version']} on {found['stream']}, {found['state']}{kept}")
    if client.is_json:
        return
    if skipped := found.get("skipped"):
        typer.echo(f"It skips the backlog: {skipped['events']} events of all streams wait to be matched.")
    if found.get("suspension"):
        standard_error.say(found["suspension"]["reason"])
    for warning in found.get("warnings", ()):
        standard_error.warning(printable(warning))


def _add_add(app: typer.Typer, resource: Resource) -> None:
    @app.command("add", help=f"Register {indefinite(resource.one)}; to replace one, use 'change'.")
    def add(
        client: Caller,
        document: DocumentFile,
        draft: IsDraft = False,
    ) -> None:
        body = {**read_document(document), **given(state="draft" if draft else None)}
        tell_operator(client, client.post(resource.path, body))

    @app.command("change", help=f"Register another document as the next version of {indefinite(resource.one)}.")
    def change(client: Caller, document: DocumentFile) -> None:
        body = read_document(document)
        found = client.request("PUT", f"{resource.path}/{part(str(body.get('name', '')))}", body=body)
        tell_operator(client, found)


def _add_explain(app: typer.Typer, resource: Resource) -> None:
    meaning = f"Explain how {indefinite(resource.one)} runs, how long it keeps events, and its counts."

    @app.command("explain", help=meaning)
    def explain(client: Caller, name: str = argument_of(resource)) -> None:
        found = client.get(f"{resource.path}/{part(name)}/explanation")
        if client.is_json:
            echo_json(found)
            return
        for sentence in found["sentences"]:
            typer.echo(printable(sentence))
        for counted, number in (found["statistics"] or {}).items():
            typer.echo(printable(f"{counted.replace('_', ' '):16}{number:>12,}"))
        typer.echo(f"{'waiting':16}{found['waiting']:>12,}")


def _add_ask(app: typer.Typer, resource: Resource) -> None:
    meaning = f"Ask {indefinite(resource.one)} for the current values of the groups in its window."

    @app.command("ask", help=meaning)
    def ask(
        client: Caller,
        name: str = argument_of(resource),
        by: Annotated[list[str] | None, typer.Option("--by", help="Attribute to group by. Repeatable.")] = None,
        where: Annotated[
            list[str] | None,
            typer.Option(
                "--where", metavar="NAME=VALUE", help="Only events with this value of an attribute. Repeatable."
            ),
        ] = None,
        value: Annotated[
            list[str] | None, typer.Option("--value", help="Value to compute, by its name (default: all). Repeatable.")
        ] = None,
        window: Annotated[str | None, typer.Option(help="Only events younger than this, such as '20 min'.")] = None,
        explain: Annotated[
            bool, typer.Option("--explain", help="With --json: also describe the index of each shard.")
        ] = False,
    ) -> None:
        filters = dict(map(_filter, where or ()))
        body = given(by=by or None, where=filters or None, values=value or None, window=window, explain=explain or None)
        found = client.post(f"{resource.path}/{part(name)}/ask", body)
        if client.is_json:
            echo_json(found)
        elif found["groups"]:
            Table(tuple(found["groups"][0])).show(client, found["groups"])
        else:
            standard_error.say("no event in the window has these values")


def _add_plot(app: typer.Typer, resource: Resource) -> None:
    @app.command("plot", help=f"Plot the values in the newest derived events of {indefinite(resource.one)}, as SVG.")
    def plot(
        client: Client,
        name: str = argument_of(resource),
        file: Annotated[
            Path | None, typer.Argument(metavar="[FILE]", help="SVG file to write (default: standard output).")
        ] = None,
    ) -> None:
        picture = client.content(f"{resource.path}/{part(name)}/plot.svg")
        if file is None:
            typer.echo(picture.decode())
        else:
            file.write_bytes(picture)


def _filter(text: str) -> tuple[str, Any]:
    """Parse an attribute and its value: a JSON number, true or false, otherwise text."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter(f"{text!r} has no form such as region=north", param_hint="--where")
    try:
        read = orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value
    return name, read if isinstance(read, bool | int | float) else value


def _add_move(app: typer.Typer, resource: Resource, action: str, meaning: str) -> None:
    named = argument_of(resource)

    def move(client: Caller, name: str = named) -> None:
        tell_operator(client, client.post(f"{resource.path}/{part(name)}/{action}", None))

    def pause(
        client: Caller,
        name: str = named,
        now: Annotated[
            bool, typer.Option("--now", help="Pause before the backlog: skip events that are not matched yet.")
        ] = False,
    ) -> None:
        parameters = {"now": "true"} if now else {}
        found = client.post(f"{resource.path}/{part(name)}/{action}", None, **parameters)
        tell_operator(client, found)

    app.command(action, help=meaning)(pause if action == "pause" else move)


def read_document(path: Path) -> dict[str, Any]:
    """Read a document, YAML or JSON, as an object."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FileUnreadable(f"{path} cannot be read: {error}", file=str(path)) from error
    if not isinstance(found, dict):
        raise FileUnreadable(f"{path} is not a mapping; give members such as name and stream", file=str(path))
    return found
