"""Tables by reference: what is read and written is the arrays themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import config, njit
from numba.core.errors import TypingError
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, routine

IS_COMPILED = not getattr(config, "DISABLE_JIT", 0)


class Inner(NamedTuple):
    bits: NDArray[np.uint64]
    flags: NDArray[np.bool_]


class Table(NamedTuple):
    numbers: NDArray[np.int64]
    matrix: NDArray[np.float64]
    inner: Inner
    width: int


class Uniform(NamedTuple):
    left: NDArray[np.int64]
    right: NDArray[np.int64]


@routine
def double(table, place):
    table.numbers[place] *= 2
    table.matrix[place, 1] += table.width
    table.inner.bits[place] |= np.uint64(4)
    return table.numbers.shape[0] + table.matrix.shape[1]


@inlined
def twice(table, place):
    return double(borrowed(table), place) + double(table, place)


@njit
def through(table, place):
    table = borrowed(table)
    return twice(table, place) if table.inner.flags[place] else 0


@routine
def add(table):
    table.left[0] += table.right[0]


@njit
def add_all(table, times):
    table = borrowed(table)
    for _ in range(times):
        add(table)


@njit
def borrow_any(value):
    return borrowed(value)


def test_routines_read_and_write_the_arrays_of_a_table():
    table = Table(
        numbers=np.arange(3),
        matrix=np.zeros((3, 2)),
        inner=Inner(bits=np.zeros(3, np.uint64), flags=np.array([True, False, True])),
        width=5,
    )
    assert through(table, 2) == 10
    assert through(table, 1) == 0
    assert table.numbers.tolist() == [0, 1, 8]
    assert table.matrix.tolist() == [[0, 0], [0, 0], [0, 10]]
    assert table.inner.bits.tolist() == [0, 0, 4]


def test_columns_of_one_type_lose_no_reference():
    table = Uniform(left=np.zeros(1_000, np.int64), right=np.ones(1_000, np.int64))
    for _ in range(200):
        add_all(table, 5)
    assert table.left[0] == 1_000
    assert np.array_equal(table.right, np.ones(1_000))


@pytest.mark.parametrize("value", [(1, 2), [1.0]])
def test_what_is_no_table_is_refused_while_compiling(value):
    if not IS_COMPILED:
        assert borrow_any(value) is value
        return
    with pytest.raises(TypingError, match="an array or a table of arrays can be borrowed"):
        borrow_any(value)
