"""Conversion between NumPy numbers and Arrow columns.

Numbers are not copied. Arrow's own conversions are not used, because they import pandas, which takes longer than most
commands.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def column_of(values: NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Convert a one-dimensional array to an Arrow column. Contiguous numbers are not copied. Booleans are copied.

    NaN is a value, not a null. The column has the type of the array, or ``kind``, a type of the same width.
    """
    is_flag = values.dtype == np.bool_
    content = np.packbits(values, bitorder="little") if is_flag else np.ascontiguousarray(values)
    arrow_type = kind or pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(content)])


def time_column(times_us: NDArray[np.int64]) -> pa.Array:
    """Convert times in microseconds to an Arrow column of the type that batches use, without a copy."""
    return column_of(times_us, pa.timestamp("us", tz="UTC"))


def numbers_of(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column without nulls as a read-only view. Times are read as int64."""
    kind = _kind_of(column.type)
    if not len(column):
        return np.zeros(0, kind)
    numbers = np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)
    numbers.flags.writeable = False
    return numbers


@cache
def _kind_of(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(np.int64) if pa.types.is_timestamp(kind) else np.dtype(kind.to_pandas_dtype())
