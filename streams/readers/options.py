"""How an event file is to be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Progress: TypeAlias = Callable[[float], None]
"""Told the share of the file that has been read, 0.0 to 1.0, never falling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """How an event file is to be read.

    Attributes:
        key: Where the correlation key stands instead of its usual place. JSONL: a path of the line, such as
            ``data.customer``. CSV: a column; XES: an event attribute; both also with a leading ``data.``.
        times: ``event``: every event says when it occurred. ``file``: the order of the file counts, times in it are
            ignored, and the n-th event gets time n - 1 microseconds (1970-01-01T00:00:00Z, then .000001, ...).
        keeps_order: The events are read in the order of the file, in which they came, and not in that of their times.
        lifecycle: XES: the event type is ``name+transition`` where the event has a ``lifecycle:transition``.
        max_bytes: Most bytes that the file may hold, after decompression.
        span: JSON lines: only the lines between two places of the file, as ``line_spans`` gives them.
    """

    key: str | None = None
    times: Literal["event", "file"] = "event"
    keeps_order: bool = False
    lifecycle: bool = False
    max_bytes: int = 4 * 1024**3
    span: tuple[int, int] | None = None
