"""Exact sums in digits of 32 bits, and the floats nearest to sums and their quotients. Carries may be pending.

Sums of floats are in units of 2**-96, or of 2**-1088 if ``FLOAT_DIGITS`` digits of 2**-96 are not enough. The unit of a
sum of squares is the square of the sum's unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.tables import FLOAT, INTEGER
from streams.kernels.compiling import apart, inlined

UNIT = 96  # FLOAT_DIGITS digits of floats are in units of 2**-UNIT
FLOAT_DIGITS, ALL_DIGITS = 5, 68
SUM_WORDS = 3  # words before a sum's digits: counts of numbers (low 32 bits) and of floats, two digits of integers
SHORT = -1  # in place of a number of digits: integers or whole floats of 32 bits, whose sum is one word
SHORT_WORDS = 2  # words of such a sum: the count and the sum
SQUARE_DIGITS = 4  # for squares of integers
SCRATCH = 384
_PRODUCT, _FACTOR = 160, 304  # where the square of a sum, and the sum, begin in ``scratch``
CARRIES = 2  # digits for carries, above a group's digits
UNIT_DIGITS, ALL_UNIT_DIGITS = 3, 34  # the digit at which whole numbers begin
_LEAST_EXPONENT = -1074
LOW = 2**32 - 1
_EXTRA_DIGITS = 4  # further digits of a quotient


@inlined
def normalise(digits: NDArray[np.int64], count: np.int64) -> bool:
    """Propagate carries through the digits of a number, and make it positive.

    Return whether the number was negative.
    """
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
def nearest(digits: NDArray[np.int64], count: np.int64, scale: np.int64, rest: np.int64) -> float:
    """Return the float nearest to the positive number ``digits`` * 2**scale.

    ``rest`` is not 0 if lower digits were cut off.
    """
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
    if below > 9:  # subnormal numbers, which have fewer bits
        lost = min(np.int64(below), np.int64(63))
        kept = number >> lost
        half, cut = np.int64(1) << (lost - 1), number - (kept << lost)
        kept += cut > half or (cut == half and (is_rest or kept & 1 == 1))
        return float(kept) * 2.0**-1000 * 2.0**-74
    return float(
        float(number | np.int64(is_rest)) * 2.0 ** float(exponent // 2) * 2.0 ** float(exponent - exponent // 2)
    )


@inlined
def unit_digit(digits: np.int64) -> np.int64:
    """Return the index of the digit at which whole numbers begin, in a sum with ``digits`` digits.

    The digits before it have the fraction.
    """
    if digits == ALL_DIGITS:
        return np.int64(ALL_UNIT_DIGITS)
    return np.int64(UNIT_DIGITS)


@inlined
def whole_digits(
    words: NDArray[np.int64], code: np.int64, offset: np.int64, digits: np.int64
) -> tuple[np.int64, np.int64]:
    """Return the part of a sum that whole numbers have contributed: its low 32 bits, and its higher bits.

    The sum is at ``offset`` in the words of the group ``code``.
    """
    low = words[code, offset + 1]
    high = words[code, offset + 2] if digits != SHORT else np.int64(0)
    return low & LOW, high + (low >> 32)


@inlined
def load_sum(
    words: NDArray[np.int64], scratch: NDArray[np.int64], code: np.int64, offset: np.int64, digits: np.int64
) -> np.int64:
    """Write the digits of a group's sum to ``scratch``. Return the number of digits."""
    count, unit = max(digits, np.int64(FLOAT_DIGITS)) + CARRIES, unit_digit(digits)
    for place in range(count):
        scratch[place] = words[code, offset + SUM_WORDS + place] if place < digits else 0
    low, high = whole_digits(words, code, offset, digits)
    scratch[unit] += low
    scratch[unit + 1] += high
    return count


@inlined
def divide(digits: NDArray[np.int64], count: np.int64, divisor: np.int64) -> np.int64:
    """Divide a positive number, given by its digits, by a divisor below 2**31 in place. Return the remainder."""
    rest = np.int64(0)
    for place in range(count - 1, -1, -1):
        rest = (rest << 32) | digits[place]
        digits[place] = rest // divisor
        rest %= divisor
    return rest


@inlined
def refine(digits: NDArray[np.int64], count: np.int64) -> np.int64:
    """Append lower digits of 0 to a number, for the fraction of a quotient. Return the number of digits."""
    for place in range(count - 1, -1, -1):
        digits[place + _EXTRA_DIGITS] = digits[place]
    for place in range(_EXTRA_DIGITS):
        digits[place] = 0
    return count + _EXTRA_DIGITS


@inlined
def quotient(digits: NDArray[np.int64], count: np.int64, scale: np.int64, divisor: np.int64) -> float:
    """Return the float nearest to the positive number ``digits`` * 2**scale / divisor. The divisor is below 2**31."""
    longer = refine(digits, count)
    rest = divide(digits, longer, divisor)
    return nearest(digits, longer, scale - 32 * _EXTRA_DIGITS, rest)


