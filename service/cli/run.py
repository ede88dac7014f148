"""``forestall run``: a project over event files, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.choices import OutputFormat
from service.cli.columns import with_options
from service.cli.inputs import read_event_batch
from service.cli.output import echo_json, printable, tell_notices
from service.cli.stream_files import STREAM_OPTIONS, readings
from service.cli.waiting import waiting_on, working
from service.errors import ProjectRefused
from service.projects import (
    EVENTS,
    LISTS,
    SUSPENSIONS,
    LocalProject,
    PromiseRefused,
    Results,
    line_of,
    read_project,
    read_promises,
    words_of,
)
from service.runs import INCIDENTS, OLD_LISTS, InlineRun, MeasuredRun
from shards import KINDS_BY_NAME, OperatorSuspended
from streams import Event, EventBatch, Punctuation, did_you_mean, parse_time
from streams.compiling import JSON_LINES, compile_kernels

_QUIET = "suppressed_alerts"
_FEW = {_QUIET: "suppressed alerts", EVENTS: "derived events", "dead_letters": "dead letters"}


@with_options(STREAM_OPTIONS)
def run(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project.")],
    events: Annotated[
        list[str],
        typer.Option(metavar="[STREAM=]FILE", help="Event file of a stream. Repeatable, once per stream."),
    ],
    punctuations: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]FILE",
            help='File of finished ranges of keys, one per line: {"range": {"to": 5}, "time": "…"}. Repeatable.',
        ),
    ] = None,
    outputs: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Derived streams whose events are printed (default: all).")
    ] = None,
    is_open: Annotated[
        bool, typer.Option("--open", help="Transactions continue after the last event (default: they end with it).")
    ] = False,
    output: Annotated[OutputFormat, typer.Option(help="Output format.")] = "text",
) -> None:
    """Run a project over event files, without Spark, Redis or HTTP."""
    project = LocalProject.of(read_project(folder), folder)
    files, shown = files_of(events, project), _shown(outputs, project)
    reading = readings(project.streams, files, context.params)
    promised = files_of(punctuations or (), project, "--punctuations")
    promises = [(name, one) for name, path in promised.items() for one in _promises_in(path)]
    with waiting_on() as waiting:
        compile_kernels([*project.exercises(), JSON_LINES], waiting.compiling)
    batches = {name: read_event_batch(path, reading[name]) for name, path in files.items()}
    with working(f"matching {sum(map(len, batches.values())):,} events"):
        ran = project.fed(batches, promises=promises)
        found = ran.results(is_open=is_open)
    numbers = {name: len(some) for name, some in found.items()}
    stats: dict[str, Any] = {"events": sum(map(len, batches.values()))}
    stats |= _measured(ran)
    events_of = {name: [batch] for name, batch in (batches | _derived(found, project)).items()}
    if notices := _joined(project.notices, ran.unkeyed, project.incomparable(events_of)):
        stats["notices"] = notices
    print_results(found, shown, numbers, stats, is_json=output == "json")
    tell_notices({name: [sentence] for name, sentence in ran.losses.items()})
    if found[SUSPENSIONS]:
        raise _suspended(found[SUSPENSIONS], project)


def _suspended(found: Sequence[Mapping[str, Any]], project: LocalProject) -> OperatorSuspended:
    """Make the error about suspended operators, of the class that their kind uses."""
    kinds = {one.name: KINDS_BY_NAME[one.kind] for _, one in project.plan.variant("").operators}
    return kinds[found[0]["pattern"]].suspended("\n".join(one["reason"] for one in found))


def _measured(ran: InlineRun) -> dict[str, Any]:
    """Measurements of streams and operators, and the numbers of late events and dead letters."""
    stats = measured_stats(ran.measured, ran.waiting)
    return stats | {n: some for n, some in (("late_events", ran.late), ("dead_letters", ran.dead_letters)) if some}


def measured_stats(lateness: Mapping[str, MeasuredRun], waiting: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Measurements of streams and operators, as members of ``stats``."""
    stats: dict[str, Any] = {}
    if lateness:
        stats["lateness"] = {name: asdict(one) for name, one in lateness.items()}
    if waiting:
        stats["waiting"] = waiting
    return stats


def _derived(found: Results, project: LocalProject) -> dict[str, EventBatch]:
    """Derived events by stream, of the streams that have patterns."""
    events: dict[str, list[Event]] = {}
    for one in found[EVENTS]:
        if not project.plan.patterns[one["stream"]]:
            continue
        event = Event(id=one["id"], type=one["type"], time_us=parse_time(one["time"]), key=one["key"], data=one["data"])
        events.setdefault(one["stream"], []).append(event)
    return {name: EventBatch.from_events(some) for name, some in events.items()}


