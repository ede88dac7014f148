"""Durations in microseconds: their units, and their form as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

UNITS_US: Mapping[str, int] = MappingProxyType(
    {
        "us": 1,
        "ms": 1_000,
        "s": 1_000_000,
        "min": 60_000_000,
        "h": 3_600_000_000,
        "d": 86_400_000_000,
        "w": 604_800_000_000,
    }
)
"""The length of each unit, by symbol."""

NAMED_UNITS_US: Mapping[str, int] = MappingProxyType(
    {
        **UNITS_US,
        "sec": UNITS_US["s"],
        "second": UNITS_US["s"],
        "minute": UNITS_US["min"],
        "hour": UNITS_US["h"],
        "day": UNITS_US["d"],
        "week": UNITS_US["w"],
    }
)
"""The length of each unit, by symbol or name."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_MOST_US = 2**61  # a time plus a duration is an int64
_LARGEST_FIRST = ("d", "h", "min", "s", "ms", "us")


def duration_of(value: object) -> int | None:
    """Return the microseconds of a text such as ``90 s``, or None if the value is not a duration.

    Return 0 if the duration is too long, or is not a positive whole number of microseconds.
    """
    parts = _DURATION.fullmatch(value.lower()) if isinstance(value, str) else None
    unit = None if parts is None else NAMED_UNITS_US.get(parts[2]) or NAMED_UNITS_US.get(parts[2].removesuffix("s"))
    if parts is None or unit is None:
        return None
    size_us = float(parts[1]) * unit
    return int(size_us) if 1 <= size_us <= _MOST_US and size_us == int(size_us) else 0


def seconds_in(value: Any) -> Any:
    """Return the seconds of a duration that is a text, such as ``90 s``. Any other value is returned unchanged."""
    size_us = duration_of(value)
    return size_us / UNITS_US["s"] if size_us else value


def duration_text(duration_us: int) -> str:
    """Format a duration in the largest unit in which it is a whole number, such as ``90 s``. Days are the largest."""
    unit = next(unit for unit in _LARGEST_FIRST if duration_us % UNITS_US[unit] == 0)
    return f"{duration_us // UNITS_US[unit]} {unit}"
