"""Calendars on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from api.schemas.tables import TableUser
from api.wire import PartModel, Time, WireModel
from service import CalendarReport, RegisteredTable, TableReport
from streams import format_time
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

    @classmethod
    def from_record(cls, record: RegisteredTable) -> Self:
        """The wire form of a version."""
        return cls(version=record.version, created_at=format_time(record.registered_us))


class CalendarModel(CalendarVersion):
    """A calendar, and the operators that use it."""

    name: str
    users: list[TableUser] = Field(description="The operators that use it; they keep it from being deleted.")

    @classmethod
    def from_table(cls, report: TableReport) -> Self:
        """The wire form of a calendar from its table."""
        return cls(
            **CalendarVersion.from_record(report.record).model_dump(),
            name=report.record.name.removeprefix(PREFIX),
            users=[TableUser(kind=one.kind, name=one.name) for one in report.users],
        )


class CalendarDetail(CalendarModel):
    """A calendar with its declaration and its versions."""

    calendar: dict[str, Any] = Field(description="The declaration as it was given.")
    versions: list[CalendarVersion] = Field(description="The newest first.")

    @classmethod
    def from_domain(cls, report: CalendarReport) -> Self:
        """The wire form of a calendar."""
        return cls(
            **CalendarModel.from_table(report.table).model_dump(),
            calendar=dict(report.document),
            versions=[CalendarVersion.from_record(record) for record in reversed(report.versions)],
        )


class CalendarList(PartModel):
    """All calendars, by name."""

    items: list[CalendarModel]
