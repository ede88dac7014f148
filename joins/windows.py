"""Windows of the inputs of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

WindowKind: TypeAlias = Literal["none", "time", "events", "events-of-key"]


@dataclass(frozen=True, slots=True)
class Window:
    """Which events of an input an event of another input joins.

    Attributes:
        kind: ``none``: all so far. ``time``: those less than ``size`` microseconds older. ``events``: the newest
            ``size`` of the input, those that join nothing included. ``events-of-key``: the newest ``size`` of the key.
        size: At least 1; 0 is allowed for events: none is kept. Without meaning for ``none``.
    """

    kind: WindowKind = "none"
    size: int = 0

    def __post_init__(self) -> None:
        if self.size < (1 if self.kind == "time" else 0):
            raise ValueError(f"a window of the kind {self.kind!r} cannot have the size {self.size}")
