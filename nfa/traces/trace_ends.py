"""Rows that end a trace without an event: like an end event, but invisible to patterns and guards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.guards.protocol import TRACE_END
from nfa.traces.idle_traces import EndedTraces
from streams import EventBatch


def end_rows(ended: EndedTraces) -> EventBatch:
    """A row for the end of each trace, in order."""
    return EventBatch.of_ended(ended.keys, ended.times_us, kind=TRACE_END)


def with_ends(batch: EventBatch, ended: EndedTraces) -> tuple[EventBatch, NDArray[np.bool_]]:
    """A batch with the ends of traces inserted before their rows, and the mask of rows that end a trace."""
    size = len(batch)
    places = np.concatenate([2 * np.arange(size) + 1, 2 * ended.rows])
    order = np.argsort(places, kind="stable")
    mixed = EventBatch.joined([batch, end_rows(ended)]).take(order)
    return mixed, (order >= size) | mixed.is_ended
