"""Reference tables and calendars: upload, change, look up, delete, and list users.

A calendar is stored as a table, and has versions like a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from service.errors import InvalidTableName, PreconditionFailed, RegistryContended, TableInUse, TooManyTables
from service.registering.public_holidays import public_holidays
from service.runtime import Stores
from service.settings import PREFIX as SETTINGS_PREFIX
from service.settings import Settings
from service.stores import ANY, Checks, Condition, RegisteredOperator, RegisteredTable
from shards import KINDS_BY_NAME
from streams import Clock, listed, name_fault
from streams.tables import (
    PREFIX,
    Lookup,
    TableColumnUnknown,
    TableDeclaration,
    TableFormat,
    TableLimits,
    TableRefused,
    Tables,
    TableVersion,
    document_of,
    keep_calendar,
    keep_rows,
    keep_table,
    read_calendar,
    read_row,
    require_lookup,
    title_of,
)

_ATTEMPTS = 50
_MOST_CHANGES = 10_000  # changes of single rows, which every shard keeps in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpload:
    """An uploaded file with the rows of a table. ``declaration`` has the key and the column types of the request."""

    name: str
    path: Path
    format: TableFormat
    declaration: TableDeclaration
    condition: Condition = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """A registered table, and the operators that use it. ``is_new`` is True if the call changed the table."""

    record: RegisteredTable
    users: tuple[RegisteredOperator, ...]
    is_new: bool = False


class TableLibrary:
    """Registers, changes and reads tables."""

    def __init__(self, stores: Stores, settings: Settings, clock: Clock) -> None:
        self.store = stores.tables
        self._registry = stores.registry
        self._limits = settings.limits
        self._clock = clock

    def put(self, upload: TableUpload) -> TableReport:
        """Register the rows of a file. If the table has different rows, the new rows become its next version.

        Raises ``TableRefused`` with line and column if rows cannot be read, ``TableInUse`` as ``register`` does, and
        ``InvalidTableName`` or ``TooManyTables`` for the name.
        """
        if fault := name_fault("table", upload.name):
            raise InvalidTableName(fault)
        self.require_room(upload.name)
        limits = TableLimits(rows=self._limits.max_table_rows, size_bytes=self._limits.max_table_bytes)
        version = keep_table(upload.path, upload.format, upload.declaration, limits)
        return self.register(TableVersion.from_json({**version.to_json(), "name": upload.name}), upload.condition)

    def require_room(self, name: str) -> None:
        """Raise ``TooManyTables`` if ``name`` is new and the service has the maximum of tables and calendars."""
        if name not in (forms := self.forms()) and len(forms) >= self._limits.max_tables:
            raise TooManyTables(
                f"the service has {len(forms)} tables and calendars, the most that it may have; delete one, or set "
                f"{SETTINGS_PREFIX}LIMITS__MAX_TABLES",
                most=len(forms),
            )

    def register(self, version: TableVersion, condition: Condition) -> TableReport:
        """Register a version whose content is in the cache folder. Registering the same content again changes nothing.

        Raises ``TableInUse`` if an operator looks the table up, and the version has another key, lacks a column that
        the operator reads, or gives such a column another type.
        """
        users = self._require_usable(version)

        def required() -> Checks:
            checks = self.store.use_check(version.name)
            self._require_usable(version)
            return checks

        path, now_us = self.store.files.path(version.digest), self._clock.now_us()
        record, is_new = self.store.put(version, path, now_us, condition, required)
        return TableReport(record=record, users=_distinct(users), is_new=is_new)

    def _require_usable(self, version: TableVersion) -> list[tuple[RegisteredOperator, Lookup]]:
        """Return the operators that look a table up. Raise ``TableInUse`` if one cannot use the new version."""
        users = self._users_of(version.name)
        former = self.forms().get(version.name)
        for user, lookup in users:
            if former and (fault := former.changed(version.form, lookup.column, lookup.keys)):
                raise TableInUse(f"the {user.kind} {user.name!r} looks the table up, but {fault}", table=version.name)
            try:
                require_lookup({version.name: version.form}, *lookup)
            except TableColumnUnknown as error:
                raise TableInUse(
                    f"the {user.kind} {user.name!r} looks the table up, but {error.message}", table=version.name
                ) from error
        self._require_rows(users, Tables(self.store.files).with_version(version))
        return users

    def change_row(
        self, name: str, key: Sequence[str], row: Mapping[str, Any] | None, condition: Condition = ANY
    ) -> TableReport:
        """Set the row of a key, or remove it if ``row`` is None. ``key`` has the values of the key columns in order.

        If the current version already has the maximum number of row changes, these changes and the new one are merged
        into the table's next version.

        Raises ``TableRefused`` for a key of the wrong form, or for a value that does not have the type of its column.
        """
        self.store.get(name)
        if name.startswith(PREFIX):
            raise TableRefused(f"the {title_of(name)} has no rows to change; declare it again", field="name")
        users: list[tuple[RegisteredOperator, Lookup]] = []

        def read(record: RegisteredTable) -> tuple[str, tuple[Any, ...] | None]:
            users[:] = self._users_of(name)
            row_key, values = read_row(record.table.form, key, row)
            self._require_rows(users, self._opened(record).with_row(name, row_key, values))
            return row_key, values

        for _ in range(_ATTEMPTS):
            record = self.store.get(name)
            if record.changes < _MOST_CHANGES:
                changed = self.store.change_row(name, read, condition)
                return TableReport(record=changed, users=_distinct(users), is_new=True)
            condition.check_record(record)
            with suppress(PreconditionFailed):  # another writer was faster
                return self.register(self._merged(record, *read(record)), Condition(matches=(record.tag,)))
        raise RegistryContended.over(f"the {title_of(name)}")

    def table(self, name: str) -> TableReport:
        return TableReport(record=self.store.get(name), users=_distinct(self._users_of(name)))

    def tables(self, *, of_calendars: bool = False) -> list[TableReport]:
        """Return all calendars if ``of_calendars``, otherwise all tables except calendars. They are sorted by name."""
        names = [record.name for record in self.store.all()]
        return [self.table(name) for name in names if name.startswith(PREFIX) == of_calendars]

    def rows(self, name: str) -> pa.RecordBatch:
        return self._opened(self.store.get(name)).rows(name)

    def delete(self, name: str, condition: Condition = ANY) -> None:
        """Delete a table. Raises ``TableInUse`` if an operator looks it up."""

        def required() -> Checks:
            checks = self.store.use_check(name)
            if users := _distinct(self._users_of(name)):
                named = listed([f"the {user.kind} {user.name}" for user in users])
                raise TableInUse(
                    f"the {title_of(name)} is looked up by {named}; delete or change them first",
                    table=name,
                    users=[{"kind": user.kind, "name": user.name} for user in users],
                )
            return checks

        self.store.remove(name, condition, required)

    def _require_rows(self, users: Iterable[tuple[RegisteredOperator, Lookup]], tables: Tables) -> None:
        for user in _distinct((user, lookup) for user, lookup in users if lookup.keys is None):
            KINDS_BY_NAME[user.kind].require_rows(user.definition, tables)

    def forms(self) -> dict[str, Any]:
        """Return the columns and key of each table, by name."""
        return {record.name: record.table.form for record in self.store.all()}

    def _merged(self, record: RegisteredTable, key: str, row: tuple[Any, ...] | None) -> TableVersion:
        """Make a table version from all row changes and ``row``. If ``row`` is None, the row of ``key`` is removed."""
        tables = self._opened(record).with_row(record.name, key, row)
        version = keep_rows(record.table.form, tables.rows(record.name))
        return TableVersion.from_json({**version.to_json(), "name": record.name})

    def _opened(self, record: RegisteredTable) -> Tables:
        return Tables(self.store.files).with_version(record.table, self.store.changes(record))

    def _users_of(self, name: str) -> list[tuple[RegisteredOperator, Lookup]]:
        return [
            (operator, lookup)
            for operator in self._registry.every_operator()
            if operator.stage != "retired"
            for lookup in KINDS_BY_NAME[operator.kind].lookups(operator.definition)
            if lookup.table == name
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarReport:
    """A registered calendar, with its declaration as ``document`` and with all its versions, the current one last."""

    name: str
    table: TableReport
    document: Mapping[str, Any]
    versions: tuple[RegisteredTable, ...]


class CalendarLibrary:
    """Registers and reads calendars."""

    def __init__(self, tables: TableLibrary) -> None:
        self._tables = tables

    def put(self, name: str, document: Mapping[str, Any], condition: Condition = ANY) -> CalendarReport:
        """Register a calendar. If the stored calendar has different hours, the new hours become its next version.

        Raises ``InvalidTableName``, ``TooManyTables``, or ``CalendarRefused`` with the invalid member.
        """
        if fault := name_fault("calendar", name):
            raise InvalidTableName(fault)
        self._tables.require_room(PREFIX + name)
        version = keep_calendar(name, read_calendar(document, public_holidays))
        return self._report(self._tables.register(version, condition))

    def calendar(self, name: str) -> CalendarReport:
        return self._report(self._tables.table(PREFIX + name))

    def calendars(self) -> list[TableReport]:
        return self._tables.tables(of_calendars=True)

    def delete(self, name: str, condition: Condition = ANY) -> None:
        """Delete a calendar. Raises ``TableInUse`` if an operator uses it."""
        self._tables.delete(PREFIX + name, condition)

    def _report(self, table: TableReport) -> CalendarReport:
        name = table.record.name
        return CalendarReport(
            name=name.removeprefix(PREFIX),
            table=table,
            document=document_of(self._tables.rows(name)),
            versions=tuple(self._tables.store.versions(name)),
        )


def require_lookups(stores: Stores, lookups: Collection[Lookup]) -> None:
    """Check that the tables and columns of lookups exist."""
    if lookups:
        forms = {record.name: record.table.form for record in stores.tables.all()}
        for lookup in lookups:
            require_lookup(forms, *lookup)


def tables_for(stores: Stores, lookups: Collection[Lookup]) -> Tables:
    """Return the current versions of the tables that lookups read, for a run in this process."""
    tables = Tables(stores.tables.files)
    for name in sorted({lookup.table for lookup in lookups}):
        record = stores.tables.get(name)
        tables = tables.with_version(record.table, stores.tables.changes(record))
    return tables


def past_tables(stores: Stores, lookups: Collection[Lookup]) -> Tables:
    """Return all versions of the tables that lookups read, each with the time of its registration."""
    tables = Tables(stores.tables.files)
    for name in sorted({lookup.table for lookup in lookups}):
        for record in stores.tables.versions(name):
            version = replace(record.table, since_us=record.registered_us)
            tables = tables.with_version(version, stores.tables.changes(record))
    return tables


def _distinct(users: Iterable[tuple[RegisteredOperator, Lookup]]) -> tuple[RegisteredOperator, ...]:
    return tuple({(operator.kind, operator.name): operator for operator, _ in users}.values())
