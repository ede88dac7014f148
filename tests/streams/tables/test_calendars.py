"""Declarations of calendars: weekly hours, holidays, iCalendar texts and exceptions, and what is refused."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from streams.tables import (
    PREFIX,
    CalendarRefused,
    CalendarUnknown,
    TableFiles,
    document_of,
    keep_calendar,
    read_calendar,
)
from streams.tables.current import Tables, require_lookup

WEEK = {"mon-thu": "09:00-12:00, 13:00-17:00", "fri": "09:00-24:00"}
USUAL = {"zone": "Europe/Berlin", "hours": WEEK, "years": [2026, 2027]}


def no_holidays(wanted, first, last):
    assert (dict(wanted), first, last) == ({"country": "DE"}, 2026, 2027)
    return [date(2026, 1, 1), date(2027, 1, 1)]


def read(**members):
    return read_calendar({**USUAL, **members}, no_holidays)


def event(*lines):
    return "\r\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR", ""])


def test_the_hours_of_days_are_those_of_weekday_holiday_and_exception():
    days = dict(
        read(
            holidays={"country": "DE"},
            ical=event("DTSTART;VALUE=DATE:20260504", "DTEND;VALUE=DATE:20260506"),
            exceptions={"2026-05-05": "10:00-11:00", "2026-05-09": "08:00-09:30", "2026-05-08": "closed"},
        ).days()
    )
    assert (min(days), max(days), len(days)) == (date(2026, 1, 1), date(2027, 12, 31), 730)
    assert days[date(2026, 1, 1)] == days[date(2026, 5, 4)] == days[date(2026, 5, 8)] == days[date(2026, 5, 10)] == ()
    assert days[date(2026, 5, 5)] == [(600, 660)]
    assert days[date(2026, 5, 6)] == [(540, 720), (780, 1020)]
    assert days[date(2026, 5, 9)] == [(480, 570)]
    assert days[date(2026, 5, 15)] == [(540, 1440)]


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        (["DTSTART;VALUE=DATE:20260504"], ["2026-05-04"]),
        (["DTSTART:20260504", "DTEND:20260504"], ["2026-05-04"]),
        (["DTSTART:20260504", "DURATION:P2D"], ["2026-05-04", "2026-05-05"]),
        (["DTSTART:20200501", "RRULE:FREQ=YEARLY"], ["2026-05-01", "2027-05-01"]),
        (["DTSTART:20200501", "RRULE:FREQ=YEARLY;BYMONTH=05;BYMONTHDAY=1;COUNT=7"], ["2026-05-01"]),
        (["DTSTART:20200229", "RRULE:FREQ=YEARLY;UNTIL=20261231"], []),
        (["DTSTART:20250501", "RRULE:FREQ=YEARLY;INTERVAL=2"], ["2027-05-01"]),
        (["DTSTART;TZID=Europe/Berlin:20260504T090000"], []),
        (["SUMMARY:May day\r\n  BEGIN:VEVENT", "dtstart:2026\r\n 0504"], ["2026-05-04"]),
        (["DTSTART:20260504", "STATUS:Cancelled"], []),
        (["DTSTART:20260504T090000", "RRULE:FREQ=DAILY", "EXDATE:20260505T090000"], []),
        (["DTSTART:20260504", "DURATION:P2DT0H0M0S"], ["2026-05-04", "2026-05-05"]),
        (
            ["DTSTART:20260504", "DURATION:P2D", "BEGIN:VALARM", "DURATION:PT5M", "END:VALARM"],
            ["2026-05-04", "2026-05-05"],
        ),
        (["DTSTART:20251230", "DURATION:P1W"], [f"2026-01-0{day}" for day in range(1, 6)]),
    ],
)
def test_whole_days_of_icalendar_texts_are_closed(lines, days):
    assert sorted(read(ical=event(*lines)).closed) == [date.fromisoformat(day) for day in days]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"zone": "Berlin"}, "zone: unknown time zone 'Berlin'"),
        ({"zone": None}, "zone: write a time zone"),
        ({"hours": {"mon-fri": "09:00-17:00", "fri": "closed"}}, "hours: fri is in two members"),
        ({"hours": {"monday": "09:00-17:00"}}, "hours: 'monday' is not a weekday"),
        ({"hours": {"mon": "17:00-09:00"}}, "hours.mon: '17:00-09:00' are not hours of a day"),
        ({"hours": {"mon": "09:00-12:00, 11:00-13:00"}}, "hours.mon: "),
        ({"hours": {"mon": "09:00-24:01"}}, "hours.mon: "),
        ({"hours": {"mon": 9}}, "hours.mon: 9 are not hours"),
        ({"hours": None}, "hours: it is missing"),
        ({"exceptions": {"2026-02-30": "closed"}}, "exceptions: '2026-02-30' is not a date of the years 2026 to 2027"),
        ({"exceptions": {"2028-02-01": "closed"}}, "exceptions: '2028-02-01' is not a date"),
        ({"years": [2026, 2300]}, "years: "),
        ({"colour": 1}, "colour: there is no such member; members are zone, hours"),
        ({"ical": "BEGIN:VCALENDAR"}, "ical: the text has no VEVENT"),
        ({"ical": "X" * (1 << 19)}, "ical: the text has more than"),
        ({"ical": event("DTSTART:20260504", "RRULE:FREQ=DAILY")}, "line 2: RRULE:'FREQ=DAILY' is not supported"),
        ({"ical": event("DTSTART:20260504", "RRULE:FREQ=YEARLY;BYDAY=1MO")}, "is not supported"),
        ({"ical": event("DTSTART:20260504", "RRULE:FREQ=YEARLY;COUNT=x")}, "'X' is not a number"),
        ({"ical": event("DTSTART:00010504", "RRULE:FREQ=YEARLY")}, "begin in 1900 or later"),
        ({"ical": event("DTSTART:20261304")}, "'20261304' is not a date"),
        ({"ical": event("DTSTART:20260504", "DTEND:20240504")}, "the event has -730 days"),
        ({"ical": event("DTSTART:20260504", "RDATE:20270504")}, "RDATE is not supported"),
        ({"ical": event("DTSTART:20260504", "RRULE:FREQ=YEARLY", "EXDATE:20270504")}, "EXDATE is not supported"),
        ({"ical": event("DTSTART:20260504", "RECURRENCE-ID:20260503")}, "RECURRENCE-ID is not supported"),
        ({"ical": event("DTSTART:20260504", "DURATION:PT48H")}, "DURATION:'PT48H' is not a number of days"),
        ({"ical": event("DTSTART:20260504")[:-30]}, "line 2: the text ends before its END:VEVENT"),
        ({"ical": event("DTSTART:20260504", "SUMMARY:\ud800")}, "ical: write the iCalendar text, which is Unicode"),
        ({"exceptions": {"20260201": "closed"}}, "'20260201' is not a date of the years 2026 to 2027, such as 2026-12"),
        ({"exceptions": {20260201: "closed"}}, "'20260201' is not a date of the years"),
    ],
)
def test_other_declarations_are_refused(members, message):
    with pytest.raises(CalendarRefused) as caught:
        read(**members)
    assert message in caught.value.message


def test_a_calendar_without_hours_is_refused():
    with pytest.raises(CalendarRefused, match="no day of the calendar has business hours"):
        keep_calendar("c", read(hours={"mon": "closed"}))


def test_a_calendar_with_too_many_intervals_is_refused():
    with pytest.raises(CalendarRefused, match="years: they have 146,098 intervals"):
        keep_calendar("c", read(hours={"mon-sun": "09:00-12:00, 13:00-17:00"}, years=[1970, 2169]))


def test_a_calendar_is_a_table_that_has_its_declaration():
    version = keep_calendar("de", read())
    tables = Tables(TableFiles()).with_version(version)
    assert document_of(tables.rows(PREFIX + "de")) == USUAL
    assert keep_calendar("de", read()).digest == version.digest != keep_calendar("de", read(zone="UTC")).digest


def test_an_unknown_calendar_is_named_without_its_tables():
    forms = Tables(TableFiles()).with_version(keep_calendar("de", read())).forms
    with pytest.raises(CalendarUnknown) as caught:
        require_lookup({**forms, "rows": forms["calendar:de"]}, PREFIX + "fr", None, 1)
    assert caught.value.message == "no calendar is called 'fr'; calendars are de"


def test_versions_that_hold_from_a_time_are_chosen_by_it():
    tables = Tables(TableFiles())
    for since, hours in ((0, "09:00-17:00"), (1_780_000_000_000_000, "10:00-11:00")):
        made = keep_calendar("de", read(hours={"mon-sun": hours}))
        tables = tables.with_version(type(made).from_json({**made.to_json(), "since": since}))
    noon = int(datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp() * 1_000_000)
    found = [
        (rows.tolist(), hours.elapsed(np.array([noon + 86_400_000_000]))[0] - hours.elapsed(np.array([noon]))[0])
        for rows, hours in tables.hours("de", np.array([noon, 1_790_000_000_000_000, noon]), 3)
    ]
    assert found == [([0, 2], 8 * 3_600_000_000), ([1], 3_600_000_000)]
