"""Attribute values as columns, with the pattern language's own notion of comparison.

Values are null, boolean, int64, float64 and string; whatever else JSON holds (lists, objects), a float that is not
finite and a missing attribute are null. Logic is three-valued, as in SQL. Semantics: ``docs/semantics.md``, values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NULL, BOOLEAN, INTEGER, FLOAT, TEXT = range(5)

_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Values:
    """One value per row.

    Attributes:
        kinds: uint8, what each row holds: ``NULL`` to ``TEXT``.
        integers: int64; integers, and booleans as 0 and 1.
        floats: float64; numbers of either kind.
        texts: object; strings, elsewhere the empty text.
    """

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]
    texts: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, items: Iterable[Any]) -> Values:
        """Column form of plain JSON values."""
        rows = [classified(item) for item in items]
        kinds = np.array([kind for kind, _ in rows], np.uint8)
        integers = np.array([value if kind in (BOOLEAN, INTEGER) else 0 for kind, value in rows], np.int64)
        floats = np.array([float(value) if kind in (INTEGER, FLOAT) else 0.0 for kind, value in rows], np.float64)
        texts = np.array([value if kind == TEXT else "" for kind, value in rows], np.object_)
        return cls(kinds, integers, floats, texts)

    @classmethod
    def of_arrow(cls, column: pa.Array) -> Values:
        """Column form of a typed Arrow array; types other than bool, int64, float64 and string are read row by row."""
        size = len(column)
        is_valid = np.asarray(column.is_valid())
        zeros, texts = np.zeros(size, np.int64), np.full(size, "", np.object_)
        if pa.types.is_int64(column.type):
            integers = column.fill_null(0).to_numpy(zero_copy_only=False)
            return cls(np.where(is_valid, INTEGER, NULL).astype(np.uint8), integers, integers.astype(np.float64), texts)
        if pa.types.is_float64(column.type):
            floats = column.fill_null(np.nan).to_numpy(zero_copy_only=False)
            is_finite = np.isfinite(floats)
            kinds = np.where(is_finite, FLOAT, NULL).astype(np.uint8)
            return cls(kinds, zeros, np.where(is_finite, floats, 0.0), texts)
        return cls.of(column.to_pylist())

    @classmethod
    def of_truth(cls, is_true: NDArray[np.bool_], is_null: NDArray[np.bool_]) -> Values:
        """Truth values; null wins."""
        kinds = np.where(is_null, NULL, BOOLEAN).astype(np.uint8)
        integers = (is_true & ~is_null).astype(np.int64)
        return cls(kinds, integers, np.zeros(len(kinds)), np.full(len(kinds), "", np.object_))

    @property
    def is_true(self) -> NDArray[np.bool_]:
        """Rows that hold the boolean true."""
        is_true: NDArray[np.bool_] = (self.kinds == BOOLEAN) & (self.integers != 0)
        return is_true

    @property
    def is_false(self) -> NDArray[np.bool_]:
        """Rows that hold the boolean false."""
        is_false: NDArray[np.bool_] = (self.kinds == BOOLEAN) & (self.integers == 0)
        return is_false

    @property
    def is_null(self) -> NDArray[np.bool_]:
        """Rows that hold null."""
        return np.equal(self.kinds, NULL)


def classified(item: Any) -> tuple[int, Any]:
    """Kind and normal value of one plain JSON value."""
    match item:
        case bool():
            return BOOLEAN, int(item)
        case int():
            return (INTEGER, item) if item in _INT64 else (FLOAT, float(item))
        case float():
            return (FLOAT, item) if isfinite(item) else (NULL, None)
        case str():
            return TEXT, item
        case _:
            return NULL, None
