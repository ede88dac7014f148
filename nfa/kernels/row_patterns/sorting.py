"""Grouping of rows by partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import kernel


@kernel
def group_rows(
    codes: NDArray[np.int32], rows: NDArray[np.int64], ends: NDArray[np.int64], grouped: NDArray[np.int64]
) -> None:
    """Write ``rows`` to ``grouped``, grouped by partition. Within a partition, rows keep their order.

    ``codes`` has the partition number of each row. ``ends`` has, for each partition, the offset in ``grouped`` at which
    its rows begin. The call replaces this offset by the offset after its rows.
    """
    for place in range(rows.shape[0]):
        row = rows[place]
        code = codes[row]
        grouped[ends[code]] = row
        ends[code] += 1
