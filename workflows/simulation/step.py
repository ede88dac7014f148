"""An event of a simulated trace, before it is placed in a stream."""

from __future__ import annotations

from typing import NamedTuple

from workflows.tree import Activity


class SimulatedEvent(NamedTuple):
    """A future event of a simulated trace, at an offset from the trace's beginning; 0 without durations.

    A copy repeats the event before it, with its attributes.
    """

    activity: Activity
    offset_us: int = 0
    is_copy: bool = False
