"""Times as they stand in files of strangers: ISO 8601 with and without a zone, and numbers since 1970 in some unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from streams.errors import DeclarationError, EventRejected
from streams.showing import shown
from streams.timestamps import parse_rfc3339, parse_time

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

_UNITS_US: Mapping[str, Decimal] = {
    "s": Decimal(1_000_000),
    "ms": Decimal(1_000),
    "us": Decimal(1),
    "ns": Decimal("0.001"),
}
_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]+([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    r" ?(?:([Zz]|UTC)|([+-][0-9]{2}):?([0-9]{2})?)?"
)
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
_MOST_MINUTES = 24 * 60


def read_time(value: object, zone: str | None, unit: TimeUnit) -> int:
    """Microseconds since 1970-01-01 UTC of what a file says.

    Args:
        value: ISO 8601 text, RFC 3339 included, or a number, also as text.
        zone: That of texts without one, such as ``Europe/Berlin`` or ``+02:00``; None: they are refused.
        unit: Of numbers.

    Raises:
        EventRejected: It is no time, or has no zone where none is assumed.
        DeclarationError: There is no such zone.
    """
    if isinstance(value, str):
        text = value.strip()
        return _of_number(Decimal(text), unit) if _NUMBER.fullmatch(text) else _of_text(text, zone)
    if unit != "us" and isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(Decimal(repr(value)), unit)
    return parse_time(value)


@lru_cache(maxsize=16)
def zone_of(name: str) -> tzinfo:
    """The zone of a name or an offset.

    Raises:
        DeclarationError: There is none.
    """
    if name.upper() in ("UTC", "Z"):
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        size = int(hours) * 60 + int(minutes)
        if size < _MOST_MINUTES:
            return timezone(timedelta(minutes=-size if sign == "-" else size))
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise DeclarationError(
            f"unknown time zone {shown(name)}; write UTC, an offset such as +02:00, or a name such as Europe/Berlin",
            field="zone",
        ) from error


def _of_number(number: Decimal, unit: TimeUnit) -> int:
    if not number.is_finite():
        raise EventRejected(f"time {number} is not a number", field="time")
    if unit == "us" and number != number.to_integral_value():
        raise EventRejected(
            f"time {number} is not a whole number of microseconds; give the unit, such as --time-unit s",
            field="time",
        )
    try:
        return parse_time(int(number * _UNITS_US[unit] // 1))
    except EventRejected as error:
        raise EventRejected(
            f"time {number} is outside the years 1 to 9999, as {unit} since 1970; give the unit with --time-unit s, "
            f"ms, us or ns",
            field="time",
        ) from error


def _of_text(text: str, zone: str | None) -> int:
    parts = _ISO.fullmatch(text)
    if parts is None:
        raise EventRejected(
            f"time {shown(text)} is neither a number nor ISO 8601, such as 2026-01-31T09:30:00Z or 2026-01-31 09:30",
            field="time",
        )
    date, minute, second, fraction, utc, hours, minutes = parts.groups()
    written = f"{date}T{minute or '00:00'}:{second or '00'}"
    after = f".{fraction}" if fraction else ""
    if utc or hours:
        return parse_rfc3339(written + after + ("Z" if utc else f"{hours}:{minutes or '00'}"))
    if zone is None:
        raise EventRejected(
            f"time {shown(text)} has no time zone; give one, such as --assume-zone UTC or --assume-zone Europe/Berlin",
            field="time",
        )
    whole_us = parse_rfc3339(written + after + "Z")  # refuses what no clock shows
    offset = _offset(whole_us, zone_of(zone))
    return parse_time(whole_us - offset // timedelta(microseconds=1))


def _offset(local_us: int, zone: tzinfo) -> timedelta:
    """How far a zone is before UTC when its clocks show a time; the first of two such times in autumn."""
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=local_us)
    return local.replace(tzinfo=zone).utcoffset() or timedelta(0)
