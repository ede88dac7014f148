"""Calendars on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from api.schemas.tables import TableUser
from api.wire import PartModel, Time, WireModel
from service import CalendarReport, TableReport
from streams.tables import PREFIX

CALENDAR_EXAMPLE: dict[str, Any] = {
    "zone": "Europe/Berlin",
    "hours": {"mon-thu": "09:00-12:00, 13:00-17:00", "fri": "09:00-15:00"},
    "holidays": {"country": "DE", "subdivision": "BE"},
    "exceptions": {"2026-12-24": "09:00-12:00", "2026-12-31": "closed"},
}


class CalendarVersion(WireModel):
    """A version of a calendar."""

    version: int = Field(description="Counts from 1 for each name and never repeats.")
    created_at: Time


class CalendarModel(CalendarVersion):
    """A calendar, and the operators that use it."""

    name: str
    users: list[TableUser] = Field(description="The operators that use it; they keep it from being deleted.")

    @classmethod
    def from_table(cls, report: TableReport, **members: Any) -> Self:
        """Convert the table of a calendar. ``members`` are further members of a subclass."""
        name = report.record.name.removeprefix(PREFIX)
        return cls.copying(report.record, name=name, users=report.users, **members)


class CalendarDetail(CalendarModel):
    """A calendar with its declaration and its versions."""

    calendar: dict[str, Any] = Field(description="The declaration as it was given.")
    versions: list[CalendarVersion] = Field(description="The newest first.")

    @classmethod
    def from_domain(cls, report: CalendarReport) -> Self:
        return cls.from_table(report.table, calendar=report.document, versions=report.versions[::-1])


class CalendarList(PartModel[CalendarModel]):
    """All calendars, by name."""
