"""Values of attributes: codes for the distinct values of each attribute, and columns of numbers to sum.

Codes are assigned in order of first appearance, so their low bits spread values evenly over partitions. Code 0 is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aggregates.scalars import Scalar, canonical, key_of
from streams import column_of, numbers_of

Column: TypeAlias = "pa.Array | NDArray[Any] | Sequence[Any]"
"""Values of one attribute, one per row: an Arrow array, numbers or booleans of NumPy, or any JSON values."""

NULL = 0
UNKNOWN = -1
_ORDER: Mapping[type, int] = {type(None): 0, bool: 1, int: 2, float: 2, str: 3}


def sorted_places(groups: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the indexes that sort groups by their values: nulls, then booleans, numbers, texts."""
    kinds = [set(map(type, column)) for column in zip(*groups, strict=True)]
    if all(kind == {str} or kind <= {int, float} for kind in kinds):
        return sorted(range(len(groups)), key=lambda place: groups[place])
    return sorted(range(len(groups)), key=lambda place: [_rank(value) for value in groups[place]])


def _rank(value: Scalar) -> tuple[int, Any]:
    return _ORDER[type(value)], 0 if value is None else value


def numbers_in(column: Column) -> NDArray[np.float64]:
    """Return the numbers of a column, with NaN for nulls and for values other than numbers."""
    column = _arrow_or_list(column)
    if not isinstance(column, pa.Array):
        return np.array([_number(value) for value in column], np.float64)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(len(column), np.nan)
    return np.array(numbers_of(column.cast(pa.float64(), safe=False).fill_null(np.nan)), np.float64)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan


def _arrow_or_list(column: Column) -> pa.Array | Sequence[Any]:
    return column_of(column) if isinstance(column, np.ndarray) else column


class ValueCodes:
    """The distinct values of an attribute, numbered. The code of a value is its index in ``values``."""

    def __init__(self, values: Sequence[Scalar] = (None,)) -> None:
        self.values = list(values)
        self._codes = {key_of(value): code for code, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def code_of(self, value: object) -> int:
        """Return the code of a value, or ``UNKNOWN`` if no event has had the value."""
        return self._codes.get(key_of(canonical(value)), UNKNOWN)

    def encoded(self, column: Column) -> NDArray[np.int32]:
        """Return the code of each value in a column. New values get new codes."""
        column = _arrow_or_list(column)
        if not isinstance(column, pa.Array):
            return np.array([self._coded(value) for value in column], np.int32)
        if column.null_count == len(column):
            return np.full(len(column), NULL, np.int32)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = np.array([*map(self._coded, column.dictionary.to_pylist()), NULL], np.int32)
        places: NDArray[Any] = numbers_of(column.indices.fill_null(len(codes) - 1))
        encoded_codes: NDArray[np.int32] = codes[places]
        return encoded_codes

    def _coded(self, value: object) -> int:
        key = value if type(value) in (str, int) else key_of(canonical(value))
        code = self._codes.setdefault(key, len(self.values))
        if code == len(self.values):
            self.values.append(canonical(value))
        return code

    def keep(self, is_used: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Forget the values whose codes are unused. Return the new code of each old code."""
        kept = is_used.copy()
        kept[NULL] = True
        renamed = (np.cumsum(kept) - 1).astype(np.int32)
        self.__init__([self.values[code] for code in np.flatnonzero(kept).tolist()])  # type: ignore[misc]
        return renamed
