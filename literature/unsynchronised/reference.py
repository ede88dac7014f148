"""Reference of unsynchronised joins: the definitions over whole lists of keys.

Source: data-driven memory management for stream joins, section 2 of the specification. Positions count from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

NEVER = -(2**63)


def scrambling_factor_by_pairs(keys: Sequence[int]) -> int:
    """The largest distance of an arrival from an earlier one with a key at least as high; compares every pair."""
    return max(
        (later - earlier for later in range(len(keys)) for earlier in range(later + 1) if keys[later] <= keys[earlier]),
        default=0,
    )


def virtual_indices(keys: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last position of each arrival's key in the sorted stream."""
    return [(1 + sum(other < key for other in keys), sum(other <= key for other in keys)) for key in keys]


def multiplicity(keys: Sequence[int]) -> int:
    """The largest number of arrivals with one key."""
    return max((last - first + 1 for first, last in virtual_indices(keys)), default=0)


def closing_key(keys: Sequence[int], factor: int) -> int:
    """The highest key of all arrivals but the newest ``factor``; with the true factor, all later keys are higher."""
    return max(keys[: max(len(keys) - factor, 0)], default=NEVER)


def lag(own: Sequence[int], other: Sequence[int], arrived: int, arrived_of_other: int) -> int:
    """The number of its own arrivals by which a stream leads another; negative: it lags.

    Args:
        own: All keys of the stream, including future ones.
        other: All keys of the other stream.
        arrived: Number of arrivals of the stream so far.
        arrived_of_other: Number of arrivals of the other stream so far, at least one.
    """
    rank_key = sorted(other)[arrived_of_other - 1]
    return arrived - sum(key <= rank_key for key in own)


def dependent_factor_by_pairs(first: Sequence[int], second: Sequence[int]) -> int:
    """The scrambling factor of a second column in a stream sorted on the first, in the worst order of ties."""
    ranks = virtual_indices(first)
    return max(
        (
            ranks[place][1] - ranks[other][0]
            for place, other in product(range(len(first)), repeat=2)
            if second[place] <= second[other]
        ),
        default=0,
    )


def full_join(arrivals: Sequence[tuple[int, int]], inputs: int) -> list[tuple[int, tuple[int, ...]]]:
    """The equijoin of all arrivals, each combination at its last arrival.

    Args:
        arrivals: Input and key of each arrival.
        inputs: Number of inputs.

    Returns:
        For each combination, the place of the last arrival, and the places of all members by input.
    """
    combinations = []
    for place, (number, key) in enumerate(arrivals):
        before: list[list[int]] = [
            [other for other in range(place) if arrivals[other] == (source, key)] if source != number else [place]
            for source in range(inputs)
        ]
        combinations += [(place, members) for members in product(*before)]
    return combinations


def slots_needed(arrivals: Sequence[tuple[int, int]], inputs: int) -> Iterator[tuple[int, int, int]]:
    """The slots of an optimal buffer: for each member of a result, its rank among its input's newest arrivals.

    Yields:
        The place at which the result is complete, an input other than the last arrival's, and the slots.
    """
    positions, counts = [], [0] * inputs
    totals: list[tuple[int, ...]] = []
    for number, _ in arrivals:
        counts[number] += 1
        positions.append(counts[number])
        totals.append(tuple(counts))
    for place, members in full_join(arrivals, inputs):
        for number, member in enumerate(members):
            if member != place:
                yield place, number, totals[place][number] - positions[member] + 1
