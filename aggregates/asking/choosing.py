"""Choice of the index's configuration: EPrune, which is exact, and RGreedy, which examines few candidates.

Source: the specification of parameterised group-by, sections 3.5, 3.6 and 3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.costs import CostModel, Workload

MOST_WORK = 2**17  # most pairs of a candidate and a pattern for which the exact search is used
_TIES = 1e-12  # relative difference of costs that may be due to rounding
Order = Callable[[Set[int]], "int | None"]
"""A heuristic: the attribute to add to a set of attributes; None: no further attribute."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration, its cost, and the number of configurations whose cost was computed for it."""

    configuration: tuple[int, ...]
    cost: float
    evaluated: int
    way: str


def candidates(caps: NDArray[np.int64], bits: int, least: NDArray[np.int64], *, is_full: bool) -> NDArray[np.int8]:
    """All configurations with between ``least`` and ``caps`` bits for each attribute, and at most ``bits`` in all.

    With ``is_full``, only configurations that use all bits, or all bits of each attribute that they index.
    """
    configurations, left = np.zeros((1, 0), np.int8), np.array([bits])
    for place, (cap, low) in enumerate(zip(caps.tolist(), least.tolist(), strict=True)):
        most = np.minimum(cap, left)
        is_last = is_full and place == len(caps) - 1  # then only the greatest and the least number of bits are possible
        choices = np.where(most >= low, np.where(is_last, np.minimum(most - low, 1) + 1, most - low + 1), 0)
        parents = np.repeat(np.arange(len(configurations)), choices)
        step = np.arange(len(parents)) - np.repeat(np.cumsum(choices) - choices, choices)
        bits_given = np.where(is_last & (step > 0), most[parents], low + step)
        configurations = np.column_stack([configurations[parents], bits_given.astype(np.int8)])
        left = left[parents] - bits_given
    if not is_full:
        return configurations
    is_saturated = (left == 0) | ((configurations == 0) | (configurations == caps)).all(axis=1)
    full: NDArray[np.int8] = configurations[is_saturated]
    return full


@dataclass(frozen=True)
class Problem:
    """The choice of a configuration: at most ``bits`` address bits in all, and at most ``caps`` for each attribute."""

    workload: Workload
    model: CostModel
    bits: int
    caps: NDArray[np.int64]

    @cached_property
    def limits(self) -> NDArray[np.int64]:
        """The most bits of each attribute: its cap, or 0 if indexing the attribute is not worthwhile."""
        benefits = self.model.benefits(self.workload, self.caps, self.bits)
        return np.where(benefits > 0, np.minimum(self.caps, self.bits), 0)

    @property
    def is_full(self) -> bool:
        """Whether unused bits save nothing, so that only full configurations are candidates."""
        return self.model.visiting == 0

    def cost(self, configuration: tuple[int, ...]) -> float:
        """The cost of one configuration."""
        return float(self.model.costs(np.array([configuration], np.int8), self.workload)[0])

    def best_of(self, some: NDArray[np.int8], way: str) -> Choice:
        """The cheapest configuration; on ties, with the fewest indexed attributes, then lexicographically greatest."""
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
        """The configuration without address bits, that is, without an index."""
        return self.best_of(np.zeros((1, self.workload.attributes), np.int8), "none")


def eprune(problem: Problem) -> Choice:
    """EPrune: the best of all configurations of the attributes that are worth indexing."""
    limits = problem.limits
    some = candidates(limits, problem.bits, np.zeros_like(limits), is_full=problem.is_full)
    indexing = some[some.any(axis=1)]
    empty = np.zeros((1, problem.workload.attributes), np.int8)
    best = problem.best_of(np.concatenate([empty, indexing]), "eprune")
    return replace(best, evaluated=len(indexing))


def by_weight(problem: Problem) -> Order:
    """The order OWL (occurrence weight leading): next is the attribute with the greatest weight of its patterns."""
    weights = (problem.workload.weights @ problem.workload.uses).tolist()
    order = sorted(_worthwhile(problem), key=lambda attribute: (-weights[attribute], attribute))
    return lambda chosen: next((attribute for attribute in order if attribute not in chosen), None)


