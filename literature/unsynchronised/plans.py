"""Estimates of the intermediate streams in a plan of several joins, derived from its inputs.

Source: data-driven memory management for stream joins, sections 3.4, 4.2 and 4.3 of the specification. The estimates
are upper bounds: buffers made with them lose nothing, and are larger than the streams turn out to need.
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
    """The key of the next join, where it is another column than the key of this join.

    Attributes:
        source: Number of the input that has the column.
        dependent_factor: Dependent factor of the column in that input (``dependent_factor``).
        multiplicity: Greatest number of arrivals of one value of the column in that input.
    """

    source: int
    dependent_factor: int
    multiplicity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJoin:
    """A join of a plan.

    Attributes:
        inputs: Streams, or joins whose output is the input.
        other_key: Key of the next join; None: the same key.
    """

    inputs: tuple[InputEstimate | PlannedJoin, ...]
    other_key: OtherKey | None = None


def derived(plan: InputEstimate | PlannedJoin) -> InputEstimate:
    """Bounds of the output of a plan, computed bottom up."""
    if isinstance(plan, InputEstimate):
        return plan
    inputs = [derived(input_plan) for input_plan in plan.inputs]
    joined = joined_estimate(inputs)
    if plan.other_key is None:
        return joined
    key, others = (
        plan.other_key,
        [estimate for number, estimate in enumerate(inputs) if number != plan.other_key.source],
    )
    replicas = prod(estimate.multiplicity for estimate in others)
    scaled = scaled_dependent_factor(key.dependent_factor, [estimate.multiplicity for estimate in others])
    return InputEstimate(rate=joined.rate, factor=2 * joined.factor + scaled, multiplicity=key.multiplicity * replicas)


def joined_estimate(inputs: Sequence[InputEstimate]) -> InputEstimate:
    """Bounds of the output of a join, on its own key (4.2)."""
    others = [
        prod(estimate.multiplicity for place, estimate in enumerate(inputs) if place != number)
        for number in range(len(inputs))
    ]
    return InputEstimate(
        rate=sum(estimate.rate * replicas for estimate, replicas in zip(inputs, others, strict=True)),
        factor=sum(estimate.factor * replicas for estimate, replicas in zip(inputs, others, strict=True)),
        multiplicity=prod(estimate.multiplicity for estimate in inputs),
    )


def scaled_dependent_factor(dependent: int, multiplicities: Sequence[int]) -> int:
    """The dependent factor of a column after a join, which replicates arrivals and so stretches positions (4.3).

    Args:
        dependent: Dependent factor in the input that has the column.
        multiplicities: Multiplicities of the other inputs.
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
