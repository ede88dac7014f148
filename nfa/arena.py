"""Arrays that grow."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item", bound=np.generic)


def grown(array: NDArray[Item], size: int, fill: int = 0) -> NDArray[Item]:
    """A copy with ``size`` rows, the new ones filled."""
    larger: NDArray[Item] = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill != 0:
        larger[len(array) :] = fill
    return larger


def power_above(count: int, least: int) -> int:
    """The smallest power of two that is at least ``count`` and ``least``."""
    return 1 << (max(count, least) - 1).bit_length()
