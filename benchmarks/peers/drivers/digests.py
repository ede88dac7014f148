"""A hash of a set of matches that does not depend on their order. All drivers compute the same hash.

A match is the place of its pattern and the numbers of its events in ascending order. Its hash combines these numbers
one after the other with the finaliser of splitmix64. The digest of all matches is the sum of their hashes modulo 2^64.
Java drivers compute the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_ALL = (1 << 64) - 1


def mixed(given: int) -> int:
    """Return one step of splitmix64."""
    z = (given + 0x9E3779B97F4A7C15) & _ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    return z ^ (z >> 31)


def digest_of(matches: Iterable[tuple[int, Sequence[int]]]) -> tuple[int, str]:
    """Return the number of matches, and their digest as 16 hexadecimal digits."""
    count = total = 0
    for pattern, numbers in matches:
        value = mixed(pattern)
        for number in numbers:
            value = mixed(value ^ number)
        total = (total + value) & _ALL
        count += 1
    return count, f"{total:016x}"
