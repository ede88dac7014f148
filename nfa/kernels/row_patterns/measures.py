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
    """Replace the value of each line by a running aggregate. A line is a row of a match.

    The aggregate is over the ``chosen`` lines from the first line of the match to this line. ``counts`` receives the
    number of these lines. ``firsts`` has, for each line, the first line of its match. Sums wrap beyond 64 bits.
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
    """Replace floats by running aggregates, as ``fold_integers`` does. Floats are added in the order of lines."""
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
