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
from service.projects import (
    EVENTS,
    LISTS,
    LocalProject,
    LocalStream,
    Results,
    event_lines,
    line_of,
    read_project,
)
from service.projects.errors import ProjectRefused
from streams import did_you_mean
from streams.compiling import JSON_LINES, compile_kernels
from streams.readers import ReaderOptions, key_in_files

_FEW = {EVENTS: "derived events", "dead_letters": "dead letters"}


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
    outputs: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Derived streams whose events are printed (default: all).")
    ] = None,
    is_open: Annotated[
        bool, typer.Option("--open", help="Transactions continue after the last event (default: they end with it).")
    ] = False,
    output: Annotated[RunOutput, typer.Option(help="Output format.")] = RunOutput.TEXT,
) -> None:
    """Match all patterns of a project in event files, without Spark, Redis or HTTP."""
    project = LocalProject.of(read_project(folder), folder)
    files, shown = _files(events, project), _shown(outputs, project)
    with waiting_on() as waiting:
        needed = {one for stream in project.streams.values() for one in stream.exercises()}
        compile_kernels([*sorted(needed), JSON_LINES], waiting.compiling)
    batches = {name: read_event_batch(path, _reading(project.stream(name))) for name, path in files.items()}
    found = project.run(batches, is_open=is_open)
    found[EVENTS] = [one for one in found[EVENTS] if one["stream"] in shown]
    counts = sum(map(len, batches.values()))
    if output is RunOutput.JSON:
        streams: dict[str, list[dict[str, Any]]] = {name: [] for name in shown}
        for one in found.pop(EVENTS):
            streams[one.pop("stream")].append(one)
        letters = found.pop("dead_letters")
        typer.echo(
            orjson.dumps(
                {
                    "streams": streams,
                    **found,
                    **({"dead_letters": letters} if letters else {}),
                    "stats": {"events": counts},
                }
            ).decode()
        )
        return
    _tell(found, counts)


def _tell(found: Results, counts: int) -> None:
    """A line per result, and how many there are."""
    for part in LISTS:
        for one in found[part]:
            typer.echo(printable(f"{part}  {one['stream']}  {line_of(part, one, has_keys=True)}"))
    for line in event_lines(found[EVENTS]):
        typer.echo(printable(f"{EVENTS}  {line}"))
    for one in found["dead_letters"]:
        typer.echo(printable(f"dead_letters  {one['stream']}  {one['reason']}"))
    numbers = [f"{len(found[part])} {part}" for part in LISTS]
    numbers += [f"{len(found[part])} {name}" for part, name in _FEW.items() if found[part]]
    typer.echo(", ".join([f"{counts} events", *numbers]))


def _shown(outputs: str | None, project: LocalProject) -> list[str]:
    """The derived streams that are printed."""
    derived = [name for name, stream in project.streams.items() if stream.declaration.derived]
    if outputs is None:
        return derived
    names = [name.strip() for name in outputs.split(",")]
    for name in names:
        if name not in derived:
            raise ProjectRefused.of([f"--outputs: {name!r} is not a derived stream{did_you_mean(name, derived)}"])
    return names


def _files(said: list[str], project: LocalProject) -> dict[str, Path]:
    """The file of each stream."""
    found: dict[str, Path] = {}
    for one in said:
        name, sign, path = one.partition("=")
        if not sign:
            posted = [name for name, stream in project.streams.items() if not stream.declaration.derived]
            if len(posted) != 1:
                raise typer.BadParameter(f"{one!r}: write STREAM=FILE, as the project has {len(posted)} streams.")
            (name,), path = posted, one
        if name in found:
            raise ProjectRefused.of([f"--events names the stream {name!r} twice; give each stream one file"])
        if project.stream(name).declaration.derived:
            raise ProjectRefused.of([f"--events: the events of {name!r} are derived; give those that it is made of"])
        found[name] = Path(path)
    return found


def _reading(stream: LocalStream) -> ReaderOptions:
    """How its events are read: in the order of the file where some may be late."""
    declared = stream.declaration
    return ReaderOptions(
        key=key_in_files(declared.key),
        keeps_order=declared.lateness is not None,
        duplicates=declared.duplicates,
    )
