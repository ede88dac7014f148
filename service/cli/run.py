"""``forestall run``: run a project over event files, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.choices import OutputFormat
from service.cli.columns import with_options
from service.cli.inputs import read_event_batch
from service.cli.output import counted, echo_json, printable, tell_notices
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
from streams import Punctuation, did_you_mean
from streams.compiling import JSON_LINES, compile_kernels
from streams.readers import unread_members

_QUIET = "suppressed_alerts"
_FEW = {_QUIET: "suppressed alert", EVENTS: "derived event", "dead_letters": "dead letter"}


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
        bool, typer.Option("--open", help="Leave transactions open at the end of the input (default: they end there).")
    ] = False,
    output: Annotated[OutputFormat, typer.Option(help="Output format.")] = "text",
) -> None:
    """Run a project over event files, without Spark, Redis or HTTP."""
    project = LocalProject.of(read_project(folder), folder)
    files, printed = files_of(events, project), _printed_streams(outputs, project)
    reading = readings(project.streams, files, context.params)
    promised = files_of(punctuations or (), project, "--punctuations")
    promises = [(name, promise) for name, path in promised.items() for promise in _promises_in(path)]
    with waiting_on() as waiting:
        compile_kernels([*project.exercises(), JSON_LINES], waiting.compiling)
    batches = {name: read_event_batch(path, reading[name]) for name, path in files.items()}
    with working(f"matching {counted(sum(map(len, batches.values())), 'event', form=',')}"):
        ran = project.fed(batches, promises=promises)
        results = ran.results(is_open=is_open)
    numbers = {name: len(bodies) for name, bodies in results.items()}
    stats: dict[str, Any] = {"events": sum(map(len, batches.values()))}
    stats |= _measured(ran)
    events_of = {name: [batch] for name, batch in batches.items()} | project.derived_events(results)
    beside = {name: unread_members(path, reading[name]) for name, path in files.items()}
    if notices := merged(project.notices, ran.unkeyed, project.event_notices(events_of, beside)):
        stats["notices"] = notices
    print_results(results, printed, numbers, stats, is_json=output == "json")
    tell_notices({name: [sentence] for name, sentence in ran.losses.items()})
    if results[SUSPENSIONS]:
        raise suspended(results[SUSPENSIONS], project)


def suspended(
    suspensions: Sequence[Mapping[str, Any]], project: LocalProject, *, prefix: str = ""
) -> OperatorSuspended:
    """Return the error about suspended operators. The kind of the first operator determines the error's class.

    The message has one reason per operator, even if several shards suspended the operator. Every reason begins with
    ``prefix``.
    """
    kinds = {operator.name: KINDS_BY_NAME[operator.kind] for _, operator in project.plan.variant("").operators}
    reasons: dict[str, str] = {}
    for suspension in suspensions:
        reasons.setdefault(suspension["pattern"], prefix + suspension["reason"])
    return kinds[next(iter(reasons))].suspended("\n".join(reasons.values()))


def _measured(ran: InlineRun) -> dict[str, Any]:
    stats = measured_stats(ran.measured, ran.waiting)
    return stats | {
        name: number for name, number in (("late_events", ran.late), ("dead_letters", ran.dead_letters)) if number
    }


def measured_stats(lateness: Mapping[str, MeasuredRun], waiting: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return two members of a run's summary: the lateness of streams, and the measurements of waiting operators."""
    stats: dict[str, Any] = {}
    if lateness:
        stats["lateness"] = {name: asdict(measured) for name, measured in lateness.items()}
    if waiting:
        stats["waiting"] = waiting
    return stats


