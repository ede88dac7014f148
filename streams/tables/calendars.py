"""Calendars of business hours. They are declared by weekday, holidays and exceptions, and stored as a table.

A row is an interval of business time, in UTC. Local times are converted once, when the calendar is declared. So later
changes of a zone's daylight saving have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

import orjson
import pyarrow as pa

from streams.errors import DeclarationError
from streams.showing import shown
from streams.tables.business import OPENS, PREFIX
from streams.tables.errors import CalendarRefused
from streams.tables.form import TableForm, TableVersion
from streams.tables.icalendar import days_of
from streams.tables.reading import keep_rows
from streams.time_forms import zone_of

_FORM = TableForm(
    key=(OPENS,),
    columns={OPENS: "integer", "closes": "integer", "begins": "integer", "ends": "integer", "document": "text"},
)
_MEMBERS = ("zone", "hours", "holidays", "ical", "exceptions", "years")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_USUAL_YEARS = (2000, 2050)
_MOST_YEARS = 200
_MOST_EXCEPTIONS = 10_000
_MOST_INTERVALS = 24  # per day
_MOST_ROWS = 100_000
_MOST_HOLIDAYS = 100_000
_INTERVAL = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")
_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair
_DAY_MINUTES = 24 * 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)

Minutes: TypeAlias = Sequence[tuple[int, int]]  # intervals of a day, in minutes of local time since midnight
PublicHolidays: TypeAlias = Callable[[Mapping[str, Any], int, int], Collection[date]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """A declared calendar of business hours.

    Attributes:
        hours: Intervals of each weekday, Monday first.
        closed: Holidays.
        exceptions: Intervals of single days, which override the usual hours and holidays.
        years: The first and last year.
        document: The declaration.
    """

    zone: str
    hours: Sequence[Minutes]
    closed: frozenset[date]
    exceptions: Mapping[date, Minutes]
    years: tuple[int, int]
    document: Mapping[str, Any]

    def days(self) -> Iterator[tuple[date, Minutes]]:
        """Yield each day of the calendar's years with its intervals of business hours."""
        day, last = date(self.years[0], 1, 1), date(self.years[1], 12, 31)
        while day <= last:
            usual = () if day in self.closed else self.hours[day.weekday()]
            yield day, self.exceptions.get(day, usual)
            day += timedelta(days=1)


def read_calendar(document: Mapping[str, Any], public_holidays: PublicHolidays) -> Calendar:
    """Read the declaration of a calendar. ``CalendarRefused`` names the faulty member.

    ``public_holidays`` returns the holidays for the member ``holidays``, a first year and a last year.
    """
    if unknown := [name for name in document if name not in _MEMBERS]:
        raise _refused(str(unknown[0]), f"there is no such member; members are {', '.join(_MEMBERS)}")
    zone, years = _zone(document.get("zone")), _years(document.get("years"))
    first, last = date(years[0], 1, 1), date(years[1], 12, 31)
    closed = set[date]()
    if (holidays := document.get("holidays")) is not None:
        closed.update(public_holidays(_members(holidays, "holidays"), *years))
    if (text := document.get("ical")) is not None:
        if not isinstance(text, str) or _HALF.search(text):
            raise _refused("ical", "write the iCalendar text, which is Unicode")
        for number, day in enumerate(days_of(text, first, last)):
            closed.add(day)
            if number >= _MOST_HOLIDAYS:
                raise _refused("ical", f"the text has more than {_MOST_HOLIDAYS:,} days")
    exception_hours = _members(document.get("exceptions", {}), "exceptions")
    if len(exception_hours) > _MOST_EXCEPTIONS:
        raise _refused("exceptions", f"there are {len(exception_hours):,}; a calendar has at most {_MOST_EXCEPTIONS:,}")
    exceptions = {_day(day, years): _minutes(hours, f"exceptions.{day}") for day, hours in exception_hours.items()}
    hours = _weekly(_members(document.get("hours"), "hours"))
    return Calendar(
        zone=zone, hours=hours, closed=frozenset(closed), exceptions=exceptions, years=years, document=dict(document)
    )


def keep_calendar(name: str, calendar: Calendar) -> TableVersion:
    """Store a calendar in the cache folder, as version 1 of a table.

    Raises ``CalendarRefused`` if it has no or too many intervals.
    """
    if (number := sum(len(minutes) for _, minutes in calendar.days())) > _MOST_ROWS:
        raise _refused("years", f"they have {number:,} intervals of business time; at most {_MOST_ROWS:,} are taken")
    zone = zone_of(calendar.zone)
    rows: list[tuple[int, int, int, int]] = []
    end = -1
    for day, minutes in calendar.days():
        if minutes:
            begin, end = _moment(day, 0, zone), _moment(day, _DAY_MINUTES, zone)
            moments = [(_moment(day, opens, zone), _moment(day, closes, zone)) for opens, closes in minutes]
            rows += [(opens, closes, begin, end) for opens, closes in moments if opens < closes]
    if not rows:
        raise _refused("hours", "no day of the calendar has business hours")
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    text = orjson.dumps(calendar.document, option=orjson.OPT_SORT_KEYS).decode()
    document = pa.array([text, *[None] * (len(rows) - 1)], pa.string())
    version = keep_rows(_FORM, pa.RecordBatch.from_arrays([*columns, document], names=list(_FORM.columns)))
    return TableVersion.from_json({**version.to_json(), "name": PREFIX + name, "version": 1})


