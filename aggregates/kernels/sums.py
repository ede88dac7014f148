"""Exact sums in digits of 32 bits, which no carry has normalised, and the floats nearest to them and their quotients.

Digits of floats are in units of 2**-96, or of 2**-1088 where these are too coarse or too few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined

UNIT = 96  # digits of floats are in 2**-UNIT, if they are FLOAT_DIGITS
FLOAT_DIGITS, ALL_DIGITS = 5, 68
SCRATCH = 80
CARRIES = 2  # digits above those of a group
UNIT_DIGITS, ALL_UNIT_DIGITS = 3, 34  # whole numbers begin at this digit
_LEAST_EXPONENT = -1074
LOW = 2**32 - 1
_EXTRA_DIGITS = 4  # of a quotient


@inlined
def normalise(digits: NDArray[np.int64], count: int) -> bool:
    """Carry digits into the next ones, and make the number positive; returns whether it was negative."""
    carry = np.int64(0)
    for place in range(count):
        carry += digits[place]
        digits[place] = carry & LOW
        carry >>= 32
    if carry == 0:
        return False
    carry = np.int64(1)
    for place in range(count):
        carry += LOW - digits[place]
        digits[place] = carry & LOW
        carry >>= 32
    return True


@inlined
def nearest(digits: NDArray[np.int64], count: int, scale: int, rest: np.int64) -> float:
    """The float nearest to positive digits times 2**scale; ``rest``: not 0 if a part below the digits is left out."""
    top = count - 1
    while top > 0 and digits[top] == 0:
        top -= 1
    if digits[top] == 0:
        return 0.0
    is_rest = rest != 0
    for place in range(top - 2):
        is_rest |= digits[place] != 0
    middle = digits[top - 1] if top >= 1 else np.int64(0)
    low = digits[top - 2] if top >= 2 else np.int64(0)
    zeros, rising = 0, digits[top]
    for step in (16, 8, 4, 2, 1):
        if rising < 1 << (32 - step):
            rising <<= step
            zeros += step
    first = ((digits[top] << zeros) | (middle >> (32 - zeros))) & LOW
    second = ((middle << zeros) | (low >> (32 - zeros))) & LOW
    is_rest |= ((low << zeros) & LOW) != 0 or (second & 3) != 0
    number, exponent = (first << 30) | (second >> 2), 32 * (top - 1) + 2 - zeros + scale
    below = _LEAST_EXPONENT - exponent
    if below > 9:  # less precise than other floats
        kept = number >> min(below, 63)
        half, cut = np.int64(1) << (min(below, 63) - 1), number - (kept << min(below, 63))
        kept += cut > half or (cut == half and (is_rest or kept & 1 == 1))
        return float(kept) * 2.0**-1000 * 2.0**-74
    return float(
        float(number | np.int64(is_rest)) * 2.0 ** float(exponent // 2) * 2.0 ** float(exponent - exponent // 2)
    )


@inlined
def quotient(digits: NDArray[np.int64], count: int, scale: int, divisor: np.int64) -> float:
    """The float nearest to positive digits times 2**scale divided by less than 2**31."""
    for place in range(count - 1, -1, -1):
        digits[place + _EXTRA_DIGITS] = digits[place]
    for place in range(_EXTRA_DIGITS):
        digits[place] = 0
    rest = np.int64(0)
    for place in range(count + _EXTRA_DIGITS - 1, -1, -1):
        rest = (rest << 32) | digits[place]
        digits[place] = rest // divisor
        rest %= divisor
    return nearest(digits, count + _EXTRA_DIGITS, scale - 32 * _EXTRA_DIGITS, rest)


@inlined
def change_sum(
    words: NDArray[np.int64],
    code: np.int64,
    offset: np.int64,
    digits: np.int64,
    is_integer: bool,
    number: np.int64,
    sign: np.int64,
) -> None:
    """Add a number to the words of a sum, or take it away: their count, two digits of integers, digits of floats."""
    words[code, offset] += sign
    if is_integer:
        words[code, offset + 1] += sign * (number & LOW)
        words[code, offset + 2] += sign * (number >> 32)
        return
    exponent = (number >> 52) & 0x7FF
    mantissa = number & (2**52 - 1)
    if exponent == 0:
        exponent += 1
    else:
        mantissa |= 2**52
    shift = exponent - 1075 + 32 * (ALL_UNIT_DIGITS if digits == ALL_DIGITS else UNIT_DIGITS)
    if shift < 0:
        mantissa >>= -shift if shift > -63 else np.int64(63)
        shift = np.int64(0)
    if number < 0:
        sign = -sign
    place, within = offset + 3 + (shift >> 5), shift & 31
    low = (mantissa & LOW) << within
    high = ((mantissa >> 32) << within) + (low >> 32)
    words[code, place] += sign * (low & LOW)
    words[code, place + 1] += sign * (high & LOW)
    words[code, place + 2] += sign * (high >> 32)
