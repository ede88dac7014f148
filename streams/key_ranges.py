"""Ranges of keys that are whole numbers.

Keys are texts. A key is a whole number if it is written as JSON writes a number of 64 bits, such as ``7``, ``-12`` or
``0``. Keys such as ``007``, ``+7``, ``7.0`` and ``a7`` are in no range. So each number is one key, and keys are
compared as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.columns.arrow_columns import numbers_of
from streams.showing import shown

LEAST_NUMBER, GREATEST_NUMBER = -(1 << 63), (1 << 63) - 1

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_SHORT_DIGITS = 18
_SHORT, _LONG = r"^(0|-?[1-9][0-9]{0,17})$", r"^-?[1-9][0-9]{18}$"  # certainly 64 bits; perhaps more than 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """A range of correlation keys that are whole numbers, from ``low`` to ``high``, both inclusive.

    A bound that is None is unbounded. At most one bound is None.
    """

    low: int | None = None
    high: int | None = None

    def __contains__(self, key: str) -> bool:
        number = whole_number(key)
        return number is not None and self.least <= number <= self.greatest

    @property
    def least(self) -> int:
        """The least number that can be in the range."""
        return LEAST_NUMBER if self.low is None else self.low

    @property
    def greatest(self) -> int:
        """The greatest number that can be in the range."""
        return GREATEST_NUMBER if self.high is None else self.high

    def to_json(self) -> dict[str, int]:
        bounds = {"from": self.low, "to": self.high}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the result of ``to_json``. The message of the ``ValueError`` names the fault."""
        if not isinstance(value, Mapping) or not value or not value.keys() <= {"from", "to"}:
            raise ValueError(f"a range has 'from', 'to' or both, got {shown(value)}")
        for name, bound in value.items():
            if not isinstance(bound, int) or isinstance(bound, bool) or not LEAST_NUMBER <= bound <= GREATEST_NUMBER:
                raise ValueError(f"{name!r} of a range is a whole number of 64 bits, got {shown(bound)}")
        key_range = cls(low=value.get("from"), high=value.get("to"))
        if key_range.least > key_range.greatest:
            raise ValueError(f"a range goes from {key_range.low} to {key_range.high}, which contains no key")
        return key_range


def whole_number(key: str) -> int | None:
    """Return the number of a key that is written as a whole number. Return None for any other key."""
    if _WHOLE.fullmatch(key) is None:
        return None
    number = int(key)
    return number if LEAST_NUMBER <= number <= GREATEST_NUMBER else None


def whole_numbers(keys: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask of the keys that are whole numbers, and their numbers (0 for other keys). No key is null."""
    is_short = pc.match_substring_regex(keys, _SHORT)
    numbers = (keys if pc.all(is_short).as_py() else pc.if_else(is_short, keys, "0")).cast(pa.int64())
    values: NDArray[np.int64] = numbers_of(numbers).copy()
    is_whole: NDArray[np.bool_] = cast("NDArray[np.bool_]", is_short.to_numpy(zero_copy_only=False)).copy()
    if (pc.max(pc.binary_length(keys)).as_py() or 0) <= _SHORT_DIGITS:
        return is_whole, values
    for row in np.flatnonzero(pc.match_substring_regex(keys, _LONG).to_numpy(zero_copy_only=False)).tolist():
        number = whole_number(cast("Any", keys[row]).as_py())
        if number is not None:
            is_whole[row], values[row] = True, number
    return is_whole, values
