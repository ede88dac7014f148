"""Stages from bytes to matches, with the time of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Stage(NamedTuple):
    """A stage.

    Attributes:
        name: The work of the stage.
        seconds: Seconds for all events.
        events: Number of events.
    """

    name: str
    seconds: float
    events: int

    @property
    def ns(self) -> float:
        """Nanoseconds per event."""
        return self.seconds / self.events * 1e9


def table(title: str, stages: Sequence[Stage], whole_s: float, whole: str) -> str:
    """The stages as Markdown, each with its share of the whole."""
    lines = [f"| {title} | ns an event | M events/s | share of {whole} |", "|---|---|---|---|"]
    lines += [
        f"| {stage.name} | {stage.ns:,.1f} | {1e3 / stage.ns:,.1f} | {stage.seconds / whole_s:.0%} |"
        for stage in stages
    ]
    return "\n".join(lines) + "\n"
