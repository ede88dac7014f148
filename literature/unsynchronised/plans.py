"""What intermediate streams of a plan of several joins look like, derived from its inputs.

Source: data-driven memory management for stream joins, sections 3.4, 4.2 and 4.3 of the specification. All are upper
bounds: buffers made with them lose nothing, and are larger than what the streams turn out to need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from literature.unsynchronised.memory_model import InputEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKey:
    """The next join is on another column than this one.

    Attributes:
        source: The input that the column comes from.
        dependent_factor: Of the column in that input (``dependent_factor``).
        multiplicity: Most arrivals of one value of the column in that input.
    """

    source: int
    dependent_factor: int
    multiplicity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJoin:
    """A join of a plan.

    Attributes:
        inputs: Streams, or joins whose output they are.
        other_key: None: the next join is on the same key.
    """

    inputs: tuple[InputEstimate | PlannedJoin, ...]
    other_key: OtherKey | None = None


def derived(plan: InputEstimate | PlannedJoin) -> InputEstimate:
    """Bounds of the output of a plan, bottom up."""
    if isinstance(plan, InputEstimate):
        return plan
    inputs = [derived(one) for one in plan.inputs]
    joined = joined_estimate(inputs)
    if plan.other_key is None:
        return joined
    key, others = plan.other_key, [one for number, one in enumerate(inputs) if number != plan.other_key.source]
    replicas = prod(one.multiplicity for one in others)
    scaled = scaled_dependent_factor(key.dependent_factor, [one.multiplicity for one in others])
    return InputEstimate(rate=joined.rate, factor=2 * joined.factor + scaled, multiplicity=key.multiplicity * replicas)


def joined_estimate(inputs: Sequence[InputEstimate]) -> InputEstimate:
    """Bounds of the output of a join, on its own key (4.2)."""
    others = [
        prod(one.multiplicity for place, one in enumerate(inputs) if place != number) for number in range(len(inputs))
    ]
    return InputEstimate(
        rate=sum(own.rate * replicas for own, replicas in zip(inputs, others, strict=True)),
        factor=sum(own.factor * replicas for own, replicas in zip(inputs, others, strict=True)),
        multiplicity=prod(one.multiplicity for one in inputs),
    )


def scaled_dependent_factor(dependent: int, multiplicities: Sequence[int]) -> int:
    """The dependent factor of a column behind a join: arrivals are replicated, which stretches positions (4.3).

    Args:
        dependent: In the input that the column comes from.
        multiplicities: Of the other inputs.
    """
    return (dependent + 1) * prod(multiplicities) - 1


def dependent_factor(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """The scrambling factor of a second column in a stream sorted on the first, in the worst order of ties (4.3)."""
    if not len(first):
        return 0
    ordered = np.sort(first)
    lowest = np.searchsorted(ordered, first, side="left") + 1
    highest = np.searchsorted(ordered, first, side="right")
    order = np.argsort(second, kind="stable")
    values = second[order]
    earliest = np.minimum.accumulate(lowest[order][::-1])[::-1]  # of all with at least this value
    return int(np.max(highest[order] - earliest[np.searchsorted(values, values, side="left")]))
