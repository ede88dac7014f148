"""A hash table for keys that are already hashes. It uses open addressing with linear probing.

Slots have the shape (slots, 2), with key and value. Their number is a power of two. A slot with the value 0 is empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import apart, inlined, kernel

HOME_BITS = np.uint64(32)  # the low bits of a key's hash choose its shard, the high bits its slot


@inlined
def find_slot(slots: NDArray[np.uint64], key: np.uint64) -> np.uint64:
    """Return the slot of a key, or the empty slot into which it would be inserted."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = (key >> HOME_BITS) & mask
    while slots[slot, 1] != np.uint64(0) and slots[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@apart
def remove_slot(slots: NDArray[np.uint64], gap: np.uint64) -> None:
    """Empty a slot, and move later entries back to close the gap. No tombstones remain."""
    size = np.uint64(slots.shape[0])
    mask = size - np.uint64(1)
    slot = gap
    while True:
        slot = (slot + np.uint64(1)) & mask
        if slots[slot, 1] == np.uint64(0):
            break
        home = (slots[slot, 0] >> HOME_BITS) & mask
        if ((slot + size - home) & mask) >= ((slot + size - gap) & mask):
            slots[gap, 0] = slots[slot, 0]
            slots[gap, 1] = slots[slot, 1]
            gap = slot
    slots[gap, 1] = np.uint64(0)


@kernel
def fill_slots(slots: NDArray[np.uint64], keys: NDArray[np.uint64], values: NDArray[np.uint64]) -> bool:
    """Insert keys into slots that have room for them. Return False if a key is repeated or a value is 0."""
    for number in range(keys.shape[0]):
        slot = find_slot(slots, keys[number])
        if slots[slot, 1] != np.uint64(0) or values[number] == np.uint64(0):
            return False
        slots[slot, 0] = keys[number]
        slots[slot, 1] = values[number]
    return True
