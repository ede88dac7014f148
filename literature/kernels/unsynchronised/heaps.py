"""Binary heaps of keys, lowest first, in arrays of ``HEAP`` records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import routine


@routine
def push_key(heap: NDArray[np.void], size: np.int64, key: np.int64, cluster: np.int64) -> None:
    """Push a key onto a heap of ``size`` keys; the caller increments the size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent]["key"] <= key:
            break
        heap[place]["key"] = heap[parent]["key"]
        heap[place]["cluster"] = heap[parent]["cluster"]
        place = parent
    heap[place]["key"] = key
    heap[place]["cluster"] = cluster


@routine
def pop_key(heap: NDArray[np.void], size: np.int64) -> None:
    """Pop the lowest key of a heap of ``size`` keys; the caller decrements the size."""
    last = size - 1
    key, cluster = heap[last]["key"], heap[last]["cluster"]
    place = np.int64(0)
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and heap[child + 1]["key"] < heap[child]["key"]:
            child += 1
        if heap[child]["key"] >= key:
            break
        heap[place]["key"] = heap[child]["key"]
        heap[place]["cluster"] = heap[child]["cluster"]
        place = child
    heap[place]["key"] = key
    heap[place]["cluster"] = cluster
