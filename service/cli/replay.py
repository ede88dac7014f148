"""``forestall replay``: send event files to the running service."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from service.cli.columns import FILE_OPTIONS, DuplicateIds, merged_options, with_options
from service.cli.inputs import Key, Times, TimesOption, chosen_key, pairs_of, progress_bar, read_event_file
from service.cli.output import counted, echo_json, standard_error
from service.client import AccessDenied, ApiError, Client
from service.sending import REPLAY_SOURCE, send_events
from streams import Event, KeyForm, StreamDeclaration, parse_time
from streams.readers import ReaderOptions, reading_of

_SHOWN_FAULTS = 3  # of each request
_PATIENCE_S = 60.0  # so that sending a long file outlasts a restart of the service
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
    paths = _paths(file, stream, events)
    with calling(url, api_key, _PATIENCE_S) as client:
        files = [_file(None if declare else client, (name, path), base, context.params) for name, path in paths]
        for event_file in files if declare else ():
            client.post("/streams", {"name": event_file.stream, "end_events": end or []})
        _tell_late(client, files)
        sent = send_files(client, files, batch_size, keeps=duplicates == "keep")
    for event_file in files:
        total = counted(len(event_file.events), "event")
        standard_error.say(f"{sent[event_file.stream].accepted} of {total} sent to {event_file.stream}")
    if dropped := sum(counts.duplicates for counts in sent.values()):
        was, it = ("was", "it") if dropped == 1 else ("were", "them")
        standard_error.notice(f"{dropped} {was} dropped, as the stream has {it}; --duplicates keep sends {it} again")
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
    """The events of a file, in the order in which they are sent.

    Attributes:
        numbered: The ids that were made from positions in the file.
        key: Path of the stream's correlation key.
    """

    stream: str
    path: Path
    events: Sequence[Event]
    numbered: Collection[str] = frozenset()
    key: KeyForm = "subject"


def declaration_in(client: Client, stream: str) -> StreamDeclaration:
    """Get a stream's declaration.

    If the stream is unknown, or the API key may not read it, return a default declaration.
    """
    try:
        tagged = client.streams.find(stream)
    except AccessDenied as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        tagged = None
    return StreamDeclaration(name=stream) if tagged is None else StreamDeclaration.from_json({**tagged.value})


def _file(
    client: Client | None, source: tuple[str, Path], base: ReaderOptions, arguments: Mapping[str, Any]
) -> EventFile:
    name, path = source
    declared = StreamDeclaration(name=name) if client is None else declaration_in(client, name)
    defaults = reading_of(declared)
    numbered: set[str] = set()
    options = replace(
        defaults,
        key=base.key or defaults.key,
        times=base.times,
        lifecycle=base.lifecycle,
        keeps_order=False,
        duplicates="drop",
        on_numbered=numbered.add,
    )
    events = read_event_file(path, merged_options(options, arguments))
    return EventFile(name, path, events, numbered, declared.key)


def send_files(client: Client, files: Sequence[EventFile], batch_size: int, *, keeps: bool = False) -> dict[str, Sent]:
    """Send the events of files, merged by time.

    With ``keeps``, events that the stream already has are sent as new events.
    """
    run = uuid4().hex
    sent = {file.stream: Sent() for file in files}
    sources = {file.stream: _sources(file, keeps=keeps) for file in files}
    total, done = max(1, sum(len(file.events) for file in files)), 0
    with progress_bar(f"sending to {', '.join(sent)}") as (progress, task):
        for file, portion in _requests(files, batch_size):
            events = file.events[portion]
            answer = send_events(
                client,
                file.stream,
                events,
                f"{run}-{file.stream}-{portion.start}",
                sources[file.stream][portion],
                file.key,
            )
            counts = sent[file.stream]
            counts.accepted += answer["accepted"]
            counts.rejected += len(answer["rejected"])
            counts.duplicates += answer.get("duplicates", 0)
            for fault in answer["rejected"][:_SHOWN_FAULTS]:
                place = f"event {portion.start + fault['index']}" + (
                    f" of {escape(file.path.name)}" if files[1:] else ""
                )
                standard_error.print(f"[yellow]rejected[/yellow] {place}: {escape(fault['detail'])}")
            if unlisted := len(answer["rejected"][_SHOWN_FAULTS:]):
                standard_error.print(f"[yellow]rejected[/yellow] {unlisted} more of this request")
            done += len(events)
            progress.update(task, completed=done / total)
    return sent


def _requests(files: Sequence[EventFile], batch_size: int) -> Iterator[tuple[EventFile, slice]]:
    """Yield the file and the range of events of each request.

    A request begins with the oldest unsent event of all files, and continues with the next events of the same file.
    """
    nexts = dict.fromkeys(range(len(files)), 0)
    while open_files := [number for number, start in nexts.items() if start < len(files[number].events)]:
        number = min(open_files, key=lambda index: files[index].events[nexts[index]].time_us)
        part = slice(nexts[number], min(nexts[number] + batch_size, len(files[number].events)))
        yield files[number], part
        nexts[number] = part.stop


def _paths(file: Path | None, stream: str | None, events: Sequence[str] | None) -> list[tuple[str, Path]]:
    if file is not None and stream is not None and not events:
        return [(stream, file)]
    if file is not None or stream is not None or not events:
        raise typer.BadParameter("give FILE and --stream, or --events STREAM=FILE for each of several streams.")
    return [(name, Path(path)) for name, path in pairs_of(events, "is not STREAM=FILE", "stream", "--events")]


def _tell_late(client: Client, files: Sequence[EventFile]) -> None:
    with suppress(ApiError):
        watermarks = {stream["name"]: stream["watermark"] for stream in client.pipeline.get()["streams"]}
        for file in files:
            if (text := watermarks.get(file.stream)) is None:
                continue
            watermark_us = parse_time(text)
            if late := sum(event.time_us < watermark_us for event in file.events):
                standard_error.notice(
                    f"{late} of {len(file.events)} events of {file.path.name} are older than {text}, the time to which "
                    f"the stream {file.stream} has come: those not sent before are late (docs: event time)"
                )


def _sources(file: EventFile, *, keeps: bool) -> list[str]:
    """Return the source of each event of a file. The stream drops an event whose source and id it has already accepted.

    Usually, all files share one source, so that a repeated event is dropped. A position in a file is not a unique id.
    Events with such ids therefore get the file's digest as source. With ``keeps``, each event gets its own source.
    """
    if keeps:
        run = uuid4().hex
        return [f"{REPLAY_SOURCE}/{run}/{number}" for number in range(len(file.events))]
    if not file.numbered:
        return [REPLAY_SOURCE] * len(file.events)
    with file.path.open("rb") as stream:
        digest_source = f"{REPLAY_SOURCE}/{file_digest(stream, 'sha256').hexdigest()[:16]}"
    return [digest_source if event.id in file.numbered else REPLAY_SOURCE for event in file.events]
