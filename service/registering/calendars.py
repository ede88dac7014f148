"""Calendars, as use cases without HTTP: declare, look up, delete. A calendar is stored and versioned as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.errors import InvalidTableName
from service.registering.public_holidays import public_holidays
from service.registering.tables import TableLibrary, TableReport
from service.stores import ANY, Condition, RegisteredTable
from streams import name_fault
from streams.tables import PREFIX, document_of, keep_calendar, read_calendar


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarReport:
    """A registered calendar: its table, its declaration, and its versions, the current one last."""

    name: str
    table: TableReport
    document: Mapping[str, Any]
    versions: tuple[RegisteredTable, ...]


class CalendarLibrary:
    """The use cases of calendars."""

    def __init__(self, tables: TableLibrary) -> None:
        self._tables = tables

    def put(self, name: str, document: Mapping[str, Any], condition: Condition = ANY) -> CalendarReport:
        """Register a declaration; other hours under the same name are the calendar's next version.

        Raises ``InvalidTableName``, ``TooManyTables``, or ``CalendarRefused`` with the member that is wrong.
        """
        if fault := name_fault("calendar", name):
            raise InvalidTableName(fault)
        self._tables.require_room(PREFIX + name)
        version = keep_calendar(name, read_calendar(document, public_holidays))
        return self._report(self._tables.register(version, condition))

    def calendar(self, name: str) -> CalendarReport:
        """A calendar; raises ``UnknownTable``."""
        return self._report(self._tables.table(PREFIX + name))

    def calendars(self) -> list[TableReport]:
        """All calendars, by name."""
        return self._tables.tables(of_calendars=True)

    def delete(self, name: str, condition: Condition = ANY) -> None:
        """Delete a calendar that no operator uses; raises ``TableInUse`` if one does."""
        self._tables.delete(PREFIX + name, condition)

    def _report(self, table: TableReport) -> CalendarReport:
        name = table.record.name
        return CalendarReport(
            name=name.removeprefix(PREFIX),
            table=table,
            document=document_of(self._tables.rows(name)),
            versions=tuple(self._tables.store.versions(name)),
        )
