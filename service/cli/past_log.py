"""Event files read as past, finished transactions."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from service.cli.inputs import Times, read_event_file
from service.runs.past_log import PastLog
from streams import KeyForm
from streams.readers import ReaderOptions

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
    events = read_event_file(path, ReaderOptions(key=key, times=times, lifecycle=lifecycle, classifier=classifier))
    has_times = times != "line"
    return PastLog.of(
        path.name, ((event.key, event.type, event.time_us if has_times else None) for event in events), end_events
    )
