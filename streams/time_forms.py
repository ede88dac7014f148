"""Forms of times in files and plain JSON: ISO 8601 and usual dates, with and without a zone, and numbers since 1970.

The unit of a number follows from its magnitude, unless it is declared. Clocks skip local times in spring and repeat
local times in autumn. ``LocalTimes`` decides how these are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streams.errors import DeclarationError, EventRejected
from streams.showing import shown
from streams.timestamps import EARLIEST_US, LATEST_US, parse_rfc3339, parse_time

TimeUnit: TypeAlias = Literal["auto", "s", "ms", "us", "ns"]
LocalTimes: TypeAlias = Literal["earlier", "later", "refuse"]
"""How to read a local time that clocks skip or show twice: as the earlier or later of two moments, or reject it."""

LEAST_SECONDS = 10**8  # 1973-03-03; smaller numbers are microseconds, as simulations and examples write them
LEAST_MILLISECONDS = 10**11  # 1973-03-03; as seconds it would be the year 5138
LEAST_MICROSECONDS = 10**14
DATE_ORDERS = ("day-first", "month-first")

_UNITS_US: Mapping[str, Decimal] = {
    "s": Decimal(1_000_000),
    "ms": Decimal(1_000),
    "us": Decimal(1),
    "ns": Decimal("0.001"),
}
_BY_SCALE: Mapping[int, TimeUnit] = {1: "us", 1_000: "ms", 1_000_000: "s", 0: "ns"}
_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_TEXT = re.compile(
    r"(?:(?P<year>[0-9]{4})([-/])(?P<month>[0-9]{2})\2(?P<day>[0-9]{2})"
    r"|(?P<first>[0-9]{1,2})(?P<sign>[./])(?P<second>[0-9]{1,2})\6(?P<last>[0-9]{4}))"
    r"(?:(?:[Tt]|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<seconds>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?"
    r" ?(?:(?P<utc>[Zz]|UTC)|(?P<hours>[+-][0-9]{2}):?(?P<minutes>[0-9]{2})?)?"
)
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
_MOST_MINUTES = 24 * 60
_MACHINES_OWN = ("localtime", "posixrules")  # files beside the zones that differ between machines
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeForm:
    """The form of times that are not written in RFC 3339.

    Attributes:
        zone: Zone of texts without one, such as ``Europe/Berlin`` or ``+02:00``. If it is None, such texts are
            rejected.
        format: Form of texts: ``day-first`` or ``month-first`` for dates such as 03/04/2025, or a form of ``strptime``
            such as ``%d.%m.%y %H:%M``. If it is None, three forms are read: ISO 8601, dates with points (day first),
            and dates with slashes that have only one meaning.
    """

    unit: TimeUnit = "auto"
    zone: str | None = None
    format: str | None = None
    local_times: LocalTimes = "earlier"

    def __post_init__(self) -> None:
        for name, words in (("unit", get_args(TimeUnit)), ("local_times", get_args(LocalTimes))):
            if getattr(self, name) not in words:
                field = "time_unit" if name == "unit" else name
                raise DeclarationError(
                    f"{field} is {shown(getattr(self, name))}; write one of {', '.join(words)}", field=field
                )
        if self.zone is not None:
            zone_of(self.zone)
        if self.format is not None and self.format not in DATE_ORDERS and "%" not in self.format:
            raise DeclarationError(
                f"time_format is {shown(self.format)}; write {', '.join(DATE_ORDERS)}, or a form of strptime such as "
                "'%d.%m.%y %H:%M'",
                field="time_format",
            )

    @property
    def is_exact(self) -> bool:
        """Whether texts must be RFC 3339. They must if neither a zone nor a format is declared."""
        return self.zone is None and self.format is None

    def read(self, value: object, notes: Counter[str] | None = None) -> int:
        """Convert an ISO 8601 or RFC 3339 text, another usual date, or a number to microseconds since 1970 UTC.

        A number may also be written as a text. ``notes`` counts local times that clocks show ``twice`` or that are
        ``skipped``. Raises ``EventRejected`` if the value is not a time, is ambiguous, or lacks a zone although
        ``zone`` is None.
        """
        if isinstance(value, str):
            text = value.strip()
            return _of_number(Decimal(text), self.unit) if _NUMBER.fullmatch(text) else self._of_text(text, notes)
        if isinstance(value, int) and not isinstance(value, bool):
            scale = {"us": 1, "auto": unit_scale(value)}.get(self.unit, 0)
            if scale:
                return parse_time(value * scale)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _of_number(Decimal(value) if isinstance(value, int) else Decimal(repr(value)), self.unit)
        return parse_time(value)

    def _of_text(self, text: str, notes: Counter[str] | None) -> int:
        if self.format is not None and self.format not in DATE_ORDERS:
            moment = _formatted(text, self.format)
            if moment.tzinfo is not None:
                return parse_time((moment - _EPOCH) // _MICROSECOND)
            return self._of_local((moment.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND, text, notes)
        parts = _TEXT.fullmatch(text)
        if parts is None:
            raise EventRejected(
                f"time {shown(text)} is neither a number nor a usual date, such as 2026-01-31T09:30:00Z, "
                "2026-01-31 09:30 or 31.01.2026 09:30; describe others with --time-format",
                field="time",
            )
        after = f".{parts['fraction']}" if parts["fraction"] else ""
        written = f"{self._date(parts, text)}T{_clock(parts, text)}{after}"
        if parts["utc"] or parts["hours"]:
            return parse_rfc3339(written + ("Z" if parts["utc"] else f"{parts['hours']}:{parts['minutes'] or '00'}"))
        return self._of_local(parse_rfc3339(written + "Z"), text, notes)  # rejects times that no clock shows

    def _date(self, parts: re.Match[str], text: str) -> str:
        if parts["year"]:
            return f"{parts['year']}-{parts['month']}-{parts['day']}"
        first, second = int(parts["first"]), int(parts["second"])
        is_day_first = parts["sign"] == "." or self.format == "day-first" or first > 12
        if parts["sign"] == "/" and self.format is None and first <= 12 and second <= 12 and first != second:
            raise EventRejected(
                f"the date of {shown(text)} can be read in two ways; say --time-format day-first or month-first",
                field="time",
            )
        day, month = (first, second) if is_day_first and self.format != "month-first" else (second, first)
        return f"{parts['last']}-{month:02}-{day:02}"

    def _of_local(self, local_us: int, text: str, notes: Counter[str] | None) -> int:
        if self.zone is None:
            raise EventRejected(
                f"time {shown(text)} has no time zone; give one, such as --assume-zone UTC or "
                "--assume-zone Europe/Berlin",
                field="time",
            )
        moments = _moments_us(local_us, zone_of(self.zone))
        if moments[0] != moments[1]:
            kind = "twice" if _is_shown(moments[0], local_us, zone_of(self.zone)) else "skipped"
            if self.local_times == "refuse":
                why = "exists twice" if kind == "twice" else "does not exist"
                raise EventRejected(
                    f"time {shown(text)} {why} in {self.zone}, where clocks were changed; choose --local-times earlier "
                    "or later, or write it with an offset",
                    field="time",
                )
            if notes is not None:
                notes[kind] += 1
        return parse_time(max(moments) if self.local_times == "later" else min(moments))


def unit_scale(number: int) -> int:
    """Return the factor that converts a time since 1970, in the unit that its magnitude suggests, to microseconds.

    The factor is 0 for a number in nanoseconds.
    """
    size = abs(number)
    if size < LEAST_SECONDS or LEAST_MICROSECONDS <= size <= LATEST_US:
        return 1
    if size < LEAST_MILLISECONDS:
        return 1_000_000
    return 1_000 if size < LEAST_MICROSECONDS else 0


def microseconds_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert whole numbers since 1970 to microseconds. The unit of each number follows from its magnitude."""
    sizes = np.abs(numbers)
    scales = np.select(
        [sizes < LEAST_SECONDS, sizes < LEAST_MILLISECONDS, sizes < LEAST_MICROSECONDS], [1, 1_000_000, 1_000], 1
    )
    return np.where(sizes > LATEST_US, numbers // 1_000, numbers * scales).astype(np.int64)


@lru_cache(maxsize=16)
def zone_of(name: str) -> tzinfo:
    """Return the time zone with a name or an offset. Raises ``DeclarationError`` if it is unknown."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        size = int(hours) * 60 + int(minutes)
        if size < _MOST_MINUTES:
            return timezone(timedelta(minutes=-size if sign == "-" else size))
    try:
        if name in _MACHINES_OWN:
            raise KeyError(name)
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise DeclarationError(
            f"unknown time zone {shown(name)}; write UTC, an offset such as +02:00, or a name such as Europe/Berlin",
            field="zone",
        ) from error


def date_order(first: int, second: int) -> str | None:
    """Return the order of day and month that the first two numbers of a date show.

    Return None if both orders are possible, or none.
    """
    if (first > 12) == (second > 12):
        return None
    return DATE_ORDERS[0] if first > 12 else DATE_ORDERS[1]


def slashed_date(text: str) -> tuple[int, int] | None:
    """Return the first two numbers of a date such as 27/06/2025, or None for times in other forms."""
    parts = _TEXT.fullmatch(text.strip())
    return (int(parts["first"]), int(parts["second"])) if parts is not None and parts["sign"] == "/" else None


def _of_number(number: Decimal, unit: TimeUnit) -> int:
    if not number.is_finite():
        raise EventRejected(f"time {number} is not a number", field="time")
    if unit == "auto":
        unit = _BY_SCALE[unit_scale(int(number))]
    if unit == "us" and number != number.to_integral_value():
        raise EventRejected(
            f"time {number} is not a whole number of microseconds; name the unit, such as --time-unit s "
            "(time_unit of a mapping)",
            field="time",
        )
    time_us = int(number * _UNITS_US[unit] // 1)
    if EARLIEST_US <= time_us <= LATEST_US:
        return time_us
    raise EventRejected(
        f"time {number} is outside the years 1 to 9999, as {unit} since 1970; give the unit with --time-unit s, "
        f"ms, us or ns",
        field="time",
    )


def _clock(parts: re.Match[str], text: str) -> str:
    hour = int(parts["hour"] or 0)
    if parts["half"]:
        if not 1 <= hour <= 12:
            raise EventRejected(f"time {shown(text)} has no hour from 1 to 12 before AM or PM", field="time")
        hour = hour % 12 + 12 * (parts["half"] in "Pp")
    return f"{hour:02}:{parts['minute'] or '00'}:{parts['seconds'] or '00'}"


def _formatted(text: str, form: str) -> datetime:
    try:
        return datetime.strptime(text, form)  # noqa: DTZ007 - the zone comes from the form, or is assumed
    except ValueError as error:
        raise EventRejected(f"time {shown(text)} is not of the form {form}", field="time") from error


def _moments_us(local_us: int, zone: tzinfo) -> tuple[int, int]:
    """Return the two moments that a local time can mean, in microseconds UTC, by the zone's offsets with fold 0 and 1.

    They are equal unless clocks skip the time or show it twice.
    """
    local = (_EPOCH + timedelta(microseconds=local_us)).replace(tzinfo=zone)
    before, after = (local.replace(fold=fold).utcoffset() or timedelta(0) for fold in (0, 1))
    return local_us - before // _MICROSECOND, local_us - after // _MICROSECOND


def _is_shown(moment_us: int, local_us: int, zone: tzinfo) -> bool:
    offset = (_EPOCH + timedelta(microseconds=moment_us)).astimezone(zone).utcoffset() or timedelta(0)
    return moment_us + offset // _MICROSECOND == local_us
