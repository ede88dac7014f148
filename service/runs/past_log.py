"""Past logs, cut into traces of finished transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from workflows import LogSummary


@dataclass(frozen=True, slots=True)
class PastLog:
    """A past log, divided into traces. A trace has a key, and the types of its events in order of time.

    End events may divide the events of one key into several traces.
    """

    traces: Sequence[Sequence[str]]
    keys: Sequence[str]
    summary: LogSummary

    @classmethod
    def of(cls, name: str, events: Iterable[tuple[str, str, int | None]], end_events: Collection[str] = ()) -> PastLog:
        """Divide events into traces. All traces count as finished.

        An event is a key, a type, and a time or None. The events are in order of time. After a type in ``end_events``,
        a later event of the same key begins another trace.
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