@apart
def deviation(
    words: NDArray[np.int64],
    scratch: NDArray[np.int64],
    code: np.int64,
    offset: np.int64,
    squares: np.int64,
    digits: np.int64,
) -> float:
    """Return the standard deviation of two or more numbers of a group, from their sum and their sum of squares.

    The deviation is infinite if out of range. The variance, (n * squares - sum * sum) / (n * (n - 1)), is rounded once.
    """
    number, unit = words[code, offset] & LOW, unit_digit(digits)
    count = load_sum(words, scratch, code, offset, digits)
    normalise(scratch, count)
    for place in range(count):
        scratch[_FACTOR + place] = scratch[place]
        scratch[_PRODUCT + place] = scratch[_PRODUCT + count + place] = 0
    for left in range(count):
        carry = np.uint64(0)
        for right in range(count if scratch[_FACTOR + left] != 0 else 0):
            place = _PRODUCT + left + right
            carry += np.uint64(scratch[_FACTOR + left]) * np.uint64(scratch[_FACTOR + right])
            carry += np.uint64(scratch[place])
            scratch[place] = np.int64(carry & np.uint64(LOW))
            carry >>= np.uint64(32)
        scratch[_PRODUCT + left + count] += np.int64(carry)
    width, begin = (2 * digits, np.int64(0)) if digits > 0 else (np.int64(SQUARE_DIGITS), 2 * unit)
    double = 2 * count
    for place in range(double):
        within = place - begin
        scratch[place] = words[code, squares + within] if 0 <= within < width else 0
    normalise(scratch, double)
    for place in range(double):
        scratch[place] *= number
    for place in range(double):
        scratch[place] -= scratch[_PRODUCT + place]
    normalise(scratch, double)
    longer = refine(scratch, double)
    rest = divide(scratch, longer, number) | divide(scratch, longer, number - 1)
    return float(np.sqrt(nearest(scratch, longer, -64 * unit - 32 * _EXTRA_DIGITS, rest)))


@inlined
def change_sum(
    words: NDArray[np.int64],
    code: np.int64,
    offset: np.int64,
    digits: np.int64,
    kind: np.int64,
    number: np.int64,
    sign: np.int64,
) -> None:
    """Add a number to a sum of the group ``code`` (``sign`` 1), or subtract it (-1).

    ``number`` is an integer or the bits of a float, as ``kind`` says. The sum is at ``offset`` in the group's words.
    """
    words[code, offset] += sign * ((np.int64(kind != INTEGER) << 32) | 1)
    if digits == SHORT:
        words[code, offset + 1] += sign * number
        return
    if kind != FLOAT:
        words[code, offset + 1] += sign * (number & LOW)
        words[code, offset + 2] += sign * (number >> 32)
        return
    mantissa, shift = mantissa_of(number, digits)
    if number < 0:
        sign = -sign
    place, within = offset + SUM_WORDS + (shift >> 5), shift & 31
    low = (mantissa & LOW) << within
    high = ((mantissa >> 32) << within) + (low >> 32)
    words[code, place] += sign * (low & LOW)
    words[code, place + 1] += sign * (high & LOW)
    words[code, place + 2] += sign * (high >> 32)


@inlined
def mantissa_of(number: np.int64, digits: np.int64) -> tuple[np.int64, np.int64]:
    """Return the mantissa of a float, and the shift that aligns the mantissa with the unit of a sum.

    ``number`` has the bits of the float.
    """
    exponent, mantissa = (number >> 52) & 0x7FF, number & (2**52 - 1)
    if exponent == 0:
        exponent += 1
    else:
        mantissa |= 2**52
    shift = exponent - 1075 + 32 * unit_digit(digits)
    if shift < 0:
        mantissa >>= -shift if shift > -63 else np.int64(63)
        shift = np.int64(0)
    return mantissa, shift


@inlined
def change_squares(
    words: NDArray[np.int64],
    code: np.int64,
    offset: np.int64,
    digits: np.int64,
    kind: np.int64,
    number: np.int64,
    sign: np.int64,
) -> None:
    """Add the square of a number to a sum of squares of the group ``code`` (``sign`` 1), or subtract the square (-1).

    The arguments are as in ``change_sum``.
    """
    shift = 64 * unit_digit(digits) if digits > 0 else np.int64(0)
    if kind == FLOAT:
        number, shift = mantissa_of(number, digits)
        shift *= 2
    low, high = number & LOW, number >> 32
    square, middle = np.uint64(low) * np.uint64(low), high * low
    first = np.int64(square >> np.uint64(32)) + 2 * (middle & LOW)
    second = (first >> 32) + 2 * (middle >> 32) + ((high * high) & LOW)
    third = (second >> 32) + ((high * high) >> 32)
    place, within = offset + (shift >> 5), shift & 31
    for part in (np.int64(square & np.uint64(LOW)), first & LOW, second & LOW, third):
        shifted = part << within
        words[code, place] += sign * (shifted & LOW)
        place += 1
        if shifted >> 32 != 0:
            words[code, place] += sign * (shifted >> 32)
