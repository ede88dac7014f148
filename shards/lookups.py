"""Changes of reference tables by control records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from streams import TableOff, TableOn, TableRow
from streams.tables import Tables

TableRecord: TypeAlias = TableOn | TableOff | TableRow


def tables_after(tables: Tables, record: TableRecord) -> Tables:
    """Apply a control record that registers, changes or removes a table, and return the tables after it."""
    match record:
        case TableOn(version):
            return tables.with_version(version)
        case TableRow(name=name, key=key, row=row):
            return tables.with_row(name, key, row)
        case TableOff(name):
            return tables.without(name)


def records_of(tables: Tables) -> Iterator[TableRecord]:
    """Yield the control records that create these tables in a log without tables."""
    for opened in (table_version for versions in tables.versions.values() for table_version in versions):
        version = opened.version
        yield TableOn(version)
        for key, row in opened.changes.items():
            yield TableRow(name=version.name, version=version.version, key=key, row=None if row is None else tuple(row))
