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
    """A log by its traces.

    Attributes:
        traces: The types of the events of each trace, in the order of time.
        keys: The correlation key of each; where end events end traces, one key may have several.
        summary: Which log it is.
    """

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

    Args:
        path: The file.
        key: The correlation key; None: the file says it.
        times: What orders the events.
        lifecycle: Of an XES file, whether types are name+transition.
        classifier: Of an XES file, the classifier of the log that makes event types.
        end_events: Types that end a trace, as end events of a stream do: a later event of the key opens another one.
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
