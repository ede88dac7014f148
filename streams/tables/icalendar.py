"""Whole days of an iCalendar text (RFC 5545), the format in which authorities publish holidays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from streams.showing import shown
from streams.tables.errors import CalendarRefused

MOST_CHARACTERS = 1 << 18
_MOST_DAYS = 366  # of one calendar event
_FIRST_YEAR = 1900  # first year in which a repeated event may begin
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_LENGTH = re.compile(r"\+?P(\d{1,3})([DW])(?:T(?:0+[HMS])+)?")
_BORDERS = {"BEGIN": 1, "END": -1}
_TAKEN = frozenset(["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "WKST"])


def days_of(text: str, first: date, last: date) -> Iterator[date]:
    """Yield the days of the whole-day events in an iCalendar text, from ``first`` to ``last``.

    Other events are ignored.

    Raises:
        CalendarRefused: The text is too large or cannot be read, or an event repeats in a way that is not supported.
    """
    if len(text) > MOST_CHARACTERS:
        raise CalendarRefused(f"ical: the text has more than {MOST_CHARACTERS:,} characters", field="ical")
    event: dict[str, str] | None = None
    begun = depth = 0
    for number, line in _unfolded(text):
        name, _, value = line.partition(":")
        name, value = name.upper().partition(";")[0], value.strip()
        if (name, value.upper()) == ("BEGIN", "VEVENT"):
            event, begun, depth = {}, number, 0
        elif event is None:
            continue
        elif (name, value.upper()) == ("END", "VEVENT"):
            yield from _days_of_event(event, begun, first, last)
            event = None
        elif name in _BORDERS:  # an inner component, such as an alarm with its own DURATION
            depth += _BORDERS[name]
        elif depth == 0:
            event[name] = value
    if event is not None:
        raise _refused(begun, "the text ends before its END:VEVENT")
    if begun == 0:
        raise CalendarRefused("ical: the text has no VEVENT; send an iCalendar file (.ics)", field="ical")


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    whole, begun = "", 1
    for number, line in enumerate(_LINE_BREAK.split(text), start=1):
        if line[:1] in (" ", "\t"):
            whole += line[1:]
            continue
        yield begun, whole
        whole, begun = line, number
    yield begun, whole


def _days_of_event(event: dict[str, str], number: int, first: date, last: date) -> Iterator[date]:
    if "T" in event.get("DTSTART", "T"):
        return
    for name in ("RDATE", "EXDATE", "RECURRENCE-ID"):
        if name in event:
            raise _refused(number, f"{name} is not supported; write an event for each day")
    if event.get("STATUS", "").upper() == "CANCELLED":
        return
    begin = _date(event["DTSTART"], number)
    length = _length(event, begin, number)
    for start in _starts(event.get("RRULE"), begin, number, last):
        for place in range(max(0, (first - start).days), min(length, (last - start).days + 1)):
            yield start + timedelta(days=place)


def _length(event: dict[str, str], begin: date, number: int) -> int:
    """Return the number of days of an event that begins on ``begin``. ``DTEND`` is the day after its last day."""
    length = 1
    if "DTEND" in event:
        length = (_date(event["DTEND"], number) - begin).days or 1
    elif "DURATION" in event:
        length_match = _LENGTH.fullmatch(event["DURATION"])
        if length_match is None:
            raise _refused(number, f"DURATION:{shown(event['DURATION'])} is not a number of days, such as P2D")
        length = int(length_match[1]) * (7 if length_match[2] == "W" else 1)
    if not 1 <= length <= _MOST_DAYS:
        raise _refused(number, f"the event has {length} days; it may have 1 to {_MOST_DAYS}")
    return length


def _starts(rule: str | None, begin: date, number: int, last: date) -> Iterator[date]:
    if rule is None:
        yield begin
        return
    parts = dict(part.upper().partition("=")[::2] for part in rule.split(";"))
    fixed = {"BYMONTH": str(begin.month), "BYMONTHDAY": str(begin.day)}
    is_other = any(parts.get(name, value).lstrip("0") != value for name, value in fixed.items())
    if parts.get("FREQ") != "YEARLY" or is_other or not parts.keys() <= _TAKEN:
        raise _refused(number, f"RRULE:{shown(rule)} is not supported; FREQ=YEARLY on a fixed date is")
    if begin.year < _FIRST_YEAR:
        raise _refused(number, f"it is repeated from {begin.year} on; begin in {_FIRST_YEAR} or later")
    interval, count = (
        _number(parts.get(name, usual), number) for name, usual in (("INTERVAL", "1"), ("COUNT", "9999"))
    )
    until = min(last, _date(parts["UNTIL"], number)) if "UNTIL" in parts else last
    for year in range(begin.year, until.year + 1, interval):
        if count <= 0:
            return
        if (begin.month, begin.day) == (2, 29) and not _is_leap(year):
            continue
        count -= 1
        if (day := begin.replace(year=year)) <= until:
            yield day


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _number(text: str, number: int) -> int:
    if re.fullmatch(r"[1-9]\d{0,3}", text) is None:
        raise _refused(number, f"{shown(text)} is not a number from 1 to 9999")
    return int(text)


def _date(text: str, number: int) -> date:
    date_match = _DATE.match(text)
    try:
        if date_match is not None:
            return date(*map(int, date_match.groups()))
    except ValueError:
        pass
    raise _refused(number, f"{shown(text)} is not a date; write for example 20261224")


def _refused(number: int, reason: str) -> CalendarRefused:
    return CalendarRefused(f"ical: the event in line {number}: {reason}", field="ical", line=number)
