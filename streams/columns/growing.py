"""Columns that grow at the end, in amortised constant time per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streams.columns.arrow_columns import column_of
from streams.columns.texts import borders_of, bytes_of


class GrowingNumbers:
    """A growing column of numbers of one type. The initial numbers are copied."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values.copy()
        self._size = len(values)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """All numbers, without a copy; valid until the next call of ``add``."""
        return self._room[: self._size]

    def add(self, values: NDArray[Any]) -> None:
        size = self._size + len(values)
        if size > len(self._room):
            self._room = np.concatenate([self.values, np.empty(size, self._room.dtype)])
        self._room[self._size : size] = values
        self._size = size


class GrowingTexts:
    """A growing column of texts or bytes with 32-bit offsets. The initial texts, an Arrow column, are copied."""

    def __init__(self, texts: pa.Array) -> None:
        self._kind = texts.type
        self._bytes = GrowingNumbers(np.zeros(0, np.uint8))
        self._borders = GrowingNumbers(np.zeros(1, np.int64))
        self.add(texts)

    def __len__(self) -> int:
        return len(self._borders) - 1

    def add(self, texts: pa.Array) -> None:
        if len(texts):
            borders = borders_of(texts).astype(np.int64)
            self._borders.add(borders[1:] - borders[0] + len(self._bytes))
            self._bytes.add(np.frombuffer(bytes_of(texts), np.uint8))

    def take(self, rows: NDArray[np.intp]) -> pa.Array:
        """Return the texts at the given rows. The column has the type of the initial texts."""
        buffers = [None, pa.py_buffer(self._borders.values), pa.py_buffer(self._bytes.values)]
        is_text = pa.types.is_string(self._kind)
        kind = pa.large_string() if is_text else pa.large_binary()
        return pa.Array.from_buffers(kind, len(self), buffers).take(column_of(rows)).cast(self._kind)
