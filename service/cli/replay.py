"""``forestall replay``: sends an event file to the running service."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import orjson
import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.columns import (
    AttributeColumns,
    DuplicateIds,
    IdColumn,
    NumbersCount,
    Repeated,
    TimeColumn,
    TypeColumn,
    Unit,
    Zone,
    columns_of,
    reading,
)
from service.cli.inputs import Key, Times, chosen_key, progress_bar, read_event_file, told
from service.client import REPLAY_SOURCE, ForestallClient
from streams import Event
from streams.readers import ReaderOptions, kind_of

_PATIENCE_S = 60.0  # a long file outlasts a restart of the service
End = Annotated[
    list[str] | None, typer.Option(metavar="TYPE", help="With --declare: event type that ends a transaction.")
]


def replay(
    file: Annotated[Path, typer.Argument(help="Events: .jsonl, .csv or .xes, each also .gz.")],
    stream: Annotated[str, typer.Option(metavar="STREAM", help="Stream to append to.")],
    declare: Annotated[bool, typer.Option("--declare", help="Declare the stream first, with the key subject.")] = False,
    end: End = None,
    url: Url = None,
    key: Key = None,
    times: Annotated[Times, typer.Option(help="Order of events: by their times, or as in the file.")] = Times.EVENT,
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition.")] = False,
    id_column: IdColumn = None,
    type_column: TypeColumn = None,
    time_column: TimeColumn = None,
    attributes: AttributeColumns = None,
    assume_zone: Zone = None,
    time_unit: NumbersCount = Unit.MICROSECONDS,
    duplicates: DuplicateIds = Repeated.DROP,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Events per request.")] = 500,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Send the events of a file to the running service, in the order of their times. Exit status 1: some were refused.

    Events that the stream has already accepted are dropped and counted; --duplicates keep sends them as new events.
    """
    asked = reading(columns_of(id_column, type_column, time_column, attributes), assume_zone, time_unit, duplicates)
    options = ReaderOptions(key=chosen_key(key), times=times.order, lifecycle=lifecycle, columns=asked.columns)
    events = read_event_file(file, replace(options, zone=asked.zone, unit=asked.unit, duplicates=asked.duplicates))
    with calling(url, api_key, _PATIENCE_S) as client:
        if declare:
            client.post("/streams", {"name": stream, "end_events": end or []})
        sources = _sources(file, events, keeps=asked.duplicates == "keep")
        sent = send_file(client, stream, events, sources, batch_size)
    told.print(f"{sent.accepted} of {len(events)} events sent to {escape(stream)}")
    if sent.duplicates:
        told.notice(f"{sent.duplicates} were dropped, as the stream has them; --duplicates keep sends them again")
    if is_json:
        typer.echo(
            orjson.dumps(
                {
                    "stream": stream,
                    "accepted": sent.accepted,
                    "rejected": sent.rejected,
                    "duplicates": sent.duplicates,
                }
            ).decode()
        )
    raise typer.Exit(1 if sent.rejected else 0)


@dataclass(slots=True)
class Sent:
    """How many events of a file were accepted, and how many were not."""

    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0


def send_file(client: ForestallClient, stream: str, events: list[Event], sources: list[str], batch_size: int) -> Sent:
    """Send events in batches, each once.

    Args:
        client: Of the service.
        stream: Where they go.
        events: In the order in which they are sent.
        sources: The source of each.
        batch_size: Events of a request.
    """
    run = uuid4().hex
    sent = Sent()
    with progress_bar(f"sending to {stream}") as (progress, task):
        for start in range(0, len(events), batch_size):
            part = slice(start, start + batch_size)
            answer = client.send_events(stream, events[part], f"{run}-{start}", sources[part])
            sent.accepted += answer["accepted"]
            sent.rejected += len(answer["rejected"])
            sent.duplicates += answer.get("duplicates", 0)
            for fault in answer["rejected"][:3]:
                told.print(f"[yellow]rejected[/yellow] event {start + fault['index']}: {escape(fault['detail'])}")
            progress.update(task, completed=min(1.0, (start + batch_size) / len(events)))
    return sent


def _sources(file: Path, events: list[Event], *, keeps: bool) -> list[str]:
    """The source of each event: one for all files; where its id is made up from its place there, that of its file."""
    if keeps:
        run = uuid4().hex
        return [f"{REPLAY_SOURCE}/{run}/{number}" for number in range(len(events))]
    kind = kind_of(file)
    if kind not in ("csv", "xes"):
        return [REPLAY_SOURCE] * len(events)
    with file.open("rb") as stream:
        own = f"{REPLAY_SOURCE}/{file_digest(stream, 'sha256').hexdigest()[:16]}"
    return [own if kind == "xes" or _is_made_up(event) else REPLAY_SOURCE for event in events]


def _is_made_up(event: Event) -> bool:
    key, _, number = event.id.rpartition(":")
    return key == event.key and number.isdigit()
