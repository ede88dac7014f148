"""Functions of times (microseconds or texts). They compute local times in a time zone, by default UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.functions.function import Function, Parameter, Result, of_each_distinct
from streams import EARLIEST_US, LATEST_US, DeclarationError, EventRejected, TimeForm, zone_of

Times: TypeAlias = Sequence[Any] | NDArray[np.int64]
Us: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BLOCK_US = 900_000_000  # UTC offsets rarely change within a quarter of an hour
_SECOND_US, _MINUTE_US, _HOUR_US, _DAY_US = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


def _fault_of_zone(zone: Any) -> str | None:
    try:
        zone_of(zone)
    except DeclarationError as error:
        return str(error)
    return None


def moments_of(times: Times, zone: str) -> tuple[Us, Mask]:
    """Return times as int64 microseconds, and a mask of the times that could be read.

    A text without a zone is local time in ``zone``.
    """
    if isinstance(times, np.ndarray):
        moments = times
    else:
        form = TimeForm(unit="us", zone=zone)

        def read(text: str) -> int:
            try:
                return form.read(text)
            except EventRejected:
                return LATEST_US + 1

        texts = [time for time in times if isinstance(time, str)]
        read_texts = iter(of_each_distinct(read, texts))
        moments = np.array([next(read_texts) if isinstance(time, str) else time for time in times], np.int64)
    return moments, (moments >= EARLIEST_US) & (moments <= LATEST_US)


def _local(times: Times, zone: str) -> tuple[Us, Mask]:
    """Return times as microseconds since 1970-01-01 in local time, and a mask of the known times."""
    moments, is_known = moments_of(times, zone)
    moments = np.where(is_known, moments, 0)
    zone_info = zone_of(zone)
    if zone_info is UTC:
        return moments, is_known
    local = moments.copy()
    blocks, place = np.unique(moments // _BLOCK_US, return_inverse=True)
    starts = [_offset_us(block * _BLOCK_US, zone_info) for block in blocks.tolist()]
    ends = [_offset_us((block + 1) * _BLOCK_US - 1, zone_info) for block in blocks.tolist()]
    local += np.array(starts, np.int64)[place]
    for row in np.flatnonzero(np.array([start != end for start, end in zip(starts, ends, strict=True)])[place]):
        local[row] = moments[row] + _offset_us(int(moments[row]), zone_info)
    return local, is_known & (local >= EARLIEST_US) & (local <= LATEST_US)


def _offset_us(moment_us: int, zone: tzinfo) -> int:
    """Return the offset of local time from UTC at a moment, in microseconds.

    Moments within a day of the calendar's ends are moved, because their local times may be outside the calendar.
    """
    bounded_us = min(max(moment_us, EARLIEST_US + _DAY_US), LATEST_US - _DAY_US)
    offset = (_EPOCH + timedelta(microseconds=bounded_us)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // _MICROSECOND


def _field(of_local: Callable[[Us], Us]) -> Callable[..., Result]:
    def column(times: Times, zone: str = "UTC") -> Result:
        local, is_known = _local(times, zone)
        return _where_known(of_local(np.where(is_known, local, 0)), is_known)

    return column


def _where_known(values: NDArray[Any], is_known: Mask) -> Result:
    if is_known.all() and values.dtype == np.int64:
        return values
    return [value if is_present else None for value, is_present in zip(values.tolist(), is_known.tolist(), strict=True)]


def _month(local: Us) -> Us:
    months: Us = local.astype("M8[us]").astype("M8[M]").astype(np.int64)
    return months


def _day(local: Us) -> Us:
    first: Us = _month(local).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return local // _DAY_US - first + 1


def _date(times: Times, zone: str = "UTC") -> Result:
    local, is_known = _local(times, zone)
    return _where_known(np.datetime_as_string(np.where(is_known, local, 0).astype("M8[us]"), unit="D"), is_known)


def _timestamp(times: Times, zone: str = "UTC") -> Result:
    return _where_known(*moments_of(times, zone))


_PARAMETERS = (Parameter("time", "time"), Parameter("zone", "text", _fault_of_zone))


def _clock(name: str, of_local: Callable[[Us], Us], summary: str, *examples: tuple[str, str]) -> Function:
    return Function(name, _PARAMETERS, "number", _field(of_local), summary, examples, optional=1)


FUNCTIONS = (
    _clock("year", lambda local: _month(local) // 12 + 1970, "The year.", ("year('2026-01-31T23:30:00Z')", "2026")),
    _clock("month", lambda local: _month(local) % 12 + 1, "The month, 1 to 12.", ("month('2026-01-31')", "1")),
    _clock(
        "day",
        _day,
        "The day of the month, 1 to 31.",
        ("day('2026-01-31T23:30:00Z')", "31"),
        ("day('2026-01-31T23:30:00Z', 'Europe/Berlin')", "1"),
    ),
    _clock(
        "hour",
        lambda local: local // _HOUR_US % 24,
        "The hour, 0 to 23.",
        ("hour('2026-07-01T22:15:00Z', 'Europe/Berlin')", "0"),
        ("hour('2026-01-01T22:15:00Z', 'Europe/Berlin')", "23"),
    ),
    _clock(
        "minute", lambda local: local // _MINUTE_US % 60, "The minute, 0 to 59.", ("minute('2026-01-31 09:30')", "30")
    ),
    _clock("second", lambda local: local // _SECOND_US % 60, "The second, 0 to 59.", ("second(90 s)", "30")),
    _clock(
        "weekday",
        lambda local: (local // _DAY_US + 3) % 7 + 1,
        "The day of the week, 1 (Monday) to 7 (Sunday), as in ISO 8601.",
        ("weekday('2026-01-31')", "6"),
    ),
    Function(
        "date",
        _PARAMETERS,
        "text",
        _date,
        "The date as a text, which compares as dates do.",
        (("date('2026-01-31T23:30:00Z', 'Asia/Tokyo')", "'2026-02-01'"), ("date('soon')", "NULL")),
        optional=1,
    ),
    Function(
        "timestamp",
        _PARAMETERS,
        "number",
        _timestamp,
        "The microseconds since 1970-01-01 UTC, comparable with `time(a)`. A text without a zone is a time of "
        "clocks in `zone`.",
        (
            ("timestamp('1970-01-02T00:00:00Z')", "86400000000"),
            ("timestamp('1970-01-01 02:00', 'Europe/Berlin') / 1 h", "1.0"),
        ),
        optional=1,
    ),
)
