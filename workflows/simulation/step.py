"""An event of a simulated trace, before it is placed in a stream."""

from __future__ import annotations

from typing import NamedTuple

from workflows.tree import Activity


class Step(NamedTuple):
    """A future event of a simulated trace.

    Attributes:
        activity: Its activity.
        offset_us: Microseconds since its trace began; 0 without durations.
        is_copy: Whether it repeats the event before it, with its attributes.
    """

    activity: Activity
    offset_us: int = 0
    is_copy: bool = False
