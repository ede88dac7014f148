"""Functions of numbers. All compute in float64, as arithmetic does, and results that are not finite become null."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.functions.function import Column, Examples, Function, Parameter

Numbers: TypeAlias = NDArray[np.float64]

EARTH_KM = 6371.0088  # mean radius (IUGG)
MOST_DIGITS = 15

_X = Parameter("x", "number")
_Y = Parameter("y", "number")


def _quiet(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
    """Return the function without numpy's warnings. Overflow and invalid numbers become null later."""

    def column(*columns: Any) -> Numbers:
        with np.errstate(all="ignore"):
            return function(*columns)

    return column


def _round(x: Numbers, digits: float = 0.0) -> Numbers:
    """Round to ``digits`` digits after the point. Halves are rounded away from zero, as in SQL."""
    scale = 10.0 ** abs(digits)
    scaled = x * scale if digits >= 0 else x / scale
    whole = np.trunc(scaled)
    whole += np.copysign(np.abs(scaled - whole) >= 0.5, scaled)
    rounded = whole / scale if digits >= 0 else whole * scale
    return np.where(np.isfinite(scaled), rounded, x)


def _fault_of_digits(digits: Any) -> str | None:
    if isinstance(digits, int) and abs(digits) <= MOST_DIGITS:
        return None
    return f"write a whole number from -{MOST_DIGITS} to {MOST_DIGITS}"


def _mod(x: Numbers, y: Numbers) -> Numbers:
    return np.where(y == 0.0, np.nan, np.fmod(x, y))


def _distance(lat: Numbers, lon: Numbers, other_lat: Numbers, other_lon: Numbers) -> Numbers:
    """The length of the great circle between two places, by the haversine formula."""
    is_place = (np.abs(lat) <= 90) & (np.abs(other_lat) <= 90) & (np.abs(lon) <= 180) & (np.abs(other_lon) <= 180)
    latitude, other_latitude = np.radians(lat), np.radians(other_lat)
    across = np.sin(np.radians(other_lon - lon) / 2.0)
    along = np.sin((other_latitude - latitude) / 2.0)
    root = np.sqrt(along * along + np.cos(latitude) * np.cos(other_latitude) * across * across)
    return np.where(is_place, 2.0 * EARTH_KM * np.arcsin(np.minimum(1.0, root)), np.nan)


def _number(
    name: str, parameters: tuple[Parameter, ...], column: Column, summary: str, examples: Examples, **options: Any
) -> Function:
    return Function(name, parameters, "number", column, summary, examples, spans_events=True, **options)


FUNCTIONS = (
    _number("abs", (_X,), np.abs, "The number without its sign.", (("abs(-2.5)", "2.5"),)),
    _number(
        "round",
        (_X, Parameter("digits", "number", _fault_of_digits)),
        _quiet(_round),
        "The nearest number with `digits` digits after the point (0 if left out; negative: before it); halves "
        "away from zero.",
        (("round(2.5)", "3.0"), ("round(-2.345, 2)", "-2.35"), ("round(1234, -2)", "1200.0")),
        optional=1,
    ),
    _number("floor", (_X,), np.floor, "The largest whole number that is not greater.", (("floor(-2.5)", "-3.0"),)),
    _number("ceil", (_X,), np.ceil, "The smallest whole number that is not less.", (("ceil(2.1)", "3.0"),)),
    _number(
        "sqrt",
        (_X,),
        _quiet(np.sqrt),
        "The square root; null for a negative number.",
        (("sqrt(9)", "3.0"), ("sqrt(-1)", "NULL")),
    ),
    _number(
        "ln",
        (_X,),
        _quiet(np.log),
        "The natural logarithm; null for 0 and negative numbers.",
        (("ln(1)", "0.0"), ("ln(0)", "NULL")),
    ),
    _number(
        "pow",
        (_X, _Y),
        _quiet(np.power),
        "`x` to the power of `y`; null where it is not a finite real number.",
        (("pow(2, 10)", "1024.0"), ("pow(-8, 0.5)", "NULL")),
    ),
    _number(
        "mod",
        (_X, _Y),
        _quiet(_mod),
        "The remainder of `x / y`, with the sign of `x`; null if `y` is 0.",
        (("mod(7, 3)", "1.0"), ("mod(-7, 3)", "-1.0"), ("mod(7, 0)", "NULL")),
    ),
    _number(
        "least",
        (_X,),
        lambda *columns: reduce(np.minimum, columns),
        "The smallest of the numbers; null if one of them is null.",
        (("least(3, 1, 2)", "1.0"), ("least(3, NULL)", "NULL")),
        is_repeated=True,
    ),
    _number(
        "greatest",
        (_X,),
        lambda *columns: reduce(np.maximum, columns),
        "The largest of the numbers; null if one of them is null.",
        (("greatest(3, 1, 2)", "3.0"),),
        is_repeated=True,
    ),
    _number(
        "distance",
        (
            Parameter("lat", "number"),
            Parameter("lon", "number"),
            Parameter("other lat", "number"),
            Parameter("other lon", "number"),
        ),
        _quiet(_distance),
        "Kilometres between two places on the globe, given in degrees; null for latitudes beyond 90 and "
        "longitudes beyond 180.",
        (("round(distance(52.52, 13.405, 48.137, 11.575))", "504.0"), ("distance(91, 0, 0, 0)", "NULL")),
    ),
)
