"""The choice of the blocks on disk that a disk join must read, by their fences.

Source: sections 3.2 and 7.3 of the specification of punctuation-aware joins. A pair remains to be found if one of its
events is on disk, both were never in memory together, and one arrived after the bucket was last covered. So a block is
read only if an event of the other input with a key between the block's fences may be the other half of such a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from literature.spilling.files import Block


class FencedSide(NamedTuple):
    """The events of one input in a bucket: blocks on disk, and rows in memory."""

    blocks: Sequence[Block]
    in_memory: NDArray[np.void]


def blocks_with_pairs(mine: FencedSide, other: FencedSide, covered: int) -> list[bool]:
    """For each block of a side, whether it may have events of pairs that were not found yet.

    Args:
        mine: The side.
        other: The other side.
        covered: Sequence number at which the bucket was last covered; 0: never.
    """
    order = np.argsort(other.in_memory["key"], kind="stable")
    keys, arrived = other.in_memory["key"][order], other.in_memory["arrived"][order]
    fences = np.array(
        [(other_block.low, other_block.high, other_block.arrived, other_block.flushed) for other_block in other.blocks],
        np.int64,
    ).reshape(-1, 4)
    return [
        _has_partner_in_memory(block, keys, arrived, covered) or _has_partner_on_disk(block, fences, covered)
        for block in mine.blocks
    ]


def _has_partner_in_memory(block: Block, keys: NDArray[np.int64], arrived: NDArray[np.int64], covered: int) -> bool:
    """Whether an event in memory (sorted keys) arrived after the flush of the block and the last disk join."""
    first, last = np.searchsorted(keys, block.low, "left"), np.searchsorted(keys, block.high, "right")
    return bool(np.any(arrived[first:last] >= max(covered, block.flushed)))


def _has_partner_on_disk(block: Block, fences: NDArray[np.int64], covered: int) -> bool:
    """Whether a block with fences (key from, to, last arrival, first flush) may have the other half of a pair."""
    low, high, arrived, flushed = fences.T
    is_near = (low <= block.high) & (block.low <= high)
    least = np.maximum(covered, np.minimum(block.flushed, flushed))
    return bool(np.any(is_near & (np.maximum(block.arrived, arrived) >= least)))