def document_of(rows: pa.RecordBatch) -> dict[str, Any]:
    """Return the declaration of a calendar from the rows of its table."""
    document: dict[str, Any] = orjson.loads(rows.column("document")[0].as_py())
    return document


def _moment(day: date, minute: int, zone: tzinfo) -> int:
    """Return the moment of a minute of a local day in microseconds UTC.

    If clocks skip the minute, the next moment counts.
    """
    local = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)  # noqa: DTZ001 - as clocks show it
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != local:  # clocks skip this minute
        before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
        while moment - before > _SECOND:
            middle = before + (moment - before) // 2
            if middle.astimezone(zone).replace(tzinfo=None) >= local:
                moment = middle
            else:
                before = middle
        moment = moment.replace(microsecond=0)
    return (moment - _EPOCH) // _MICROSECOND


def _zone(name: Any) -> str:
    if not isinstance(name, str):
        raise _refused("zone", "write a time zone such as Europe/Berlin")
    try:
        zone_of(name)
    except DeclarationError as error:
        raise _refused("zone", str(error)) from error
    return name


def _years(years: Any) -> tuple[int, int]:
    if years is None:
        return _USUAL_YEARS
    match years:
        case [int(first), int(last)] if 1970 <= first <= last <= 2200 and last - first < _MOST_YEARS:
            return first, last
    raise _refused("years", f"{shown(years)} is not a first and a last year from 1970 to 2200, such as [2020, 2040]")


def _members(document: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise _refused(name, "write an object" if document is not None else "it is missing")
    return {str(member): value for member, value in document.items()}


def _weekly(members: Mapping[str, Any]) -> list[Minutes]:
    hours: list[Minutes | None] = [None] * 7
    for name, written in members.items():
        first, sign, last = name.strip().lower().partition("-")
        if first not in _WEEKDAYS or (last if sign else first) not in _WEEKDAYS:
            raise _refused("hours", f"{shown(name)} is not a weekday, or two with '-': write mon, or mon-fri")
        begin, end = _WEEKDAYS.index(first), _WEEKDAYS.index(last if sign else first)
        for place in [*range(begin, end + 1)] or [*range(begin, 7), *range(end + 1)]:
            if hours[place] is not None:
                raise _refused("hours", f"{_WEEKDAYS[place]} is in two members; name it once")
            hours[place] = _minutes(written, f"hours.{name}")
    return [minutes or () for minutes in hours]


def _minutes(written: Any, member: str) -> Minutes:
    if written == "closed":
        return ()
    parts = written.split(",") if isinstance(written, str) else []
    intervals = [_interval(part) for part in parts[: _MOST_INTERVALS + 1]]
    borders = [border for interval in intervals if interval for border in interval]
    is_rising = borders == sorted(borders) and all(interval and interval[0] < interval[1] for interval in intervals)
    if not intervals or len(intervals) > _MOST_INTERVALS or not is_rising:
        raise _refused(
            member,
            f"{shown(written)} are not hours of a day in their order; write for example 09:00-12:00, 13:00-17:00, or "
            "closed; a day ends at 24:00, so hours over midnight are those of two days",
        )
    return [interval for interval in intervals if interval]


def _interval(written: str) -> tuple[int, int] | None:
    interval_match = _INTERVAL.fullmatch(written)
    if interval_match is None:
        return None
    opens, opens_minute, closes, closes_minute = map(int, interval_match.groups())
    ends = opens * 60 + opens_minute, closes * 60 + closes_minute
    return ends if max(opens_minute, closes_minute) < 60 and max(ends) <= _DAY_MINUTES else None


def _day(written: str, years: tuple[int, int]) -> date:
    try:
        day = date.fromisoformat(written)
    except ValueError:
        day = None
    if day is None or day.isoformat() != written or not years[0] <= day.year <= years[1]:
        span = f"{years[0]} to {years[1]}, such as {years[0]}-12-24"
        raise _refused("exceptions", f"{shown(written)} is not a date of the years {span}")
    return day


def _refused(member: str, reason: str) -> CalendarRefused:
    return CalendarRefused(f"{member}: {reason}", field=member)
