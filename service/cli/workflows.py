"""``forestall workflows``: the workflows of the running service, and the streams that follow them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.inputs import progress_bar, read_text
from service.cli.model_choice import MapFile, Process
from service.cli.models import read_content
from service.cli.output import printable, standard_error
from service.cli.resources import Resource, Table, add_delete, add_list, add_show
from service.client import Client, part
from workflows import read_mapping

workflows = Commands(help="Workflows of the running service.")


FollowMode: TypeAlias = Literal["auto", "exact", "tables"]
"""How a stream follows a workflow."""

Name = Annotated[str, typer.Argument(help="Name of the workflow.")]
Mode = Annotated[
    FollowMode,
    typer.Option(
        help="Follow the automaton (exact) or the constraints (tables); auto: exact if possible, else tables."
    ),
]


_WORKFLOWS = Resource(
    path="/workflows",
    one="workflow",
    listed="the workflows, by name",
    table=Table(
        ("name", "version", "format", "streams:followed by"),
        lambda item: {**item, "streams": [follower["stream"] for follower in item["streams"]]},
    ),
)
_CONSTRAINTS = Table(("constraint", "derived_from:origin"))

add_list(workflows, _WORKFLOWS)
add_show(workflows, _WORKFLOWS, "a workflow, how its constraints were found, and the streams that follow it")


@workflows.command("constraints")
def show_constraints(
    client: Caller,
    name: Name,
    full: Annotated[
        bool, typer.Option("--full", help="List all constraints, including those that follow from others.")
    ] = False,
) -> None:
    """List the constraints that hold on every complete trace of a workflow."""
    items = client.workflows.constraints(name, full=full)["items"]
    _CONSTRAINTS.show(client, items)


@workflows.command("put")
def put_workflow(
    client: Caller,
    name: Name,
    model: Annotated[Path, typer.Argument(help="Model: BPMN 2.0, PNML, or a process tree as YAML or JSON.")],
    stream: Annotated[str | None, typer.Option(metavar="STREAM", help="Stream that is to follow the workflow.")] = None,
    mode: Mode = "auto",
    map_file: MapFile = None,
    process: Process = None,
) -> None:
    """Upload a workflow, or its next version. Streams that follow the workflow switch to the next version."""
    body = without_none(
        content=read_content(model).decode("utf-8", errors="replace"),
        process=process,
        mapping=None if map_file is None else dict(read_mapping(read_text(map_file))),
        stream=stream,
        mode=None if mode == "auto" else mode,
    )
    with progress_bar(f"uploading and compiling {model.name}"):
        workflow = client.put(f"/workflows/{part(name)}", body)
    _tell(client, workflow)


@workflows.command()
def follow(
    client: Caller,
    name: Name,
    stream: Annotated[str, typer.Option(metavar="STREAM", help="Stream that is to follow the workflow.")],
    mode: Mode = "auto",
) -> None:
    """Let a stream follow a workflow, for transactions that begin later."""
    following = client.put(f"/streams/{part(stream)}/workflow", {"workflow": name, "mode": mode})
    client.say(following, f"{stream} follows version {following['version']} of {name}")
    _warn(client, following["constraint_set"])


@workflows.command()
def unfollow(client: Client, stream: Annotated[str, typer.Argument(help="The stream.")]) -> None:
    """Stop a stream from following its workflow; hand-written constraints stay."""
    client.streams.unfollow(stream)
    standard_error.say(f"{stream} follows no workflow")


add_delete(workflows, _WORKFLOWS, "Delete a workflow that no stream follows.")


def _tell(client: Caller, workflow: Mapping[str, Any]) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in workflow["constraint_counts"].items() if count)
    client.say(
        workflow, f"{workflow['name']}: version {workflow['version']}, {workflow['format']}; constraints: {kinds}"
    )
    if client.is_json:
        return
    for notice in workflow["notices"]:
        standard_error.notice(printable(f"{notice['element']} {notice['message']}"))
    _warn(client, workflow)
    for follower in workflow["streams"]:
        how = "by its automaton" if follower["used"] == "exact" else "by its constraints"
        typer.echo(printable(f"{follower['stream']} follows it {how}"))
        _warn(client, client.constraints.get(follower["stream"]))


def _warn(client: Caller, constraint_set: Mapping[str, Any]) -> None:
    for warning in () if client.is_json else constraint_set["warnings"]:
        standard_error.warning(printable(warning))
