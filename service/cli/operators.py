"""Commands for operators: the actions that change an operator's state, and the groups of kinds that have documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import orjson
import typer
import yaml

from service.cli.calling import Caller, Commands, without_none
from service.cli.output import counted, echo_json, printable, standard_error
from service.cli.resources import Resource, Table, add_delete, add_list_of_stream, add_show, argument_of
from service.client import Client, condition, part
from service.errors import FileUnreadable
from streams import indefinite

DocumentFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The document, YAML or JSON.", show_default=False)
]
IsDraft: TypeAlias = Annotated[bool, typer.Option("--draft", help="Store without starting; 'activate' starts.")]

_COLUMNS = ("name", "stream", "state", "version", "severity", "body")


def add_moves(app: typer.Typer, resource: Resource, **helps: str) -> None:
    """Add a command for each action that changes an operator's state. ``helps`` maps actions to help texts."""
    for action, meaning in helps.items():
        _add_move(app, resource, action, meaning)


def operator_commands(
    singular: str, plural: str, columns: tuple[str, ...] = _COLUMNS, *, is_asked: bool = False, is_plotted: bool = False
) -> typer.Typer:
    """Build the command group of a kind of operator whose definitions are documents.

    ``plural`` is the name of the kind in the API. The group has the command ``ask`` if ``is_asked``, and ``plot`` if
    ``is_plotted``.
    """
    app = Commands(help=f"{plural.capitalize()} of the running service.")
    resource = Resource(path=f"/{plural}", one=singular, listed=f"the {plural}, by name", table=Table(columns))
    add_list_of_stream(app, resource)
    add_show(app, resource, indefinite(singular))
    _add_add(app, resource)
    _add_explain(app, resource)
    if is_asked:
        _add_ask(app, resource)
    if is_plotted:
        _add_plot(app, resource)
    add_moves(
        app,
        resource,
        activate=f"Start {indefinite(singular)} that was added with --draft.",
        pause=f"Pause {indefinite(singular)}: it sees no events, and its state is dropped.",
        resume=f"Resume a paused or suspended {singular}.",
        retire=f"Retire {indefinite(singular)} for good; it stays listed with its results.",
    )
    add_delete(app, resource, f"Delete {indefinite(singular)}; its results are kept.")
    return app


def kept_state(operator: Mapping[str, Any]) -> dict[str, str]:
    """Return the member ``state`` for the next version of an operator, so that a draft or paused operator remains so.

    The result is empty for other operators.
    """
    return {"state": operator["state"]} if operator["state"] in ("draft", "paused") else {}


def tell_operator(client: Caller, operator: Mapping[str, Any]) -> None:
    """Print the state of an operator after a change."""
    continuation = f"; it has kept its state since {operator['held_since']}" if operator.get("is_continued") else ""
    client.say(
        operator,
        f"{operator['name']}: version {operator['version']} on {operator['stream']}, {operator['state']}{continuation}",
    )
    if client.is_json:
        return
    if skipped := operator.get("skipped"):
        waiting = counted(skipped["events"], "event of all streams waits", "events of all streams wait")
        typer.echo(f"It skips the backlog: {waiting} to be matched.")
    if operator.get("suspension"):
        standard_error.say(operator["suspension"]["reason"])
    for warning in operator.get("warnings", ()):
        standard_error.warning(printable(warning))


def _add_add(app: typer.Typer, resource: Resource) -> None:
    @app.command("add", help=f"Register {indefinite(resource.one)}; to replace one, use 'change'.")
    def add(
        client: Caller,
        document: DocumentFile,
        draft: IsDraft = False,
    ) -> None:
        body = {**read_document(document), **without_none(state="draft" if draft else None)}
        tell_operator(client, client.post(resource.path, body))

    meaning = f"Register another document as the next version of {indefinite(resource.one)}; a draft or a pause stays."

    @app.command("change", help=meaning)
    def change(client: Caller, document: DocumentFile) -> None:
        body = read_document(document)
        path = f"{resource.path}/{part(str(body.get('name', '')))}"
        stored = client.find(path) if body.get("name") else None
        state, headers = (kept_state(stored.value), condition(stored.etag)) if stored else ({}, {})
        tell_operator(client, client.request("PUT", path, body={**state, **body}, headers=headers))