def by_coverage(problem: Problem, *, is_extended: bool) -> Order:
    """The order PCL (pattern coverage leading): as OWL, but patterns that fix a chosen attribute do not count.

    The heuristic stops when every pattern is covered; the extended form (PCL+) continues by weight.
    """
    workload, further = problem.workload, by_weight(problem)

    def following(chosen: Set[int]) -> int | None:
        is_open = ~workload.uses[:, sorted(chosen)].any(axis=1)
        coverage = ((workload.weights * is_open) @ workload.uses).tolist()
        left = [attribute for attribute in _worthwhile(problem) if attribute not in chosen and coverage[attribute] > 0]
        if left:
            return max(left, key=lambda attribute: (coverage[attribute], -attribute))
        return further(chosen) if is_extended else None

    return following


def rgreedy(problem: Problem, order: Order, way: str, known: dict[frozenset[int], Choice] | None = None) -> Choice:
    """RGreedy: add attributes in an order as long as the best configuration that indexes all of them becomes cheaper.

    ``known`` has the best configurations of the sets of attributes that were examined before.
    """
    best, evaluated = problem.empty, 0
    known = {} if known is None else known
    chosen: set[int] = set()
    while len(chosen) < problem.bits and (attribute := order(chosen)) is not None:
        chosen.add(attribute)
        key = frozenset(chosen)
        if key not in known:
            is_chosen = np.isin(np.arange(problem.workload.attributes), sorted(chosen))
            limits = np.where(is_chosen, problem.limits, 0)
            some = candidates(limits, problem.bits, is_chosen.astype(np.int64), is_full=problem.is_full)
            known[key] = problem.best_of(some, way)
            evaluated += len(some)
        if known[key].cost >= best.cost:
            break
        best = known[key]
    return Choice(best.configuration, best.cost, evaluated, way)


def hybrid(problem: Problem, *, is_extended: bool = False) -> Choice:
    """The cheaper result of OWL and PCL; sets of attributes that both examine are costed once."""
    known: dict[frozenset[int], Choice] = {}
    both = [
        rgreedy(problem, by_weight(problem), "owl", known),
        rgreedy(problem, by_coverage(problem, is_extended=is_extended), "pcl", known),
    ]
    best = min(both, key=lambda choice: choice.cost)
    return Choice(best.configuration, best.cost, sum(choice.evaluated for choice in both), "hybrid")


def polished(problem: Problem, begin: Choice) -> Choice:
    """The local optimum that is reached by moving bits between attributes, adding unused bits, or removing bits."""
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


def best_configuration(problem: Problem) -> Choice:
    """The result of EPrune if its candidates are few enough, otherwise the cheaper of two local optima.

    One is reached from no index, one from equal numbers of bits: together they cost a fraction of RGreedy, and less
    often miss the optimum (ADR 69).
    """
    free = int((problem.limits > 0).sum())
    if comb(problem.bits + free, free) * len(problem.workload.patterns) <= MOST_WORK:
        return eprune(problem)
    optima = [polished(problem, begin) for begin in (problem.empty, _with_equal_bits(problem))]
    best = min(optima, key=lambda optimum: optimum.cost)
    return replace(best, evaluated=sum(optimum.evaluated for optimum in optima))


def _with_equal_bits(problem: Problem) -> Choice:
    bits = np.zeros_like(problem.limits)
    for _ in range(problem.bits):
        bits[np.argmin(np.where(bits < problem.limits, bits, MOST_WORK))] += bits.sum() < problem.limits.sum()
    return problem.best_of(bits.astype(np.int8)[None, :], "equal")


def _worthwhile(problem: Problem) -> list[int]:
    return [int(attribute) for attribute in np.flatnonzero(problem.limits > 0)]


def _moves(configuration: tuple[int, ...], problem: Problem) -> NDArray[np.int8]:
    """Configurations in which unused bits, or bits of one attribute, go to at most one other attribute."""
    configurations = []
    givers = [*enumerate(configuration), (-1, problem.bits - sum(configuration))]
    for giver, bits in givers:
        for moved in range(1, bits + 1):
            for taker in range(-1, len(configuration)):
                if taker == giver or (taker >= 0 and configuration[taker] + moved > problem.limits[taker]):
                    continue
                changed = [*configuration, 0]  # the last entry is that of unused bits
                changed[giver] -= moved
                changed[taker] += moved
                configurations.append(changed[:-1])
    return np.array(configurations, np.int8).reshape(len(configurations), len(configuration))
