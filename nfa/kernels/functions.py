"""Functions of numbers for conditions between steps, with the same values as ``nfa.functions.arithmetic``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined

Int: TypeAlias = int | np.int32 | np.int64
Floats: TypeAlias = NDArray[np.float64]

ABS, FLOOR, CEIL, SQRT, LN, ROUND, POW, MOD, DISTANCE, LEAST, GREATEST = range(11)

EARTH_KM = 6371.0088
MOST_EXPONENT = 710.0  # a greater power of e exceeds float64; rounded up


@inlined
def number_of(function: Int, numbers: Floats, first: Int, count: Int) -> float:
    """Return the value of a function whose ``count`` arguments are the numbers from ``numbers[first]`` on.

    A value that is not finite means null.
    """
    x = float(numbers[first])
    if function >= LEAST:
        for place in range(first + 1, first + count):
            other = float(numbers[place])
            x = min(x, other) if function == LEAST else max(x, other)
        return x
    y = float(numbers[first + 1]) if count > 1 else 0.0
    if function == ROUND:
        return rounded(x, y)
    if function == POW:
        return power(x, y)
    if function == MOD:
        return float(np.fmod(x, y)) if y != 0.0 else np.nan
    if function == DISTANCE:
        return distance(x, y, float(numbers[first + 2]), float(numbers[first + 3]))
    return of_one(function, x)


@inlined
def of_one(function: Int, x: float) -> float:
    """Return the value of a function of a single number."""
    if function == ABS:
        return abs(x)
    if function == FLOOR:
        return float(np.floor(x))
    if function == CEIL:
        return float(np.ceil(x))
    if function == SQRT:
        return float(np.sqrt(x)) if x >= 0.0 else np.nan
    return float(np.log(x)) if x > 0.0 else np.nan


@inlined
def rounded(x: float, digits: float) -> float:
    """Return a number rounded to ``digits`` digits after the point. Halves are rounded away from zero."""
    scale = float(10.0 ** abs(digits))
    scaled = x * scale if digits >= 0.0 else x / scale
    if not np.isfinite(scaled):
        return x
    whole = float(np.trunc(scaled))
    if abs(scaled - whole) >= 0.5:
        whole += float(np.copysign(1.0, scaled))
    return whole / scale if digits >= 0.0 else whole * scale


@inlined
def power(x: float, y: float) -> float:
    """Return ``x`` to the power of ``y``, or NaN if the power is not a finite real number."""
    if x == 0.0:
        return 1.0 if y == 0.0 else 0.0 if y > 0.0 else np.nan
    is_odd = False
    if x < 0.0:
        if y != np.floor(y):
            return np.nan
        is_odd = np.fmod(y, 2.0) != 0.0
    if y * float(np.log(abs(x))) > MOST_EXPONENT:
        return np.nan
    result = float(abs(x) ** y)
    return -result if is_odd else result


@inlined
def distance(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """Return the distance of two points on Earth in km, by the haversine formula. Invalid coordinates give NaN."""
    if abs(lat) > 90.0 or abs(other_lat) > 90.0 or abs(lon) > 180.0 or abs(other_lon) > 180.0:
        return np.nan
    latitude, other_latitude = np.radians(lat), np.radians(other_lat)
    across = np.sin(np.radians(other_lon - lon) / 2.0)
    along = np.sin((other_latitude - latitude) / 2.0)
    root = np.sqrt(along * along + np.cos(latitude) * np.cos(other_latitude) * across * across)
    return float(2.0 * EARTH_KM * np.arcsin(min(1.0, root)))