def _add_explain(app: typer.Typer, resource: Resource) -> None:
    meaning = f"Explain how {indefinite(resource.one)} runs, how long it keeps events, and its counts."

    @app.command("explain", help=meaning)
    def explain(client: Caller, name: str = argument_of(resource)) -> None:
        explanation = client.get(f"{resource.path}/{part(name)}/explanation")
        if client.is_json:
            echo_json(explanation)
            return
        for sentence in explanation["sentences"]:
            typer.echo(printable(sentence))
        for named, number in (explanation["statistics"] or {}).items():
            typer.echo(printable(f"{named.replace('_', ' '):16}{number:>12,}"))
        typer.echo(f"{'waiting':16}{explanation['waiting']:>12,}")
        for index in explanation["indexes"]:
            typer.echo(printable(_of_index(index)))


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
            list[str] | None,
            typer.Option(
                "--value",
                metavar="NAME[=VALUE]",
                help="Value to compute: its name, or a new one such as x='sum(price)' (default: all). Repeatable.",
            ),
        ] = None,
        window: Annotated[str | None, typer.Option(help="Only events younger than this, such as '20 min'.")] = None,
        explain: Annotated[
            bool, typer.Option("--explain", help="With --json: also describe the index of each shard.")
        ] = False,
    ) -> None:
        filters = dict(map(_filter, where or ()))
        pairs = [text.partition("=") for text in value or ()]
        values = [{name: computed} if sign else name for name, sign, computed in pairs]
        body = without_none(
            by=by or None, where=filters or None, values=values or None, window=window, explain=explain or None
        )
        answer = client.post(f"{resource.path}/{part(name)}/ask", body)
        if client.is_json:
            echo_json(answer)
        elif answer["groups"]:
            Table(tuple(answer["groups"][0])).show(client, answer["groups"])
        else:
            since = client.get(f"{resource.path}/{part(name)}")["held_since"]
            standard_error.say(f"no event in the window has these values; its windows began empty at {since}")


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


def _of_index(index: Mapping[str, Any]) -> str:
    def bits_of(configuration: Mapping[str, int]) -> str:
        return ", ".join(f"{name} {bits}" for name, bits in configuration.items())

    kinds = [f"{', '.join(kind['where']) or 'no filter'} {kind['share']:.0%}" for kind in index["asked_for"]]
    partitions = counted(index["partitions"], "partition", form=",")
    parts = [
        f"{counted(index['events'], 'event', form=',')} in {partitions} ({bits_of(index['configuration'])} bits)",
        f"{counted(index['questions'], 'question', form=',')} (by filters: {'; '.join(kinds) or 'none'})",
        counted(index["migrations"], "migration", form=","),
    ]
    if "cost_ns" in index:
        cost, best = index["cost_ns"], bits_of(index["best"])
        parts.append(f"estimated cost {cost['present']:,} ns, at best {cost['best']:,} ns ({best} bits)")
    return f"index of shard {index['shard']}: {', '.join(parts)}"


def _filter(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter(f"{text!r} has no form such as region=north", param_hint="--where")
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value
    return name, parsed if isinstance(parsed, bool | int | float) else value


def _add_move(app: typer.Typer, resource: Resource, action: str, meaning: str) -> None:
    name_argument = argument_of(resource)

    def move(client: Caller, name: str = name_argument) -> None:
        tell_operator(client, client.post(f"{resource.path}/{part(name)}/{action}", None))

    def pause(
        client: Caller,
        name: str = name_argument,
        now: Annotated[
            bool, typer.Option("--now", help="Pause at once; the events of the backlog are never processed.")
        ] = False,
    ) -> None:
        parameters = {"now": "true"} if now else {}
        operator = client.post(f"{resource.path}/{part(name)}/{action}", None, **parameters)
        tell_operator(client, operator)

    app.command(action, help=meaning)(pause if action == "pause" else move)


def read_document(path: Path) -> dict[str, Any]:
    """Read a document, YAML or JSON, as an object."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise FileUnreadable(f"{path} cannot be read: {error}", file=str(path)) from error
    if not isinstance(document, dict):
        raise FileUnreadable(f"{path} is not a mapping; give members such as name and stream", file=str(path))
    return document
