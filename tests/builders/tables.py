"""Reference tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streams.tables import VALUE_TYPES, MappedTable, OpenTable, TableForm, Tables, TableVersion
from streams.tables.mapped import key_texts


def tables_of(name: str, form: TableForm, rows: Sequence[Mapping[str, Any]]) -> Tables:
    """Tables with one table in memory."""
    columns = [pa.array([row[one] for row in rows], VALUE_TYPES[kind]) for one, kind in form.columns.items()]
    keys = key_texts([columns[list(form.columns).index(one)] for one in form.key])
    version = TableVersion(name=name, version=1, form=form, digest="", rows=len(rows))
    return Tables(versions={name: (OpenTable(version, MappedTable.of_keys(form, columns, keys)),)})
