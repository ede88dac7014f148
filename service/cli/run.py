"""``forestall run``: a project over event files, in this process."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from service.cli.calling import printable
from service.cli.inputs import read_event_batch
from service.cli.waiting import waiting_on
from service.projects import LISTS, LocalProject, LocalStream, line_of, read_project
from service.projects.errors import ProjectRefused
from streams.compiling import JSON_LINES, compile_kernels
from streams.readers import ReaderOptions

_USUAL_KEYS = ("subject", "key")


class RunOutput(StrEnum):
    """How the result is printed."""

    TEXT = "text"
    JSON = "json"


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project.")],
    events: Annotated[
        list[str],
        typer.Option(metavar="[STREAM=]FILE", help="Event file of a stream. Repeatable, once per stream."),
    ],
    is_open: Annotated[
        bool, typer.Option("--open", help="Transactions continue after the last event (default: they end with it).")
    ] = False,
    output: Annotated[RunOutput, typer.Option(help="Output format.")] = RunOutput.TEXT,
) -> None:
    """Match all patterns of a project in event files, without Spark, Redis or HTTP."""
    project = LocalProject.of(read_project(folder), folder)
    files = _files(events, project)
    with waiting_on() as waiting:
        needed = {one for name in files for one in project.stream(name).exercises()}
        compile_kernels([*sorted(needed), JSON_LINES], waiting.compiling)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LISTS}
    counts = 0
    for name, path in files.items():
        stream = project.stream(name)
        batch = read_event_batch(path, _reading(stream))
        counts += len(batch)
        for part, some in stream.run(batch, is_open=is_open).items():
            found[part] += some
    if output is RunOutput.JSON:
        typer.echo(orjson.dumps({**found, "stats": {"events": counts}}).decode())
        return
    for part in LISTS:
        for one in found[part]:
            typer.echo(printable(f"{part}  {one['stream']}  {line_of(part, one, has_keys=True)}"))
    typer.echo(", ".join([f"{counts} events", *(f"{len(some)} {part}" for part, some in found.items())]))


def _files(said: list[str], project: LocalProject) -> dict[str, Path]:
    """The file of each stream."""
    found: dict[str, Path] = {}
    for one in said:
        name, sign, path = one.partition("=")
        if not sign:
            if len(project.streams) != 1:
                count = len(project.streams)
                raise typer.BadParameter(f"{one!r}: write STREAM=FILE, as the project has {count} streams.")
            (name,), path = project.streams, one
        if name in found:
            raise ProjectRefused.of([f"--events names the stream {name!r} twice; give each stream one file"])
        project.stream(name)
        found[name] = Path(path)
    return found


def _reading(stream: LocalStream) -> ReaderOptions:
    """How its events are read: in the order of the file where some may be late."""
    declared = stream.declaration
    return ReaderOptions(
        key=None if declared.key in _USUAL_KEYS else declared.key,
        keeps_order=declared.lateness is not None,
        duplicates=declared.duplicates,
    )
