"""Durations of activities in a simulation."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from streams import NAMED_UNITS_US
from workflows.errors import InvalidWorkflow

_UNITS_US = {**NAMED_UNITS_US, "m": NAMED_UNITS_US["min"]}
_WRITTEN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]{1,7})", re.ASCII)
MOST_US = 10 * 366 * _UNITS_US["d"]


@dataclass(frozen=True, slots=True)
class FixedDuration:
    """A constant duration."""

    us: int

    def __post_init__(self) -> None:
        _check(self.us)

    def draw_us(self, rng: Random) -> int:
        return self.us


@dataclass(frozen=True, slots=True)
class UniformDuration:
    """A duration that is uniform from ``least_us`` to ``most_us``, both included."""

    least_us: int
    most_us: int

    def __post_init__(self) -> None:
        _check(self.least_us)
        _check(self.most_us)
        if self.least_us > self.most_us:
            raise InvalidWorkflow("a uniform duration needs the smaller value before the larger")

    def draw_us(self, rng: Random) -> int:
        return rng.randint(self.least_us, self.most_us)


@dataclass(frozen=True, slots=True)
class ExponentialDuration:
    """An exponentially distributed duration."""

    mean_us: int

    def __post_init__(self) -> None:
        _check(self.mean_us)
        if not self.mean_us:
            raise InvalidWorkflow("the mean of an exponential duration is above 0")

    def draw_us(self, rng: Random) -> int:
        return min(MOST_US, round(rng.expovariate(1.0 / self.mean_us)))


@dataclass(frozen=True, slots=True)
class NormalDuration:
    """A normally distributed duration. Negative values become 0."""

    mean_us: int
    deviation_us: int

    def __post_init__(self) -> None:
        _check(self.mean_us)
        _check(self.deviation_us)

    def draw_us(self, rng: Random) -> int:
        return min(MOST_US, max(0, round(rng.gauss(self.mean_us, self.deviation_us))))


Duration: TypeAlias = FixedDuration | UniformDuration | ExponentialDuration | NormalDuration


def parse_duration_us(text: str) -> int:
    """Return the microseconds of a text such as ``5 min``, ``5m``, ``1.5 h`` or ``200 ms``.

    Raises:
        InvalidWorkflow: The text is not a duration, or is longer than ten years.
    """
    parts = _WRITTEN.fullmatch(text.strip())
    unit = parts.group(2) if parts else ""
    unit_us = _UNITS_US.get(unit) or _UNITS_US.get(unit.removesuffix("s"))
    if parts is None or unit_us is None:
        raise InvalidWorkflow(
            f"{text!r} is not a duration; write a number and a unit (us, ms, s, min, h, d), such as 5 min"
        )
    us = float(parts.group(1)) * unit_us
    if us > MOST_US:
        raise InvalidWorkflow(f"{text!r} is too long; a duration is at most ten years")
    return math.floor(us + 0.5)


def _check(us: int) -> None:
    if not 0 <= us <= MOST_US:
        raise InvalidWorkflow(f"a duration is between 0 and ten years, got {us} microseconds")
