"""The full-bucket disk join: pairs of a bucket that were never in memory together.

Source: component 3 of PJoin (section 3.2 of the specification of punctuation-aware joins). Two events were in memory
together if the later one arrived before either was flushed; then the later one has found the earlier one. Pairs whose
events had both arrived when the bucket was last covered were emitted by that disk join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from literature.spilling.files import ON_DISK


class LeftoverPairs(NamedTuple):
    """Results of a disk join, ordered by the arrival of their later members."""

    members: NDArray[np.int64]  # (results, 2) sequences
    times: NDArray[np.int64]  # of the later member


class BucketSide(NamedTuple):
    """The events of one input in a bucket, as ``ON_DISK`` rows; ``flushed`` of those in memory is unlimited."""

    on_disk: NDArray[np.void]
    in_memory: NDArray[np.void]


def leftover_pairs(first: BucketSide, second: BucketSide, covered: int) -> LeftoverPairs:
    """The pairs of events with equal keys that were not emitted yet, each once.

    Args:
        first: Events of the first input.
        second: Events of the second input.
        covered: Sequence number at which the bucket was last covered; 0: never.
    """
    everything = np.concatenate([second.on_disk, second.in_memory])
    candidates = [
        *_unemitted(first.on_disk, everything, covered),
        *_unemitted(first.in_memory, second.on_disk, covered),
    ]
    pairs = [part for part in candidates if len(part[0])]
    if not pairs:
        return LeftoverPairs(np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
    first_events = np.concatenate([first_rows for first_rows, _ in pairs])
    second_events = np.concatenate([second_rows for _, second_rows in pairs])
    later = np.maximum(first_events["arrived"], second_events["arrived"])
    order = np.lexsort((np.minimum(first_events["arrived"], second_events["arrived"]), later))
    members = np.column_stack([first_events["arrived"], second_events["arrived"]])[order]
    return LeftoverPairs(members, np.maximum(first_events["time"], second_events["time"])[order])


_Matches = tuple[NDArray[np.void], NDArray[np.void]]


def _unemitted(ones: NDArray[np.void], others: NDArray[np.void], covered: int) -> list[_Matches]:
    """Pairs that were never in memory together and have an event that arrived after the last disk join."""
    is_new, is_new_other = ones["arrived"] >= covered, others["arrived"] >= covered
    return [_apart(ones[is_new], others), _apart(ones[~is_new], others[is_new_other])]


def _apart(ones: NDArray[np.void], others: NDArray[np.void]) -> _Matches:
    if not len(ones) or not len(others):
        return np.zeros(0, ON_DISK), np.zeros(0, ON_DISK)
    by_key = others[np.argsort(others["key"], kind="stable")]
    begins = np.searchsorted(by_key["key"], ones["key"], "left")
    counts = np.searchsorted(by_key["key"], ones["key"], "right") - begins
    left = np.repeat(np.arange(len(ones)), counts)
    offsets = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = np.repeat(begins, counts) + offsets
    later = np.maximum(ones["arrived"][left], by_key["arrived"][right])
    flushed = np.minimum(ones["flushed"][left], by_key["flushed"][right])
    is_apart = later >= flushed
    return ones[left[is_apart]], by_key[right[is_apart]]
