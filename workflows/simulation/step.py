"""One event of a simulated trace, before it has its place in a stream."""

from __future__ import annotations

from typing import NamedTuple

from workflows.tree import Activity


class Step(NamedTuple):
    """An event to come.

    Attributes:
        activity: Whose event it is.
        offset_us: Microseconds since its trace began; 0 where activities have no durations.
        is_copy: Whether it repeats the event before it, with its attributes.
    """

    activity: Activity
    offset_us: int = 0
    is_copy: bool = False
