"""Propagates sets along the edges of a graph to a fixed point, for many nodes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constraints import Numbers, edges_at
from workflows.nets.components import components

Bits: TypeAlias = NDArray[np.uint64]  # the last axis holds a set, with 64 members per word
Carry: TypeAlias = Callable[[Bits, Numbers], Bits]

_AT_A_TIME = 1 << 22  # limit of words that are carried at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The edges of a graph, sorted by source. Nodes are numbered from 0.

    ``first``, (nodes + 1,), is the index of the first edge of each node. ``level`` says how late a node can be reached:
    the largest number of strongly connected components before its own component on a path.
    """

    source: Numbers
    target: Numbers
    first: Numbers
    level: Numbers

    @classmethod
    def of(cls, nodes: int, source: Numbers, target: Numbers) -> Graph:
        """Create a graph from edges in ascending order of their sources."""
        first = np.searchsorted(source, np.arange(nodes + 1))
        return cls(source=source, target=target, first=first, level=_levels(first.tolist(), target.tolist()))

    def edges_from(self, nodes: Numbers) -> Numbers:
        return edges_at(self.first, nodes)[1]


def spread(graph: Graph, values: Bits, begin: Numbers, carry: Carry) -> None:
    """Propagate values along edges until no value changes. ``values``, (nodes, ...), is changed in place.

    First, edges of the nodes in ``begin`` are followed. Then edges of each node are followed when its value has
    changed. Nodes of low level come first. So each node is processed once if the graph has no cycle.

    ``carry`` gets the values of the sources of some edges, and the indices of these edges. It returns the values for
    their targets, and may overwrite its first argument.
    """
    waiting: dict[int, list[Numbers]] = {}
    for level, nodes in _by_level(graph, begin):
        waiting[level] = [nodes]
    levels = list(waiting)
    heapify(levels)
    most = max(1, _AT_A_TIME // max(1, values[0].size))
    while levels:
        edges = graph.edges_from(np.unique(np.concatenate(waiting.pop(heappop(levels)))))
        for begin_at in range(0, len(edges), most):
            some = edges[begin_at : begin_at + most]
            changed = _unite(values, graph.target[some], carry(values[graph.source[some]], some))
            for level, nodes in _by_level(graph, changed):
                if level not in waiting:
                    waiting[level] = []
                    heappush(levels, level)
                waiting[level].append(nodes)


def _unite(values: Bits, targets: Numbers, carried: Bits) -> Numbers:
    """Add the carried sets to the sets of their target nodes. Return the nodes whose sets have changed."""
    order = np.argsort(targets, kind="stable")
    nodes, starts = np.unique(targets[order], return_index=True)
    before = values[nodes]
    after = before | np.bitwise_or.reduceat(carried[order], starts, axis=0)
    values[nodes] = after
    changed: Numbers = nodes[(after != before).reshape(len(nodes), -1).any(axis=1)]
    return changed


def _by_level(graph: Graph, nodes: Numbers) -> Iterator[tuple[int, Numbers]]:
    levels = graph.level[nodes]
    order = np.argsort(levels, kind="stable")
    bounds = np.flatnonzero(np.diff(levels[order])) + 1
    for group in np.split(order, bounds):
        if len(group):
            yield int(levels[group[0]]), nodes[group]


def _levels(first: list[int], target: list[int]) -> Numbers:
    """Return the level of each node (``Graph``). Strongly connected components are numbered from the sinks upwards."""
    component = components(first, target)
    count = max(component, default=-1) + 1
    members: list[list[int]] = [[] for _ in range(count)]
    for node, number in enumerate(component):
        members[number].append(node)
    levels = [0] * count
    for number in range(count - 1, -1, -1):
        after = levels[number] + 1
        for node in members[number]:
            for edge in range(first[node], first[node + 1]):
                other = component[target[edge]]
                if other != number and levels[other] < after:
                    levels[other] = after
    return np.array(levels, np.int64)[np.array(component, np.int64)]
