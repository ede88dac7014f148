"""Grouping of rows by the number of their partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import kernel


@kernel
def group_rows(
    codes: NDArray[np.int32], rows: NDArray[np.int64], ends: NDArray[np.int64], grouped: NDArray[np.int64]
) -> None:
    """Write the rows partition by partition into ``grouped``, in the order of ``rows`` within each partition.

    ``codes`` are the partition numbers by row. For each partition ``ends`` holds the place of its first row, and
    afterwards the place after its last row.
    """
    for place in range(rows.shape[0]):
        row = rows[place]
        code = codes[row]
        grouped[ends[code]] = row
        ends[code] += 1
