"""Requesting rows beforehand changes no result."""

from typing import Any, cast

import numpy as np
import pytest
from numba import njit

from streams.kernels.compiling import kernel
from streams.kernels.prefetching import nothing, prefetch


@kernel
def followed(links, first):
    total, row = 0, first
    while row >= 0:
        total += links[row, 1]
        if links[row, 0] >= 0:
            prefetch(links, links[row, 0])
        row = links[row, 0]
    return total


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray])
def test_a_chain_is_read_as_without_it(form):
    rng = np.random.default_rng(3)
    order = rng.permutation(500)
    links = np.full((500, 3), -1)
    links[order[:-1], 0] = order[1:]
    links[:, 1] = rng.integers(0, 9, 500)
    assert followed(form(links), order[0]) == links[:, 1].sum()


@pytest.mark.compiled
def test_the_machine_code_requests_memory():
    compiled = cast(Any, njit(cast(Any, followed).py_func))  # without the cache, which keeps no text
    compiled(np.array([[-1, 0]]), 0)
    assert any("llvm.prefetch" in text for text in compiled.inspect_llvm().values())


def test_an_interpreted_kernel_requests_nothing():
    table, requested = np.zeros((2, 2)), cast(Any, nothing)
    assert requested(table, np.int64(1)) is None
    assert not table.any()
