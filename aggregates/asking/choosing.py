"""Choice of the index's configuration by EPrune, which is exact, or by a local search, which examines few candidates.

Source: the specification of parameterised group-by, sections 3.5, 3.6 (*polish*) and 3.8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.costs import CostModel, Workload

MOST_WORK = 2**17  # most (candidate, pattern) pairs for the exact search
_TIES = 1e-12  # relative difference of costs that may be due to rounding


@dataclass(frozen=True, slots=True)
class Choice:
    """The configuration of the question index that a search has chosen, and its cost.

    A configuration has the number of address bits of each attribute. ``evaluated`` is the number of configurations that
    were compared. ``way`` is the name of the search.
    """

    configuration: tuple[int, ...]
    cost: float
    evaluated: int
    way: str


def candidates(caps: NDArray[np.int64], bits: int, *, is_full: bool) -> NDArray[np.int8]:
    """Return all configurations (rows) with at most ``bits`` bits in total, and ``caps`` for each attribute.

    With ``is_full``, a configuration is left out if an attribute that has bits could have another bit.
    """
    configurations, left = np.zeros((1, 0), np.int8), np.array([bits])
    for place, cap in enumerate(caps.tolist()):
        most = np.minimum(cap, left)
        is_last = is_full and place == len(caps) - 1  # then only the greatest and the least number of bits are possible
        choices = np.where(is_last, np.minimum(most, 1), most) + 1
        parents = np.repeat(np.arange(len(configurations)), choices)
        step = np.arange(len(parents)) - np.repeat(np.cumsum(choices) - choices, choices)
        bits_given = np.where(is_last & (step > 0), most[parents], step)
        configurations = np.column_stack([configurations[parents], bits_given.astype(np.int8)])
        left = left[parents] - bits_given
    if not is_full:
        return configurations
    is_saturated = (left == 0) | ((configurations == 0) | (configurations == caps)).all(axis=1)
    full: NDArray[np.int8] = configurations[is_saturated]
    return full


@dataclass(frozen=True)
class Problem:
    """A search problem: find the cheapest configuration of the index with at most ``bits`` address bits.

    Each attribute may have at most as many bits as its entry in ``caps``.
    """

    workload: Workload
    model: CostModel
    bits: int
    caps: NDArray[np.int64]

    @cached_property
    def limits(self) -> NDArray[np.int64]:
        """The most bits that are useful for each attribute: its cap, or 0 if indexing the attribute saves nothing."""
        benefits = self.model.benefits(self.workload, self.caps, self.bits)
        return np.where(benefits > 0, np.minimum(self.caps, self.bits), 0)

    @property
    def is_full(self) -> bool:
        """Whether only configurations that use all bits are compared.

        This is so if visiting a partition costs nothing.
        """
        return self.model.visiting == 0

    def cost(self, configuration: tuple[int, ...]) -> float:
        return float(self.model.costs(np.array([configuration], np.int8), self.workload)[0])

    def best_of(self, some: NDArray[np.int8], way: str) -> Choice:
        """Return the cheapest of the configurations ``some``. ``way`` is the name of the search.

        If several are cheapest, return the one with the fewest indexed attributes, then the lexicographically greatest.
        """
        costs = self.model.costs(some, self.workload)
        least = costs.min()
        equal = some[costs <= least + _TIES * abs(least)]
        best = min(
            equal.tolist(),
            key=lambda configuration: (sum(bit > 0 for bit in configuration), [-bit for bit in configuration]),
        )
        return Choice(tuple(best), float(least), len(some), way)

    @property
    def empty(self) -> Choice:
        """Return the configuration without address bits, that is, without an index."""
        return self.best_of(np.zeros((1, self.workload.attributes), np.int8), "none")


def eprune(problem: Problem) -> Choice:
    """Find the cheapest configuration by comparing all configurations of the attributes that are worth indexing.

    Source: EPrune.
    """
    limits = problem.limits
    some = candidates(limits, problem.bits, is_full=problem.is_full)
    indexing = some[some.any(axis=1)]
    empty = np.zeros((1, problem.workload.attributes), np.int8)
    best = problem.best_of(np.concatenate([empty, indexing]), "eprune")
    return replace(best, evaluated=len(indexing))


def polished(problem: Problem, begin: Choice) -> Choice:
    """Improve the configuration ``begin`` by hill climbing: move, add or remove bits while the cost falls."""
    best, evaluated = begin, begin.evaluated
    while True:
        moves = _moves(best.configuration, problem)
        if not len(moves):
            break
        neighbour = problem.best_of(moves, "polished")
        evaluated += len(moves)
        if neighbour.cost >= best.cost * (1 - _TIES):
            break
        best = neighbour
    return Choice(best.configuration, best.cost, evaluated, "polished")


def local_search(problem: Problem) -> Choice:
    """Run hill climbing from no index, and from an equal distribution of bits. Return the cheaper result."""
    optima = [polished(problem, begin) for begin in (problem.empty, _with_equal_bits(problem))]
    best = min(optima, key=lambda optimum: optimum.cost)
    return replace(best, evaluated=sum(optimum.evaluated for optimum in optima))


def best_configuration(problem: Problem) -> Choice:
    """Return the cheapest configuration: by ``eprune`` if its candidates are few enough, else by ``local_search``."""
    free = int((problem.limits > 0).sum())
    if comb(problem.bits + free, free) * len(problem.workload.patterns) <= MOST_WORK:
        return eprune(problem)
    return local_search(problem)


def _with_equal_bits(problem: Problem) -> Choice:
    bits = np.zeros_like(problem.limits)
    for _ in range(problem.bits):
        bits[np.argmin(np.where(bits < problem.limits, bits, MOST_WORK))] += bits.sum() < problem.limits.sum()
    return problem.best_of(bits.astype(np.int8)[None, :], "equal")


def _moves(configuration: tuple[int, ...], problem: Problem) -> NDArray[np.int8]:
    """Return the neighbours of a configuration: bits move from one attribute to another, into use or out of use."""
    configurations = []
    givers = [*enumerate(configuration), (-1, problem.bits - sum(configuration))]
    for giver, bits in givers:
        for moved in range(1, bits + 1):
            for taker in range(-1, len(configuration)):
                if taker == giver or (taker >= 0 and configuration[taker] + moved > problem.limits[taker]):
                    continue
                changed = [*configuration, 0]  # the last entry is the number of unused bits
                changed[giver] -= moved
                changed[taker] += moved
                configurations.append(changed[:-1])
    return np.array(configurations, np.int8).reshape(len(configurations), len(configuration))
