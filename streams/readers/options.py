"""How an event file is to be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streams.declaration import Duplicates
from streams.keys import KeyForm
from streams.readers.times import TimeUnit

Progress: TypeAlias = Callable[[float], None]
"""Told the share of the file that has been read, 0.0 to 1.0, never falling."""

_USUAL_KEYS = ("subject", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where a file has what an event needs, if not at the usual places: columns of CSV, paths in JSON lines.

    Attributes:
        id: Of the event; None: ``id``, and where there is none the events are numbered.
        type: Of the event type; None: ``type``.
        time: Of the time; None: ``time``.
        attributes: The columns that are attributes; None: all that are not used for id, type, time or as ``key``.
    """

    id: str | None = None
    type: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """How an event file is to be read.

    Attributes:
        key: Where the correlation key stands instead of its usual place. JSONL: a path of the line, such as
            ``data.customer``. CSV: a column; XES: an event attribute; both also with a leading ``data.``. Or one of
            these by event type.
        times: ``event``: every event says when it occurred. ``file``: the order of the file counts, times in it are
            ignored, and the n-th event gets time n - 1 microseconds (1970-01-01T00:00:00Z, then .000001, ...).
        columns: Where id, type, time and attributes are.
        zone: The zone of times without one, such as ``Europe/Berlin``; None: they are refused.
        unit: The unit of times that are numbers.
        duplicates: What to do with an event whose id came before in the file: drop it, or read it like any other.
        on_dropped: Called with the number of dropped events, if any.
        keeps_order: The events are read in the order of the file, in which they came, and not in that of their times.
        lifecycle: XES: the event type is ``name+transition`` where the event has a ``lifecycle:transition``.
        max_bytes: Most bytes that the file may hold, after decompression.
        span: JSON lines: only the lines between two places of the file, as ``line_spans`` gives them.
    """

    key: KeyForm | None = None
    times: Literal["event", "file"] = "event"
    columns: Columns = field(default_factory=Columns)
    zone: str | None = None
    unit: TimeUnit = "us"
    duplicates: Duplicates = "drop"
    on_dropped: Callable[[int], None] | None = None
    keeps_order: bool = False
    lifecycle: bool = False
    max_bytes: int = 4 * 1024**3
    span: tuple[int, int] | None = None


def key_in_files(key: KeyForm) -> KeyForm | None:
    """Where files of events have the key that a stream declares; None: at the usual place.

    Events in files have no subject. What the stream reads there is ``key`` in its files.
    """
    if not isinstance(key, Mapping):
        return None if key in _USUAL_KEYS else key
    return {event_type: "key" if path in _USUAL_KEYS else path for event_type, path in key.items()}
