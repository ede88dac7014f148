"""Running aggregates over the rows of each match, for measures. All matches are in one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.row_patterns.tables import AVERAGE, MINIMUM, SUM, Int
from streams.kernels.compiling import kernel


@kernel
def fold_integers(
    function: Int,
    firsts: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Replace the value of each line (row of a match) by the running aggregate over the match's chosen lines so far.

    ``counts`` receives the number of chosen lines so far. ``firsts`` has, by line, the first line of its match. Sums
    wrap beyond 64 bits.
    """
    for line in range(values.shape[0]):
        is_first = line == firsts[line]
        before = np.int64(0) if is_first else values[line - 1]
        count = np.int64(0) if is_first else counts[line - 1]
        value = values[line]
        if not chosen[line]:
            value = before
        elif count > 0:
            if function in (SUM, AVERAGE):
                value += before
            elif (before < value) == (function == MINIMUM):
                value = before
        values[line], counts[line] = value, count + np.int64(chosen[line])


@kernel
def fold_floats(
    function: Int,
    firsts: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Compute the running aggregates of ``fold_integers`` for floats, which are added in the order of lines."""
    for line in range(values.shape[0]):
        is_first = line == firsts[line]
        before = 0.0 if is_first else values[line - 1]
        count = np.int64(0) if is_first else counts[line - 1]
        value = values[line]
        if not chosen[line]:
            value = before
        elif count > 0:
            if function in (SUM, AVERAGE):
                value += before
            elif (before < value) == (function == MINIMUM):
                value = before
        values[line], counts[line] = value, count + np.int64(chosen[line])
