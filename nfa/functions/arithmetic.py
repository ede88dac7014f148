"""Functions of numbers. All compute in float64, as arithmetic does; a result that is not finite is null."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.functions.function import Function, Parameter

Numbers: TypeAlias = NDArray[np.float64]

EARTH_KM = 6371.0088  # mean radius (IUGG)
MOST_DIGITS = 15

_X = Parameter("x", "number")
_Y = Parameter("y", "number")


def _quiet(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
    """The function without warnings about overflow and invalid numbers, which become null."""

    def column(*columns: Any) -> Numbers:
        with np.errstate(all="ignore"):
            return function(*columns)

    return column


def _round(x: Numbers, digits: float = 0.0) -> Numbers:
    """Halves are rounded away from zero, as in SQL."""
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
    """Length of the great circle between two places, by the haversine formula."""
    is_place = (np.abs(lat) <= 90) & (np.abs(other_lat) <= 90) & (np.abs(lon) <= 180) & (np.abs(other_lon) <= 180)
    one, other = np.radians(lat), np.radians(other_lat)
    across = np.sin(np.radians(other_lon - lon) / 2.0)
    along = np.sin((other - one) / 2.0)
    root = np.sqrt(along * along + np.cos(one) * np.cos(other) * across * across)
    return np.where(is_place, 2.0 * EARTH_KM * np.arcsin(np.minimum(1.0, root)), np.nan)


FUNCTIONS = (
    Function(
        name="abs",
        parameters=(_X,),
        result="number",
        column=np.abs,
        spans_events=True,
        summary="The number without its sign.",
        examples=(("abs(-2.5)", "2.5"),),
    ),
    Function(
        name="round",
        parameters=(_X, Parameter("digits", "number", _fault_of_digits)),
        optional=1,
        result="number",
        column=_quiet(_round),
        spans_events=True,
        summary="The nearest number with `digits` digits after the point (0 if left out; negative: before it); halves "
        "away from zero.",
        examples=(("round(2.5)", "3.0"), ("round(-2.345, 2)", "-2.35"), ("round(1234, -2)", "1200.0")),
    ),
    Function(
        name="floor",
        parameters=(_X,),
        result="number",
        column=np.floor,
        spans_events=True,
        summary="The largest whole number that is not greater.",
        examples=(("floor(-2.5)", "-3.0"),),
    ),
    Function(
        name="ceil",
        parameters=(_X,),
        result="number",
        column=np.ceil,
        spans_events=True,
        summary="The smallest whole number that is not less.",
        examples=(("ceil(2.1)", "3.0"),),
    ),
    Function(
        name="sqrt",
        parameters=(_X,),
        result="number",
        column=_quiet(np.sqrt),
        spans_events=True,
        summary="The square root; null for a negative number.",
        examples=(("sqrt(9)", "3.0"), ("sqrt(-1)", "NULL")),
    ),
    Function(
        name="ln",
        parameters=(_X,),
        result="number",
        column=_quiet(np.log),
        spans_events=True,
        summary="The natural logarithm; null for 0 and negative numbers.",
        examples=(("ln(1)", "0.0"), ("ln(0)", "NULL")),
    ),
    Function(
        name="pow",
        parameters=(_X, _Y),
        result="number",
        column=_quiet(np.power),
        spans_events=True,
        summary="`x` to the power of `y`; null where it is not a finite real number.",
        examples=(("pow(2, 10)", "1024.0"), ("pow(-8, 0.5)", "NULL")),
    ),
    Function(
        name="mod",
        parameters=(_X, _Y),
        result="number",
        column=_quiet(_mod),
        spans_events=True,
        summary="The remainder of `x / y`, with the sign of `x`; null if `y` is 0.",
        examples=(("mod(7, 3)", "1.0"), ("mod(-7, 3)", "-1.0"), ("mod(7, 0)", "NULL")),
    ),
    Function(
        name="least",
        parameters=(_X,),
        is_repeated=True,
        result="number",
        column=lambda *columns: reduce(np.minimum, columns),
        spans_events=True,
        summary="The smallest of the numbers; null if one of them is null.",
        examples=(("least(3, 1, 2)", "1.0"), ("least(3, NULL)", "NULL")),
    ),
    Function(
        name="greatest",
        parameters=(_X,),
        is_repeated=True,
        result="number",
        column=lambda *columns: reduce(np.maximum, columns),
        spans_events=True,
        summary="The largest of the numbers; null if one of them is null.",
        examples=(("greatest(3, 1, 2)", "3.0"),),
    ),
    Function(
        name="distance",
        parameters=(
            Parameter("lat", "number"),
            Parameter("lon", "number"),
            Parameter("other lat", "number"),
            Parameter("other lon", "number"),
        ),
        result="number",
        column=_quiet(_distance),
        spans_events=True,
        summary="Kilometres between two places on the globe, given in degrees; null for latitudes beyond 90 and "
        "longitudes beyond 180.",
        examples=(("round(distance(52.52, 13.405, 48.137, 11.575))", "504.0"), ("distance(91, 0, 0, 0)", "NULL")),
    ),
)
