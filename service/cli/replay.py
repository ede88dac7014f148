"""``forestall replay``: send event files to the running service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import file_digest
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.columns import FILE_OPTIONS, DuplicateIds, as_asked, with_options
from service.cli.inputs import Key, Times, TimesOption, chosen_key, pairs_of, progress_bar, read_event_file
from service.cli.output import echo_json, standard_error
from service.client import AccessDenied, ApiError, Client
from service.sending import REPLAY_SOURCE, send_events
from streams import Event, KeyForm, StreamDeclaration, parse_time
from streams.readers import ReaderOptions, kind_of, reading_of

_PATIENCE_S = 60.0  # so that a long file outlasts a restart of the service
End = Annotated[
    list[str] | None, typer.Option(metavar="TYPE", help="With --declare: event type that ends a transaction.")
]


@with_options(FILE_OPTIONS)
def replay(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="Events: .jsonl, .csv or .xes, each also .gz.")] = None,
    stream: Annotated[str | None, typer.Option(metavar="STREAM", help="Stream to append to.")] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(metavar="STREAM=FILE", help="Instead of FILE: the file of one of several streams. Repeatable."),
    ] = None,
    declare: Annotated[bool, typer.Option("--declare", help="Declare the stream first, with the key subject.")] = False,
    end: End = None,
    url: Url = None,
    key: Key = None,
    times: Annotated[Times, TimesOption] = "event",
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition (Pay+complete).")] = False,
    duplicates: DuplicateIds = "drop",
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Events per request.")] = 500,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Send the events of files to the running service, in the order of their times. Exit status 1: some were refused.

    Files of several streams (--events) are merged by time, as forestall run does.
    Events that the stream has already accepted are dropped and counted; --duplicates keep sends them as new events.
    """
    base = ReaderOptions(key=chosen_key(key), times=times, lifecycle=lifecycle)
    named = _paths(file, stream, events)
    with calling(url, api_key, _PATIENCE_S) as client:
        files = [_file(None if declare else client, (name, path), base, context.params) for name, path in named]
        for one in files if declare else ():
            client.post("/streams", {"name": one.stream, "end_events": end or []})
        _tell_late(client, files)
        sent = send_files(client, files, batch_size, keeps=duplicates == "keep")
    for one in files:
        standard_error.say(f"{sent[one.stream].accepted} of {len(one.events)} events sent to {one.stream}")
    if dropped := sum(one.duplicates for one in sent.values()):
        standard_error.notice(f"{dropped} were dropped, as the stream has them; --duplicates keep sends them again")
    for name, counts in sent.items() if is_json else ():
        echo_json({"stream": name, **asdict(counts)})
    raise typer.Exit(1 if any(counts.rejected for counts in sent.values()) else 0)


@dataclass(slots=True)
class Sent:
    """The numbers of accepted, rejected and duplicate events of a file."""

    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file of events, sent to a stream in this order; ``key`` is where the stream reads the correlation key."""

    stream: str
    path: Path
    events: Sequence[Event]
    key: KeyForm = "subject"


def declaration_in(client: Client, stream: str) -> StreamDeclaration:
    """Get a stream's declaration; a default declaration if the stream is unknown or the API key may not read it."""
    try:
        found = client.streams.find(stream)
    except AccessDenied as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        found = None
    return StreamDeclaration(name=stream) if found is None else StreamDeclaration.from_json({**found.value})


def _file(client: Client | None, named: tuple[str, Path], base: ReaderOptions, asked: Mapping[str, Any]) -> EventFile:
    """Read a file by its stream's mapping and the options, which take precedence; no client: a new stream."""
    name, path = named
    declared = StreamDeclaration(name=name) if client is None else declaration_in(client, name)
    usual = reading_of(declared)
    options = replace(
        usual,
        key=base.key or usual.key,
        times=base.times,
        lifecycle=base.lifecycle,
        keeps_order=False,
        duplicates="drop",
    )
    return EventFile(name, path, read_event_file(path, as_asked(options, asked)), declared.key)


