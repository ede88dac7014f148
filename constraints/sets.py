"""Sets of small numbers as integers (bit ``i`` represents the member ``i``), and groups of overlapping sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)


def bits_of(numbers: Iterable[int]) -> int:
    """Return a set of numbers as an integer: bit ``i`` represents the number ``i``."""
    return union(1 << number for number in numbers)


def members(bits: int) -> Iterator[int]:
    """Yield the numbers in a set that is given as an integer, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def union(sets: Iterable[int]) -> int:
    """Return the union of sets that are given as integers."""
    united = 0
    for bits in sets:
        united |= bits
    return united


def overlapping(sets: Mapping[_Key, Iterable[Hashable]]) -> list[list[_Key]]:
    """Return groups of keys whose sets overlap, directly or through other sets, sorted by their first keys."""
    leader = {key: key for key in sets}

    def leader_of(key: _Key) -> _Key:
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    owner: dict[Hashable, _Key] = {}
    for key, elements in sets.items():
        for element in elements:
            leader[leader_of(key)] = leader_of(owner.setdefault(element, key))
    groups: dict[_Key, list[_Key]] = {}
    for key in sets:
        groups.setdefault(leader_of(key), []).append(key)
    return list(groups.values())
