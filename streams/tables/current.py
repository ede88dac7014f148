"""The tables at a position of the log.

In a run over past events, a table may have several versions by event time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.columns.arrow_columns import column_of
from streams.nearest import did_you_mean, listed
from streams.tables.business import PREFIX, BusinessHours, hours_of
from streams.tables.errors import CalendarUnknown, TableUnknown
from streams.tables.files import TableFiles
from streams.tables.form import VALUE_TYPES, TableForm, TableVersion
from streams.tables.mapped import MappedTable, key_texts

Row: TypeAlias = Sequence[Any] | None
"""The values of a changed row in the order of the columns; None: the row was removed."""


@dataclass(frozen=True)
class OpenTable:
    """A version of a table whose files are mapped.

    ``changes`` has the rows changed since, by key; None: a removed row.
    """

    version: TableVersion
    table: MappedTable
    changes: Mapping[str, Row] = field(default_factory=dict)

    @cached_property
    def _changed(self) -> tuple[MappedTable, NDArray[np.bool_]]:
        """The changed rows as a table, and a mask over them that is false for removed rows."""
        form = self.version.form
        rows = [[None] * len(form.columns) if row is None else row for row in self.changes.values()]
        columns = [
            pa.array([row[at] for row in rows], VALUE_TYPES[kind]) for at, kind in enumerate(form.columns.values())
        ]
        keys = pa.array(list(self.changes), pa.string())
        return MappedTable.of_keys(form, columns, keys), np.array([row is not None for row in self.changes.values()])

    @cached_property
    def hours(self) -> BusinessHours:
        return hours_of(self.table.columns)

    def values_for(self, column: str | None, keys: pa.Array) -> pa.Array:
        """Return the value of a column for each key text, or null for a null or unknown key or an unknown column.

        Without ``column``, return whether each key has a row.
        """
        if column is not None and column not in self.version.form.columns:
            return pa.nulls(len(keys))
        rows = self.table.find(keys)
        if not self.changes:
            return _values(self.table, rows, column, keys)
        changed, exists = self._changed
        changed_rows = changed.find(keys)
        is_changed = changed_rows >= 0
        changed_rows[is_changed & ~exists[changed_rows]] = -1
        return pc.if_else(
            column_of(is_changed), _values(changed, changed_rows, column, keys), _values(self.table, rows, column, keys)
        )

    def rows(self) -> pa.RecordBatch:
        """Return the current rows: the unchanged rows of the version first, then the changed rows."""
        form, columns = self.version.form, list(self.table.columns)
        if self.changes:
            changed, exists = self._changed
            is_kept = np.ones(len(self.table.keys), np.bool_)
            replaced = self.table.find(changed.keys)
            is_kept[replaced[replaced >= 0]] = False
            kept, added = column_of(is_kept), column_of(exists)
            columns = [
                pa.concat_arrays([before.filter(kept), after.filter(added)])
                for before, after in zip(columns, changed.columns, strict=True)
            ]
        return pa.RecordBatch.from_arrays(columns, names=list(form.columns))

    def to_json(self) -> dict[str, Any]:
        changes = {key: None if row is None else list(row) for key, row in self.changes.items()}
        return {**self.version.to_json(), **({"changes": changes} if changes else {})}


@dataclass(frozen=True)
class Tables:
    """The reference tables at a position of the log. They are immutable, so a batch keeps the tables of its position.

    Attributes:
        versions: The versions of each table by name. In a run over past events, a table may have several versions. They
            are sorted by the event time from which each applies.
    """

    files: TableFiles = field(default_factory=TableFiles)
    versions: Mapping[str, tuple[OpenTable, ...]] = field(default_factory=dict)

    def with_version(self, version: TableVersion, changes: Mapping[str, Row] | None = None) -> Self:
        """Return the tables with a new version. Earlier versions are removed, unless the new one has ``since_us``."""
        table = self.files.open(version.digest)
        opened = OpenTable(
            replace(version, form=table.form), table, changes or {}
        )  # a saved state sorts columns by name, the file does not
        earlier = () if version.since_us is None else self.versions.get(version.name, ())
        return self._with(version.name, (*earlier, opened))

    def with_row(self, name: str, key: str, row: Row) -> Self:
        require_table(self.versions, name)
        *earlier, last = self.versions[name]
        return self._with(name, (*earlier, OpenTable(last.version, last.table, {**last.changes, key: row})))

    def without(self, name: str) -> Self:
        return type(self)(self.files, {other: versions for other, versions in self.versions.items() if other != name})

    def _with(self, name: str, versions: tuple[OpenTable, ...]) -> Self:
        return type(self)(self.files, {**self.versions, name: versions})

    @property
    def forms(self) -> dict[str, TableForm]:
        return {name: versions[-1].version.form for name, versions in self.versions.items()}

    def rows(self, name: str) -> pa.RecordBatch:
        return self.versions[name][-1].rows()

    def looked_up(
        self, name: str, column: str | None, keys: Sequence[pa.Array], times_us: NDArray[np.int64] | None
    ) -> pa.Array:
        """Return the value of a column for each key.

        The value is null for a null key, a key without row, and an unknown table or column.

        Args:
            name: The table.
            column: The column. If it is None, return whether the key has a row, or null for a null key.
            keys: The columns of the key, which are texts or whole numbers.
            times_us: The event time of each lookup, which selects a version of the table. None selects the last
                version.
        """
        versions, texts = self.versions.get(name, ()), key_texts(keys)
        if not versions:
            return pa.nulls(len(texts))
        if len(versions) == 1 or times_us is None:
            return versions[-1].values_for(column, texts)
        version_numbers = _version_numbers(versions, times_us)
        parts = [version.values_for(column, texts) for version in versions]
        rows = column_of(version_numbers * len(texts) + np.arange(len(texts)))
        return pa.concat_arrays([part.cast(parts[-1].type, safe=False) for part in parts]).take(rows)

    def hours(
        self, calendar: str, times_us: NDArray[np.int64] | None, size: int
    ) -> Iterator[tuple[NDArray[np.intp], BusinessHours]]:
        """Yield each version of a calendar that is read: the indices of the rows that read it, and its hours.

        An unknown calendar yields nothing. ``times_us`` selects versions as in ``looked_up``. ``size`` is the number of
        rows.
        """
        versions = self.versions.get(PREFIX + calendar, ())
        if times_us is None or len(versions) == 1:
            yield from ((np.arange(size), version.hours) for version in versions[-1:])
            return
        version_numbers = _version_numbers(versions, times_us)
        for number, version in enumerate(versions):
            if len(rows := np.flatnonzero(version_numbers == number)):
                yield rows, version.hours

    def to_json(self) -> list[Any]:
        """Return the tables as plain JSON, one object per version."""
        return [version.to_json() for versions in self.versions.values() for version in versions]

    @classmethod
    def from_json(cls, entries: Iterable[Mapping[str, Any]], files: TableFiles) -> Self:
        """Read the JSON form of ``to_json``, and open the files of the tables."""
        tables = cls(files)
        for entry in entries:
            tables = tables.with_version(TableVersion.from_json(entry), entry.get("changes"))
        return tables


def require_table(tables: Mapping[str, Any], name: str) -> None:
    """Raise ``TableUnknown`` or ``CalendarUnknown`` unless a table or a calendar has the given name."""
    if name in tables:
        return
    kind, error = ("calendar", CalendarUnknown) if name.startswith(PREFIX) else ("table", TableUnknown)
    name = name.removeprefix(PREFIX)
    others = sorted(
        table_name.removeprefix(PREFIX)
        for table_name in tables
        if table_name.startswith(PREFIX) == (error is CalendarUnknown)
    )
    listing = f"{kind}s are {listed(others)}" if others else f"there are no {kind}s"
    raise error(f"no {kind} is called {name!r}{did_you_mean(name, others)}; {listing}", table=name)


def require_lookup(forms: Mapping[str, TableForm], name: str, column: str | None, keys: int | None) -> None:
    """Raise an error unless a table exists and has the column and the number of keys of a lookup (``Lookup``)."""
    require_table(forms, name)
    forms[name].require(name, column, keys)


def _version_numbers(versions: Sequence[OpenTable], times_us: NDArray[np.int64]) -> NDArray[np.intp]:
    begins = np.array([version.version.since_us for version in versions[1:]], np.int64)
    return np.searchsorted(begins, times_us, side="right")


def _values(table: MappedTable, rows: NDArray[np.int64], column: str | None, keys: pa.Array) -> pa.Array:
    """Return the values of a column at row indices, and null at index -1.

    Without ``column``, return whether each index is a row, and null for null ``keys``.
    """
    if column is None:
        return pc.if_else(keys.is_null(), pa.scalar(None, pa.bool_()), column_of(rows >= 0))
    return table.column(column).take(pa.array(rows, mask=rows < 0))
