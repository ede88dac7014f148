"""Occurrence times. They are RFC 3339 texts in external forms, and int64 microseconds UTC inside.

Times are in the years 1 to 9999, the range that RFC 3339 and Python's ``datetime`` share, so that every accepted event
can be written again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from streams.errors import EventRejected
from streams.showing import shown

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - for texts whose zone is written by hand
_MICROSECOND = timedelta(microseconds=1)
_DAY_US = 86_400_000_000
_RFC_3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))?"
)
_EXAMPLE = "such as 2026-01-31T09:30:00Z or 2026-01-31T10:30:00.25+01:00"


def parse_time(value: object) -> int:
    """Convert an RFC 3339 text or whole microseconds to microseconds since 1970-01-01 UTC.

    Digits beyond the microsecond are cut off. A leap second (``23:59:60`` UTC) counts as the second after it. A time is
    rejected if it has no zone, does not exist, or is outside the years 1 to 9999.
    """
    if isinstance(value, str):
        return parse_rfc3339(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _within_years(value, value)
    raise EventRejected(f"time {value!r} is neither RFC 3339 text nor whole microseconds since 1970", field="time")


def parse_rfc3339(text: str) -> int:
    """Convert an RFC 3339 text to microseconds since 1970-01-01 UTC, by the rules of ``parse_time``."""
    parts = _RFC_3339.fullmatch(text)
    if parts is None:
        raise EventRejected(f"time {shown(text)} is not RFC 3339; write it {_EXAMPLE}", field="time")
    year, month, day, hour, minute, second, fraction, utc, sign, offset_hours, offset_minutes = parts.groups()
    if utc is None and sign is None:
        raise EventRejected(f"time {shown(text)} has no time zone; add Z or an offset, {_EXAMPLE}", field="time")
    is_leap = second == "60"
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), 59 if is_leap else int(second), tzinfo=UTC
        )
    except ValueError as error:
        raise EventRejected(f"time {shown(text)} does not exist: {error}", field="time") from error
    whole_us = (moment - _EPOCH) // _MICROSECOND + (1_000_000 if is_leap else 0)
    if utc is None:
        whole_us -= _offset_us(text, sign, int(offset_hours), int(offset_minutes))
    if is_leap and whole_us % _DAY_US:
        raise EventRejected(f"time {shown(text)} does not exist: only 23:59 UTC has a second 60", field="time")
    return _within_years(whole_us + int(((fraction or "") + "000000")[:6]), text)


def format_time(time_us: int) -> str:
    """Format a time as RFC 3339 in UTC with six digits and ``Z``. The texts sort by time in the years 1 to 9999."""
    moment = _BARE_EPOCH + timedelta(microseconds=_within_years(time_us, time_us))
    return moment.isoformat(timespec="microseconds") + "Z"


def shown_time(time_us: int) -> str:
    """Format a time like ``format_time``. A time before the year 1 or after 9999 is shown as the nearest valid time."""
    return format_time(min(max(time_us, EARLIEST_US), LATEST_US))


def _offset_us(text: str, sign: str, hours: int, minutes: int) -> int:
    if hours > 23 or minutes > 59:
        raise EventRejected(f"time {shown(text)} has an impossible offset; the largest is 23:59", field="time")
    size_us = (hours * 60 + minutes) * 60_000_000
    return -size_us if sign == "-" else size_us


def _within_years(time_us: int, written: object) -> int:
    if EARLIEST_US <= time_us <= LATEST_US:
        return time_us
    raise EventRejected(
        f"time {shown(written)} is outside the years 1 to 9999; integers are microseconds since 1970, not nanoseconds",
        field="time",
    )
