"""Event files read as past, finished transactions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from service.cli.inputs import Times, read_event_file
from streams import KeyForm
from streams.readers import ReaderOptions
from workflows import LogSummary


@dataclass(frozen=True, slots=True)
class PastLog:
    """A log by its traces: types in the order of time, and keys, which repeat where end events end traces."""

    traces: Sequence[Sequence[str]]
    keys: Sequence[str]
    summary: LogSummary


EndEvents = Annotated[
    list[str] | None,
    typer.Option("--end", metavar="TYPE", help="Event type that ends a transaction of the log. Repeatable."),
]


def read_log(
    path: Path,
    *,
    key: KeyForm | None,
    times: Times,
    lifecycle: bool,
    classifier: str | None = None,
    end_events: Collection[str] = (),
) -> PastLog:
    """The traces of an event file, each taken to be finished.

    Without a key, the file names it. ``lifecycle`` and ``classifier`` are for XES files: types are name+transition, or
    are made by a classifier of the log. After one of ``end_events``, a later event of the key begins another trace.
    """
    events = read_event_file(
        path, ReaderOptions(key=key, times=times.order, lifecycle=lifecycle, classifier=classifier)
    )
    traces: list[list[str]] = []
    keys: list[str] = []
    running: dict[str, list[str]] = {}
    for event in events:
        if event.key not in running:
            running[event.key] = []
            traces.append(running[event.key])
            keys.append(event.key)
        running[event.key].append(event.type)
        if event.type in end_events:
            del running[event.key]
    times_us = [] if times is Times.LINE else [event.time_us for event in events]
    summary = LogSummary(
        name=path.name,
        traces=len(traces),
        events=len(events),
        first_us=min(times_us, default=None),
        last_us=max(times_us, default=None),
    )
    return PastLog(traces, keys, summary)
