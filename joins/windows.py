"""Windows of the inputs of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

WindowKind: TypeAlias = Literal["none", "time", "events", "events-of-key"]


@dataclass(frozen=True, slots=True)
class Window:
    """Which earlier events of an input are joined with an event of another input.

    Attributes:
        kind: ``none``: all so far. ``time``: events less than ``size`` microseconds older. ``events``: the newest
            ``size`` events of the input, including events that join nothing. ``events-of-key``: the newest ``size``
            events of the key.
        size: Size of the window, at least 1; windows of events may have size 0, which keeps no event. Meaningless for
            ``none``.
    """

    kind: WindowKind = "none"
    size: int = 0

    def __post_init__(self) -> None:
        if self.size < (1 if self.kind == "time" else 0):
            raise ValueError(f"a window of the kind {self.kind!r} cannot have the size {self.size}")
