"""The tables that lookups read, as control records change them."""

from __future__ import annotations

from typing import TypeAlias

from streams import TableOff, TableOn, TableRow
from streams.tables import Tables

TableRecord: TypeAlias = TableOn | TableOff | TableRow


def tables_after(tables: Tables, record: TableRecord) -> Tables:
    """The tables after a record.

    Raises:
        TableMissing: The content of a table cannot be found.
        TableUnknown: A row changes in a table that does not exist.
    """
    match record:
        case TableOn(version):
            return tables.with_version(version)
        case TableRow(name=name, key=key, row=row):
            return tables.with_row(name, key, row)
        case TableOff(name):
            return tables.without(name)
