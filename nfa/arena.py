"""Growable arrays, distinct values, and array views for kernels."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_FEW_ROWS = 256
_FEW = 500  # up to this number of values, sorting is fast enough
_SPARSE = 8  # a longer table of flags, as a multiple of the number of values, costs as much as sorting

Item = TypeVar("Item", bound=np.generic)


def grown(array: NDArray[Item], size: int, fill: int = 0) -> NDArray[Item]:
    """Return a copy of an array that has ``size`` rows. The added rows have the value ``fill``."""
    larger: NDArray[Item] = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill != 0:
        larger[len(array) :] = fill
    return larger


def power_above(count: int, least: int) -> int:
    """Return the smallest power of two that is at least ``count`` and at least ``least``."""
    return 1 << (max(count, least) - 1).bit_length()


def distinct(values: NDArray[Item]) -> NDArray[Item]:
    """Return the distinct values in ascending order.

    ``numpy.unique`` hashes values, which is slow if most values are distinct.
    """
    if len(values) > _FEW:
        least = int(values.min())
        reach = int(values.max()) - least + 1
        if reach <= _SPARSE * len(values):
            is_present = np.zeros(reach, np.bool_)
            is_present[values - least] = True
            return (np.flatnonzero(is_present) + least).astype(values.dtype)
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    unique_values: NDArray[Item] = ordered[is_first]
    return unique_values


def distinct_rows(rows: NDArray[Item]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the distinct rows, and number them in ascending order.

    The first result has, for each distinct row, the index of its first occurrence in ``rows``. The second has, for each
    of ``rows``, the number of its distinct row.
    """
    if len(rows) > _FEW_ROWS:
        _, firsts, places = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return firsts, places.reshape(-1)
    row_tuples = list(map(tuple, rows.tolist()))
    first: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(row_tuples):
        first.setdefault(row, number)
    ordered = sorted(first)
    place = {row: number for number, row in enumerate(ordered)}
    return np.array([first[row] for row in ordered], np.intp), np.array([place[row] for row in row_tuples], np.intp)


def writable(array: NDArray[Item]) -> NDArray[Item]:
    """Return a writable view of an array, because kernels are compiled for writable arrays only.

    Callers must not write to the result, which shares the memory of ``array``.
    """
    if array.flags.writeable:
        return array
    return np.asarray(_WritableMemory(array))


class _WritableMemory:
    def __init__(self, array: NDArray[np.generic]) -> None:
        self._array = array  # keeps the memory alive while it is viewed
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
