"""Index methods that the IMP index is compared with: a hash index of one attribute, and one of several.

Source: the specification of parameterised group-by, section 5, experiment 22.2. A hash index is an index whose bits all
belong to its attributes; it can be used if a question fixes all of them, otherwise all events are scanned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.choosing import eprune
from aggregates.asking.costs import MEASURED
from aggregates.asking.ring import EventColumns, EventRing, FoundEvents
from literature.asking.greedy import by_weight
from literature.asking.workloads import Frequencies, problem_of

BITS = 16


class FixedIndex:
    """Events with a configuration that does not change.

    ``required`` are the attributes that a question has to fix, so that the index is used. An index that ``is_measured``
    scans where the measured costs are in favour of it.
    """

    def __init__(self, bits: tuple[int, ...], required: tuple[int, ...] = (), *, is_measured: bool = False) -> None:
        self.bits, self._required, self._is_measured = bits, required, is_measured
        self._ring = EventRing(len(bits), 0)
        self._ring.begin_move(bits)

    def insert(self, codes: NDArray[np.int32], most: int) -> None:
        """Append events, of which at most a number is kept."""
        ring = self._ring
        times_us = np.arange(ring.end, ring.end + len(codes))
        ring.append(EventColumns(times_us, codes, np.zeros((0, len(codes)))))
        ring.expire(ring.end - most)

    def find(self, where: Mapping[int, int]) -> FoundEvents:
        """The events whose attributes have given codes."""
        columns, codes = np.array(list(where), np.int64), np.array(list(where.values()), np.int32)
        if self._is_measured:
            return self._ring.find(columns, codes, self._ring.first, MEASURED)
        if all(attribute in where for attribute in self._required):
            return self._ring.probe(columns, codes, self._ring.first)
        return self._ring.scan(columns, codes, self._ring.first)


def imp(
    frequencies: Frequencies, attributes: int, rows: int, *, is_measured: bool = False, bits: int = BITS
) -> FixedIndex:
    """The IMP index with the best configuration of a number of bits, for unit costs or for measured costs."""
    problem = problem_of(frequencies, attributes, rows=rows, bits=bits)
    if is_measured:
        problem = replace(problem, model=MEASURED)
    return FixedIndex(eprune(problem).configuration, is_measured=is_measured)


def hash_of_one(frequencies: Frequencies, attributes: int, rows: int) -> FixedIndex:
    """1-Attr-Hash: the attribute with the greatest occurrence weight."""
    leading = by_weight(problem_of(frequencies, attributes, rows=rows))(set()) or 0
    return FixedIndex(tuple(BITS * (attribute == leading) for attribute in range(attributes)), (leading,))


def hash_of_all(frequencies: Frequencies, attributes: int) -> FixedIndex:
    """M-Attr-Hash: all attributes of the most frequent pattern."""
    pattern = max(frequencies, key=lambda candidate: frequencies[candidate])
    required = tuple(attribute for attribute in range(attributes) if pattern >> attribute & 1)
    share = BITS // len(required)
    return FixedIndex(tuple(share * (attribute in required) for attribute in range(attributes)), required)
