"""What commands that look back read: an event log as finished traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.cli.inputs import Times, read_event_file
from streams.readers import ReaderOptions
from workflows import LogSummary


@dataclass(frozen=True, slots=True)
class PastLog:
    """A log by its traces.

    Attributes:
        traces: The types of the events of each trace, in the order of time, by correlation key.
        summary: Which log it is.
    """

    traces: Mapping[str, Sequence[str]]
    summary: LogSummary


def read_log(path: Path, *, key: str | None, times: Times, lifecycle: bool) -> PastLog:
    """The traces of an event file, each taken to be finished."""
    events = read_event_file(path, ReaderOptions(key=key, times=times.order, lifecycle=lifecycle))
    traces: dict[str, list[str]] = {}
    for event in events:
        traces.setdefault(event.key, []).append(event.type)
    has_times = bool(events) and times is Times.EVENT
    summary = LogSummary(
        name=path.name,
        traces=len(traces),
        events=len(events),
        first_us=events[0].time_us if has_times else None,
        last_us=events[-1].time_us if has_times else None,
    )
    return PastLog(traces, summary)
