"""The columns of a frame as members of events, and the kinds of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from forestall.match_columns import KindOf
from nfa import Attribute, ValueKind
from service import RunRules
from streams import EventBatch, KeyForm, StreamDeclaration
from streams.readers import ReaderOptions, reading_of
from streams.tables import Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The columns from which the members of events are read. None means the column in the stream's declaration.

    Attributes:
        key: Column of the correlation key, or columns by event type.
        time: Column of the time.
        type: Column of the event type.
        id: Column of the id, or several columns that are joined to one id.
        zone: Zone of times that name no zone.
    """

    key: KeyForm | None = None
    time: str | None = None
    type: str | None = None
    id: str | Sequence[str] | None = None
    zone: str | None = None

    def options(self, declaration: StreamDeclaration) -> ReaderOptions:
        """Return the options with which a table is read as events of the declared stream."""
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


def event_id_type(table: pa.Table, options: ReaderOptions) -> pa.DataType:
    """Return the Arrow type of event ids: text, or the type of row numbers if no column has ids."""
    has_ids = bool(options.columns.ids) or "id" in table.schema.names
    return pa.string() if has_ids else pa.int64()


def kinds_in(batch: EventBatch, rules: RunRules) -> KindOf:
    """Return a function that returns the kind of the values of an attribute or a lookup.

    Columns of lists or objects have the kind ``any``.
    """
    tests: Sequence[tuple[Callable[[pa.DataType], bool], ValueKind]] = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_string, "text"),
    )
    forms = rules.tables.forms
    rows = {pattern.rows.alias: pattern.rows.table for pattern in rules.patterns if pattern.rows is not None}

    def kind_of(read: Attribute | Lookup) -> ValueKind:
        if isinstance(read, Attribute) and read.of is not None and read.of in rows:
            read = Lookup(rows[read.of], read.path[0], None)
        if isinstance(read, Lookup):
            kind = forms[read.table].columns[read.column or ""]
            return "integer" if kind == "time" else kind
        column = batch.attributes.get(read.path)
        return "any" if column is None else next(kind for test, kind in tests if test(column.type))

    return kind_of
