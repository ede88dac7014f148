"""Options for reading an event file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streams.declaration import ColumnType, Duplicates, FieldMapping, StreamDeclaration
from streams.keys import KeyForm
from streams.time_forms import TimeForm

Progress: TypeAlias = Callable[[float], None]
"""Called with the share of the file that has been read, 0.0 to 1.0, never falling."""

_USUAL_KEYS = ("subject", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where the members of an event are in a file. These are columns of CSV or paths in JSON lines.

    Attributes:
        id: Place of the event's id, or several places whose values are joined to one id by colons. If it is None, the
            place is ``id``, and events without an id are numbered.
        attributes: The columns that are attributes. If it is None, these are all columns that are not used as id, type,
            time or ``key``.
        data: The path of the object of attributes in JSON lines. If it is None, attributes are the members of the line
            that ``attributes`` names.
    """

    id: str | tuple[str, ...] | None = None
    type: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] | None = None
    data: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns or paths that make up an event's id. There are none if ``id`` is None."""
        return (self.id,) if isinstance(self.id, str) else self.id or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """Options for reading an event file.

    Attributes:
        key: Place of the correlation key, if not the default one. JSONL: a path of the line, such as ``data.customer``.
            CSV: a column; XES: an event attribute; both may begin with ``data.``. A place per event type is possible,
            too.
        times: ``event``: every event has its time, and events are sorted by time. ``file``: the same, but events remain
            in the order of the file. ``line``: times are ignored, and the n-th event gets time n - 1 microseconds
            (1970-01-01T00:00:00Z, then .000001, ...).
        delimiter: Separator of the columns of CSV. If it is None, it is detected from the header.
        encoding: Encoding of the file. None means UTF-8, or UTF-16 with a byte order mark.
        types: Types of CSV columns by name. The types of other columns follow from their values.
        duplicates: Whether an event whose id occurred earlier in the file is dropped, or read like any other event.
        on_dropped: Called with the number of dropped events, if any.
        on_numbered: Called with each id that is made from an event's position, because the file has none.
        keeps_order: Whether events remain in the order of the file instead of being sorted by time.
        lifecycle: For XES, whether the event type is ``name+transition`` if the event has a ``lifecycle:transition``.
        classifier: For XES, the name of the log's classifier that makes event types. None means ``concept:name``.
        max_bytes: Largest size of the file, after decompression.
        span: For JSON lines, two offsets of the file, as ``line_spans`` returns them. Only lines between them are read.
    """

    key: KeyForm | None = None
    times: Literal["event", "file", "line"] = "event"
    columns: Columns = field(default_factory=Columns)
    clock: TimeForm = field(default_factory=TimeForm)
    delimiter: str | None = None
    encoding: str | None = None
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    duplicates: Duplicates = "drop"
    on_dropped: Callable[[int], None] | None = None
    on_numbered: Callable[[str], None] | None = None
    on_notice: Callable[[str], None] | None = None
    keeps_order: bool = False
    lifecycle: bool = False
    classifier: str | None = None
    max_bytes: int = 4 * 1024**3
    span: tuple[int, int] | None = None

    @property
    def is_by_time(self) -> bool:
        return not self.keeps_order and self.times != "file"


def reading_of(declared: StreamDeclaration) -> ReaderOptions:
    """Return options for files of a stream's events, from its mapping. With a lateness, file order is kept."""
    mapping, usual = declared.mapping, FieldMapping()
    names = {
        name: getattr(mapping, name)
        for name in ("id", "type", "time")
        if getattr(mapping, name) != getattr(usual, name)
    }
    columns = Columns(**names, data=mapping.data) if names or mapping.data != usual.data else Columns()
    return ReaderOptions(
        key=key_in_files(declared.key),
        keeps_order=declared.lateness is not None,
        duplicates=declared.duplicates,
        columns=columns,
        clock=mapping.clock,
        delimiter=mapping.delimiter,
        encoding=mapping.encoding,
        types=mapping.columns,
    )


def key_in_files(key: KeyForm) -> KeyForm | None:
    """Return the place of a stream's key in files of events, or None for the default place.

    Files have a key with the path ``subject`` in the member ``key``.
    """
    if not isinstance(key, Mapping):
        return None if key in _USUAL_KEYS else key
    return {event_type: "key" if path in _USUAL_KEYS else path for event_type, path in key.items()}
