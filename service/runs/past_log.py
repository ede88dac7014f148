"""Finished transactions of the past, cut into traces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from workflows import LogSummary


@dataclass(frozen=True, slots=True)
class PastLog:
    """A log by its traces: types in the order of time, and keys, which repeat where end events end traces."""

    traces: Sequence[Sequence[str]]
    keys: Sequence[str]
    summary: LogSummary

    @classmethod
    def of(cls, name: str, events: Iterable[tuple[str, str, int | None]], end_events: Collection[str] = ()) -> PastLog:
        """The traces of some events (key, type and time, or None, in order), each taken to be finished.

        After a type of ``end_events``, a later event of the key begins another trace.
        """
        traces: list[list[str]] = []
        keys: list[str] = []
        running: dict[str, list[str]] = {}
        times_us: list[int] = []
        for key, event_type, time_us in events:
            if key not in running:
                running[key] = []
                traces.append(running[key])
                keys.append(key)
            running[key].append(event_type)
            if time_us is not None:
                times_us.append(time_us)
            if event_type in end_events:
                del running[key]
        summary = LogSummary(
            name=name,
            traces=len(traces),
            events=sum(map(len, traces)),
            first_us=min(times_us, default=None),
            last_us=max(times_us, default=None),
        )
        return cls(traces, keys, summary)
