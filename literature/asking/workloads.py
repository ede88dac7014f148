"""Frequencies of questions by pattern: the examples of the specification, its extreme workloads, and random ones.

Source: the specification of parameterised group-by, sections 3.7 and 5. A pattern is the set of attributes that a
question fixes, as bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.choosing import Problem
from aggregates.asking.costs import CostModel, Workload

Frequencies: TypeAlias = Mapping[int, float]

EXAMPLES: Mapping[int, Frequencies] = {
    1: {1: 0.4, 3: 0.1, 2: 0.3, 4: 0.2},
    2: {1: 0.3, 3: 0.4, 4: 0.3},
    3: {1: 0.3, 3: 0.4, 6: 0.25, 4: 0.05},
}


def extreme(attributes: int) -> Mapping[str, Frequencies]:
    """All patterns equal; the first or the last attribute alone half of the time; each attribute alone."""
    patterns = 2**attributes
    share = 0.5 / (patterns - 1)
    leading = {
        name: {**dict.fromkeys(range(patterns), share), pattern: 0.5}
        for name, pattern in (("asc", 1), ("desc", patterns // 2))
    }
    return {
        "uniform": dict.fromkeys(range(patterns), 1 / patterns),
        **leading,
        "exclusive": {1 << attribute: 1 / attributes for attribute in range(attributes)},
    }


def layered(attributes: int, deviation: float) -> Frequencies:
    """A normal density around the middle pattern, cut off at its standard deviation (``trunc``)."""
    middle = 2 ** (attributes - 1)
    near = [pattern for pattern in range(2**attributes) if -deviation <= pattern - middle < deviation]
    return _shares({pattern: np.exp(-0.5 * ((pattern - middle) / deviation) ** 2) for pattern in near})


def zipf(attributes: int, alpha: float) -> Frequencies:
    """Frequencies that fall with the rank of a pattern, its number."""
    return _shares({pattern: (pattern + 1.0) ** -alpha for pattern in range(2**attributes)})


def permuted(frequencies: Frequencies, attributes: int, seed: int) -> Frequencies:
    """The same frequencies of other patterns."""
    order = np.random.default_rng(seed).permutation(2**attributes).tolist()
    return {order[pattern]: share for pattern, share in frequencies.items()}


def problem_of(
    frequencies: Frequencies, attributes: int, *, rows: float, bits: int = 16, events: float = 1.0
) -> Problem:
    """The choice of an index for one question in a unit of time, with unit costs as in the specification.

    ``rows`` are the events in the window, ``events`` those that come for each question.
    """
    patterns = np.array(list(frequencies), np.int64)
    shares = np.array(list(frequencies.values()), np.float64)
    workload = Workload(attributes, events, patterns, shares, np.full(len(patterns), rows))
    caps: NDArray[np.int64] = np.full(attributes, bits, np.int64)
    return Problem(workload, CostModel(hashing=1.0, comparing=1.0), bits, caps)


def _shares(weights: Mapping[int, float]) -> Frequencies:
    total = sum(weights.values())
    return {pattern: float(weight / total) for pattern, weight in weights.items()}
