"""``forestall replay``: an event file into the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import orjson
import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.inputs import Times, progress_bar, read_event_file, told
from service.client import ForestallClient
from streams import Event
from streams.readers import ReaderOptions

_PATIENCE_S = 60.0  # a long file outlasts a restart of the service


def replay(
    file: Annotated[Path, typer.Argument(help="Events: .jsonl, .csv or .xes, each also .gz.")],
    stream: Annotated[str, typer.Option(help="Stream to append to.")],
    declare: Annotated[bool, typer.Option("--declare", help="Declare the stream first, keyed by subject.")] = False,
    end: Annotated[list[str] | None, typer.Option(help="With --declare: a type that ends a trace; repeatable.")] = None,
    url: Url = None,
    key: Annotated[str | None, typer.Option(help="Path of the correlation key, such as data.customer.")] = None,
    times: Annotated[Times, typer.Option(help="'file' takes the order of the file where there are no times.")] = (
        Times.EVENT
    ),
    lifecycle: Annotated[bool, typer.Option(help="XES: types are name+transition.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Events per request.")] = 500,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Send the events of a file, in the order of their times, to the running service. Exit status 1: one is refused."""
    events = read_event_file(file, ReaderOptions(key=key, times=times.order, lifecycle=lifecycle))
    with calling(url, api_key, _PATIENCE_S) as client:
        if declare:
            client.post("/streams", {"name": stream, "end_events": end or []})
        rejected = send_file(client, stream, events, batch_size)
    told.print(f"{len(events) - rejected} of {len(events)} events sent to {escape(stream)}")
    if is_json:
        typer.echo(orjson.dumps({"stream": stream, "accepted": len(events) - rejected, "rejected": rejected}).decode())
    raise typer.Exit(1 if rejected else 0)


def send_file(client: ForestallClient, stream: str, events: list[Event], batch_size: int) -> int:
    """Send events in batches, each once; returns how many were rejected."""
    run = uuid4().hex
    rejected = 0
    with progress_bar(f"sending to {stream}") as (progress, task):
        for start in range(0, len(events), batch_size):
            answer = client.send_events(stream, events[start : start + batch_size], f"{run}-{start}")
            rejected += len(answer["rejected"])
            for fault in answer["rejected"][:3]:
                told.print(f"[yellow]rejected[/yellow] event {start + fault['index']}: {escape(fault['detail'])}")
            progress.update(task, completed=min(1.0, (start + batch_size) / len(events)))
    return rejected
