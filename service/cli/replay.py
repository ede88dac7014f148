"""``forestall replay``: an event file into the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from rich.markup import escape

from service.cli.inputs import Times, progress_bar, read_event_file, told
from service.client import ForestallClient
from service.settings import load_settings
from streams import Event
from streams.readers import ReaderOptions


def replay(
    file: Annotated[Path, typer.Argument(help="Events: .jsonl, .csv or .xes, each also .gz.")],
    stream: Annotated[str, typer.Option(help="Stream to append to.")],
    declare: Annotated[bool, typer.Option("--declare", help="Declare the stream first, keyed by subject.")] = False,
    end: Annotated[list[str] | None, typer.Option(help="With --declare: a type that ends a trace; repeatable.")] = None,
    url: Annotated[str | None, typer.Option(help="Where the API listens; FORESTALL_API_HOST and _PORT else.")] = None,
    key: Annotated[str | None, typer.Option(help="Path of the correlation key, such as data.customer.")] = None,
    times: Annotated[Times, typer.Option(help="'file' takes the order of the file where there are no times.")] = (
        Times.EVENT
    ),
    lifecycle: Annotated[bool, typer.Option(help="XES: types are name+transition.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Events per request.")] = 500,
) -> None:
    """Send the events of a file, in the order of their times, to the running service."""
    settings = load_settings()
    events = read_event_file(file, ReaderOptions(key=key, times=times.order, lifecycle=lifecycle))
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    address = url or f"http://{settings.api_host}:{settings.api_port}"
    with ForestallClient(address, secret) as client:
        if declare:
            client.post("/streams", {"name": stream, "end_events": end or []})
        rejected = send_file(client, stream, events, batch_size)
    told.print(f"{len(events) - rejected} of {len(events)} events sent to {stream}")
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
