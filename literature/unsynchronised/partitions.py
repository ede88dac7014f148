"""A join divided by hashes of keys: the part of each key, and the items of each part.

Source: section 8 of the specification. Disorder is a property of the whole input, so closing keys are measured before
the division; purging depends on keys only, so each part may apply the closing keys of the whole inputs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from literature.kernels.unsynchronised.tables import CLOSING

_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)
_HIGH_BITS = np.uint64(32)


def part_of(keys: NDArray[np.int64], parts: int) -> NDArray[np.uint64]:
    """The part, 0 to ``parts - 1``, that holds each key."""
    numbers: NDArray[np.uint64] = ((keys.astype(np.uint64) * _SCRAMBLE) >> _HIGH_BITS) % np.uint64(parts)
    return numbers


def divided(items: NDArray[np.void], parts: int) -> list[NDArray[np.void]]:
    """The items of each part: its arrivals, and at the end the closing keys of the whole inputs.

    Args:
        items: Items of one batch, completed by a monitor.
        parts: Number of parts.
    """
    last_rows = {int(number): place for place, number in enumerate(items["input"])}
    closings = items[sorted(last_rows.values())].copy()
    closings["kind"] = CLOSING
    is_closing = items["kind"] == CLOSING
    owners = part_of(items["key"], parts)
    return [np.concatenate([items[is_closing | (owners == part)], closings]) for part in range(parts)]
