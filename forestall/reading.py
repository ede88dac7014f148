"""How the columns of a frame become events, and which of them are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from nfa import Path, Pattern, ValueKind, attributes_by_types
from streams import EventBatch, KeyForm, StreamDeclaration, places_of
from streams.readers import ReaderOptions, reading_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The columns of the members of events; None: as the stream says.

    Attributes:
        key: Column of the correlation key, or one by event type.
        time: Column of the time.
        type: Column of the event type.
        id: Column of the id, or several that make one.
        zone: Zone of times without one.
    """

    key: KeyForm | None = None
    time: str | None = None
    type: str | None = None
    id: str | Sequence[str] | None = None
    zone: str | None = None

    def options(self, declaration: StreamDeclaration) -> ReaderOptions:
        """How a table of a stream's events is read."""
        usual = reading_of(declaration)
        identity = self.id if self.id is None or isinstance(self.id, str) else tuple(self.id)
        return replace(
            usual,
            key=self.key or usual.key,
            columns=replace(
                usual.columns,
                id=identity or usual.columns.id,
                type=self.type or usual.columns.type,
                time=self.time or usual.columns.time,
            ),
            clock=replace(usual.clock, zone=self.zone) if self.zone else usual.clock,
        )


def event_type_of(table: pa.Table, options: ReaderOptions) -> pa.DataType:
    """The type of the ids of a table's events: texts, or numbers of rows where there is no column of ids."""
    has_ids = bool(options.columns.ids) or "id" in table.schema.names
    return pa.string() if has_ids else pa.int64()


def read_by(patterns: Sequence[Pattern], declaration: StreamDeclaration) -> set[str]:
    """The names of the attributes that patterns read, and those of the keys of the stream."""
    found = {attribute.path[0] for pattern in patterns for attribute, _ in attributes_by_types(pattern)}
    found |= {part for pattern in patterns for path in pattern.keys for part in path}
    for key in declaration.keys.values():
        found |= {part for path in places_of(key) for part in path.split(".")}
    return found


def columns_read(options: ReaderOptions, read: Collection[str] | None) -> set[str] | None:
    """The columns from which a table's events are read; None: all.

    Args:
        options: How the table is read.
        read: The names of the attributes that are read; None: all.
    """
    if read is None:
        return None
    own = {options.columns.type or "type", options.columns.time or "time", *places_of(options.key or "key")}
    return own | set(options.columns.ids or ()) | set(read)


def kinds_in(batch: EventBatch) -> Callable[[Path], ValueKind]:
    """The kind of the attribute at a path; a column of lists or objects has no kind."""
    tests: Sequence[tuple[Callable[[pa.DataType], bool], ValueKind]] = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_string, "text"),
    )

    def kind_of(path: Path) -> ValueKind:
        column = batch.attributes.get(path)
        return "any" if column is None else next(kind for test, kind in tests if test(column.type))

    return kind_of
