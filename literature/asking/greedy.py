"""RGreedy, which chooses a configuration from few candidates, with its heuristics OWL, PCL and Hybrid.

Source: the specification of parameterised group-by, section 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import numpy as np

from aggregates.asking.choosing import Choice, Problem, candidates

Order = Callable[[Set[int]], "int | None"]
"""A heuristic: the attribute to add to a set of attributes; None: no further attribute."""


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
            some = candidates(np.where(is_chosen, problem.limits, 0), problem.bits, is_full=problem.is_full)
            some = some[(some[:, is_chosen] > 0).all(axis=1)]
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


def _worthwhile(problem: Problem) -> list[int]:
    return [int(attribute) for attribute in np.flatnonzero(problem.limits > 0)]