def send_files(client: Client, files: Sequence[EventFile], batch_size: int, *, keeps: bool = False) -> dict[str, Sent]:
    """Send the events of files, merged by time; ``keeps`` sends events that the stream knows as new ones."""
    run = uuid4().hex
    sent = {one.stream: Sent() for one in files}
    sources = {one.stream: _sources(one.path, one.events, keeps=keeps) for one in files}
    total, done = max(1, sum(len(one.events) for one in files)), 0
    with progress_bar(f"sending to {', '.join(sent)}") as (progress, task):
        for one, portion in _requests(files, batch_size):
            some = one.events[portion]
            answer = send_events(
                client, one.stream, some, f"{run}-{one.stream}-{portion.start}", sources[one.stream][portion], one.key
            )
            counts = sent[one.stream]
            counts.accepted += answer["accepted"]
            counts.rejected += len(answer["rejected"])
            counts.duplicates += answer.get("duplicates", 0)
            for fault in answer["rejected"][:3]:
                place = f"event {portion.start + fault['index']}" + (
                    f" of {escape(one.path.name)}" if files[1:] else ""
                )
                standard_error.print(f"[yellow]rejected[/yellow] {place}: {escape(fault['detail'])}")
            done += len(some)
            progress.update(task, completed=done / total)
    return sent


def _requests(files: Sequence[EventFile], batch_size: int) -> Iterator[tuple[EventFile, slice]]:
    """Split files into requests, in the file's order; the next one comes from the file with the oldest event."""
    nexts = dict.fromkeys(range(len(files)), 0)
    while open_files := [number for number, start in nexts.items() if start < len(files[number].events)]:
        number = min(open_files, key=lambda one: files[one].events[nexts[one]].time_us)
        part = slice(nexts[number], min(nexts[number] + batch_size, len(files[number].events)))
        yield files[number], part
        nexts[number] = part.stop


def _paths(file: Path | None, stream: str | None, events: Sequence[str] | None) -> list[tuple[str, Path]]:
    """Pairs of stream and file."""
    if file is not None and stream is not None and not events:
        return [(stream, file)]
    if file is not None or stream is not None or not events:
        raise typer.BadParameter("give FILE and --stream, or --events STREAM=FILE for each of several streams.")
    return [(name, Path(path)) for name, path in pairs_of(events, "is not STREAM=FILE", "stream", "--events")]


def _tell_late(client: Client, files: Sequence[EventFile]) -> None:
    """Print a notice for each file with events older than its stream's watermark, if the API key may read that."""
    with suppress(ApiError):
        known = {one["name"]: one["watermark"] for one in client.pipeline.get()["streams"]}
        for one in files:
            if (text := known.get(one.stream)) is None:
                continue
            watermark_us = parse_time(text)
            if late := sum(event.time_us < watermark_us for event in one.events):
                standard_error.notice(
                    f"{late} of {len(one.events)} events of {one.path.name} are older than {text}, the time to which "
                    f"the stream {one.stream} has come: those not sent before are late (docs: event time)"
                )


def _sources(file: Path, events: Sequence[Event], *, keeps: bool) -> list[str]:
    """The source of each event: equal for all files, or the file's digest if ids are made from places in the file."""
    if keeps:
        run = uuid4().hex
        return [f"{REPLAY_SOURCE}/{run}/{number}" for number in range(len(events))]
    kind = kind_of(file)
    if kind != "xes" and not any(map(_is_made_up, events)):
        return [REPLAY_SOURCE] * len(events)
    with file.open("rb") as stream:
        own = f"{REPLAY_SOURCE}/{file_digest(stream, 'sha256').hexdigest()[:16]}"
    return [own if kind == "xes" or _is_made_up(event) else REPLAY_SOURCE for event in events]


def _is_made_up(event: Event) -> bool:
    key, _, number = event.id.rpartition(":")
    return key == event.key and number.isdigit()