def _joined(*notices: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Merge notices, by operator."""
    found: dict[str, list[str]] = {}
    for some in notices:
        for name, sentences in some.items():
            found.setdefault(name, []).extend(sentences)
    return found


def print_results(
    found: Results,
    shown: Sequence[str],
    numbers: Mapping[str, int],
    stats: Mapping[str, Any],
    *,
    is_json: bool,
    more: Mapping[str, Any] = {},
) -> None:
    """Print the results of a project.

    Args:
        found: All results, or some of them.
        shown: The derived streams whose events are printed.
        numbers: The number of results in each list.
        stats: The number of events, the measured ``lateness`` of streams, the measurements of ``waiting`` operators,
            late events and dead letters by stream, ``notices`` by operator, and more for JSON.
        is_json: Print one JSON object; otherwise a line per result, and the numbers.
        more: Further members of the JSON object.
    """
    events = [one for one in found[EVENTS] if one["stream"] in shown]
    if is_json:
        streams = {name: [_without_stream(one) for one in events if one["stream"] == name] for name in shown}
        letters = {"dead_letters": found["dead_letters"]} if found["dead_letters"] else {}
        lists = {name: found[name] for name in LISTS}
        lists |= {old: found[name] for old, name in OLD_LISTS.items()}
        stopped = {name: found[name] for name in (INCIDENTS, SUSPENSIONS) if found[name]}
        echo_json({"streams": streams, **lists, **letters, **stopped, "stats": stats, **more})
        return
    for part in LISTS:
        for one in found[part]:
            typer.echo(printable("  ".join([part, *_words(one)])))
    for one in events:
        made = f"[{one['key']}] {one['type']} {one['id']}"
        typer.echo(printable("  ".join([EVENTS, one["stream"], one["time"], made, *_values(one["data"])])))
    for one in found[INCIDENTS]:
        typer.echo(printable(_incident_line(one)))
    for one in found["dead_letters"]:
        typer.echo(printable(f"dead_letters  {one['stream']}  {one['reason']}"))
    for name, one in stats.get("lateness", {}).items():
        words = f"{one['seconds']:g} s at the end, {one['changes']} changes, {one['late']} late events"
        typer.echo(printable(f"lateness  {name}  {words}"))
    for name, inputs in stats.get("waiting", {}).items():
        for alias, one in inputs.items():
            words = f"disorder {one['disorder']}, closing key {one['closing_key']}, {one['late']} late events"
            typer.echo(printable(f"waiting  {name}  {alias}: {words}"))
    tell_notices(stats.get("notices", {}))
    counted = [f"{numbers[part]} {part}" for part in LISTS if part != _QUIET]
    counted += [f"{numbers[part]} {name}" for part, name in _FEW.items() if numbers[part]]
    typer.echo(", ".join([f"{stats['events']} events", *counted]))


def _incident_line(one: Mapping[str, Any]) -> str:
    """An incident as a printed line."""
    words = f"{one['opened_at']}  {one['closed_at'] or 'open'}  {one['pattern']}: {one['alerts']} alerts"
    return "  ".join([INCIDENTS, one["stream"], words, *_values(one["group"])])


def _words(one: Mapping[str, Any]) -> list[str]:
    """The words of a result's line: stream, time if any, bound events or reason, columns of RETURN."""
    times = [str(one[name]) for name in ("end", "due", "time") if name in one]
    return [one["stream"], *times[:1], line_of(one, {}, has_keys=True), *_values(one.get("returns", {}))]


def _values(columns: Mapping[str, Any]) -> list[str]:
    """Columns and their values as one word of a line; empty without columns."""
    return [" ".join(words_of(columns))] if columns else []


def _without_stream(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "stream"}


def _shown(outputs: str | None, project: LocalProject) -> list[str]:
    """The derived streams to print."""
    derived = project.derived()
    if outputs is None:
        return derived
    names = [name.strip() for name in outputs.split(",")]
    for name in names:
        if name not in derived:
            raise ProjectRefused.of([f"--outputs: {name!r} is not a derived stream{did_you_mean(name, derived)}"])
    return names


def _promises_in(path: Path) -> list[Punctuation]:
    try:
        return list(read_promises(path.read_bytes()))
    except OSError as error:
        raise ProjectRefused.of([f"--punctuations: {path} cannot be read: {error.strerror}"]) from error
    except PromiseRefused as error:
        raise ProjectRefused.of([f"--punctuations: {path}, {error.message}"]) from error


def files_of(given: Sequence[str], project: LocalProject, option: str = "--events") -> dict[str, Path]:
    """Files by stream, from options STREAM=FILE."""
    found: dict[str, Path] = {}
    for one in given:
        name, sign, path = one.partition("=")
        if not sign:
            posted = [name for name, stream in project.streams.items() if not stream.derived]
            if len(posted) != 1:
                raise typer.BadParameter(f"{one!r}: write STREAM=FILE, as the project has {len(posted)} streams.")
            (name,), path = posted, one
        if name in found:
            raise ProjectRefused.of([f"{option} names the stream {name!r} twice; give each stream one file"])
        if project.stream(name).derived:
            raise ProjectRefused.of(
                [f"{option}: the events of {name!r} are derived; give the events of its source streams"]
            )
        found[name] = Path(path)
    return found
