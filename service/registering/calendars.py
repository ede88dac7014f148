"""Calendars, as use cases without HTTP: declare, look up, delete. A calendar is stored and versioned as a table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from service.errors import InvalidTableName
from service.registering.tables import TableLibrary, TableReport
from service.stores import ANY, Condition, RegisteredTable
from streams import listed, name_fault
from streams.tables import PREFIX, CalendarRefused, document_of, keep_calendar, read_calendar

_CODE = re.compile(r"[A-Z0-9]{2,5}")  # of a country or a market


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

        Raises:
            InvalidTableName: The name is not valid.
            CalendarRefused: The declaration is refused; the message names the member.
            TooManyTables: The service has the greatest number of tables and calendars.
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
            versions=tuple(self._tables.versions(name)),
        )


def public_holidays(wanted: Mapping[str, Any], first: int, last: int) -> list[date]:
    """The public holidays of a country, perhaps of one of its parts, or the closing days of a stock market.

    Raises:
        CalendarRefused: The country, part or market is unknown.
    """
    import holidays  # noqa: PLC0415 - few commands and requests need it

    if set(wanted) not in ({"country"}, {"country", "subdivision"}, {"market"}):
        raise _refused("write the member country, perhaps with subdivision, or the member market")
    years, part = range(first, last + 1), wanted.get("subdivision")
    part = None if part is None else str(part)
    if not _CODE.fullmatch(str(wanted.get("market", wanted.get("country")))):
        raise _unknown(wanted)
    try:
        with warnings.catch_warnings(action="ignore"):  # where some of the years have no holidays
            if "market" in wanted:
                return list(holidays.financial_holidays(wanted["market"], years=years))
            return list(holidays.country_holidays(wanted["country"], subdiv=part, years=years))
    except (NotImplementedError, AttributeError, TypeError) as error:  # how the library refuses names
        raise _unknown(wanted) from error


def _unknown(wanted: Mapping[str, Any]) -> CalendarRefused:
    """The refusal of an unknown country, part or market, with a list of the known ones."""
    import holidays  # noqa: PLC0415 - few commands and requests need it

    known = holidays.list_supported_countries(include_aliases=False)
    if "market" in wanted:
        others = f"markets are {listed(sorted(holidays.list_supported_financial()))}"
    elif wanted.get("subdivision") is not None and (own := known.get(str(wanted["country"]))):
        others = f"its subdivisions are {listed(sorted(own))}"
    else:
        others = f"countries are {listed(sorted(known))}"
    return _refused(f"{dict(wanted)} is unknown; {others}")


def _refused(reason: str) -> CalendarRefused:
    return CalendarRefused(f"holidays: {reason}", field="holidays")