def merged(*notices: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Merge notices by operator."""
    merged: dict[str, list[str]] = {}
    for by_operator in notices:
        for name, sentences in by_operator.items():
            merged.setdefault(name, []).extend(sentences)
    return merged


def print_results(
    results: Results,
    printed: Sequence[str],
    numbers: Mapping[str, int],
    stats: Mapping[str, Any],
    *,
    is_json: bool,
    more: Mapping[str, Any] = {},
) -> None:
    """Print the results of a project.

    Args:
        results: All results, or some of them.
        printed: The derived streams whose events are printed.
        numbers: The number of results in each list.
        stats: The number of events, the measured ``lateness`` of streams, the measurements of ``waiting`` operators,
            late events and dead letters by stream, ``notices`` by operator, and further members for JSON.
        is_json: Print one JSON object. Otherwise, print a line per result, and the numbers.
        more: Further members of the JSON object.
    """
    events = [event for event in results[EVENTS] if event["stream"] in printed]
    if is_json:
        streams = {name: [_without_stream(event) for event in events if event["stream"] == name] for name in printed}
        letters = {"dead_letters": results["dead_letters"]} if results["dead_letters"] else {}
        lists = {name: results[name] for name in LISTS}
        lists |= {old: results[name] for old, name in OLD_LISTS.items()}
        stopped = {name: results[name] for name in (INCIDENTS, SUSPENSIONS) if results[name]}
        echo_json({"streams": streams, **lists, **letters, **stopped, "stats": stats, **more})
        return
    for part in LISTS:
        for entry in results[part]:
            typer.echo(printable("  ".join([part, *_words(entry)])))
    for entry in events:
        event_text = f"[{entry['key']}] {entry['type']} {entry['id']}"
        typer.echo(printable("  ".join([EVENTS, entry["stream"], entry["time"], event_text, *_values(entry["data"])])))
    for entry in results[INCIDENTS]:
        typer.echo(printable(_incident_line(entry)))
    for entry in results["dead_letters"]:
        typer.echo(printable(f"dead_letters  {entry['stream']}  {entry['reason']}"))
    _print_measured(stats)
    tell_notices(stats.get("notices", {}))
    numbered = [counted(numbers[part], part.removesuffix("s")) for part in LISTS if part != _QUIET]
    numbered += [counted(numbers[part], name) for part, name in _FEW.items() if numbers[part]]
    typer.echo(", ".join([counted(stats["events"], "event"), *numbered]))


def _print_measured(stats: Mapping[str, Any]) -> None:
    for name, entry in stats.get("lateness", {}).items():
        words = f"{entry['seconds']:g} s at the end, {counted(entry['changes'], 'change')}, "
        words += counted(entry["late"], "late event")
        typer.echo(printable(f"lateness  {name}  {words}"))
    for name, inputs in stats.get("waiting", {}).items():
        for alias, entry in inputs.items():
            disorder, closing_key = (
                "unknown" if entry[name] is None else entry[name] for name in ("disorder", "closing_key")
            )
            words = f"disorder {disorder}, closing key {closing_key}, "
            words += counted(entry["late"], "late event")
            words = words if entry["arrived"] else "no event has a whole number as key"
            typer.echo(printable(f"waiting  {name}  {alias}: {words}"))


def _incident_line(incident: Mapping[str, Any]) -> str:
    period = f"{incident['opened_at']}  {incident['closed_at'] or 'open'}"
    words = f"{period}  {incident['pattern']}: {counted(incident['alerts'], 'alert')}"
    return "  ".join([INCIDENTS, incident["stream"], words, *_values(incident["group"])])


def _words(body: Mapping[str, Any]) -> list[str]:
    times = [str(body[name]) for name in ("end", "due", "time") if name in body]
    return [body["stream"], *times[:1], line_of(body, {}, has_keys=True), *_values(body.get("returns", {}))]


def _values(columns: Mapping[str, Any]) -> list[str]:
    return [" ".join(words_of(columns))] if columns else []


def _without_stream(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "stream"}


def _printed_streams(outputs: str | None, project: LocalProject) -> list[str]:
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


def files_of(options: Sequence[str], project: LocalProject, option: str = "--events") -> dict[str, Path]:
    """Return the file of each stream, from options STREAM=FILE."""
    files: dict[str, Path] = {}
    for text in options:
        name, sign, path = text.partition("=")
        if not sign:
            posted = [name for name, stream in project.streams.items() if not stream.derived]
            if len(posted) != 1:
                raise typer.BadParameter(f"{text!r}: write STREAM=FILE, as the project has {len(posted)} streams.")
            (name,), path = posted, text
        if name in files:
            raise ProjectRefused.of([f"{option} names the stream {name!r} twice; give each stream one file"])
        if project.stream(name).derived:
            raise ProjectRefused.of(
                [f"{option}: the events of {name!r} are derived; give the events of its source streams"]
            )
        files[name] = Path(path)
    return files
