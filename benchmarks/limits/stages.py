"""The stages from bytes to matches, with their times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Stage(NamedTuple):
    """A stage of the work from bytes to matches.

    Attributes:
        name: The work of the stage.
        seconds: The seconds for all events.
        events: The number of events.
    """

    name: str
    seconds: float
    events: int

    @property
    def ns(self) -> float:
        """Nanoseconds per event."""
        return self.seconds / self.events * 1e9


def table(title: str, stages: Sequence[Stage], whole_s: float, whole: str) -> str:
    """Return the stages as Markdown, each with its share of the whole."""
    lines = [f"| {title} | ns an event | M events/s | share of {whole} |", "|---|---|---|---|"]
    lines += [
        f"| {stage.name} | {stage.ns:,.1f} | {1e3 / stage.ns:,.1f} | {stage.seconds / whole_s:.0%} |"
        for stage in stages
    ]
    return "\n".join(lines) + "\n"
