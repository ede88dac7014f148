"""Edges of large graphs as arrays, sorted by their source nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa import distinct

Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

_MANY_LEVELS = 100
_NARROW = 16


def offsets_of(sources: NDArray[np.integer], nodes: int) -> Numbers:
    """Return the index of the first edge of each node, shape (nodes + 1,). The edges are sorted by ``sources``."""
    return np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=nodes)))).astype(np.int64)


def edges_at(offsets: Numbers, nodes: NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Return all edges that leave ``nodes``, as two arrays.

    The first array has, for each edge, the position of its source in ``nodes``. The second has the index of the edge.
    """
    first = offsets[nodes]
    counts = offsets[nodes + 1] - first
    place = np.repeat(np.arange(len(nodes), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    return place, np.arange(len(place), dtype=np.int64) - before[place] + first[place]


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """The successors of each node.

    The edges of a node begin at ``offsets[node]`` and end before ``offsets[node + 1]``.
    """

    offsets: Numbers
    targets: NDArray[np.integer]

    @classmethod
    def of(cls, sources: NDArray[np.integer], targets: NDArray[np.integer], nodes: int) -> Adjacency:
        """Build the adjacency from edges in any order."""
        order = np.argsort(sources, kind="stable")
        return cls(offsets_of(sources, nodes), targets[order])

    def after(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the targets of all edges that leave ``nodes``, with repetitions."""
        return self.targets[edges_at(self.offsets, nodes)[1]]

    def distances(self, beginnings: NDArray[np.integer]) -> Numbers:
        """Return the least number of edges to each node from any of ``beginnings``, or -1 for unreachable nodes."""
        distance = np.full(len(self.offsets) - 1, -1, np.int64)
        frontier: NDArray[np.integer] = distinct(beginnings)
        steps = 0
        reached = 0
        while len(frontier):
            distance[frontier] = steps
            steps += 1
            reached += len(frontier)
            if steps > _MANY_LEVELS and reached < steps * _NARROW:
                return self._distances_from(frontier, distance)
            targets = self.after(frontier)
            frontier = distinct(targets[distance[targets] < 0])
        return distance

    def _distances_from(self, frontier: NDArray[np.integer], distance: Numbers) -> Numbers:
        """Complete the distances of the nodes, by breadth-first search from ``frontier``.

        The search is in plain Python, which is faster than arrays if levels have few nodes.
        """
        offsets, targets = self.offsets.tolist(), self.targets.tolist()
        distances, queue = distance.tolist(), frontier.tolist()
        for node in queue:
            for after in targets[offsets[node] : offsets[node + 1]]:
                if distances[after] < 0:
                    distances[after] = distances[node] + 1
                    queue.append(after)
        return np.array(distances, np.int64)

    def order(self, node: int) -> Numbers:
        """Return the nodes that are reachable from a node, in breadth-first order."""
        is_met = np.zeros(len(self.offsets) - 1, np.bool_)
        is_met[node] = True
        levels, reached = [np.array([node], np.int64)], 1
        while len(levels[-1]):
            if len(levels) > _MANY_LEVELS and reached < len(levels) * _NARROW:
                levels.append(self._order_from(levels[-1], is_met))
                break
            targets = self.after(levels[-1])
            nodes, first = np.unique(targets[~is_met[targets]], return_index=True)
            levels.append(nodes[np.argsort(first)].astype(np.int64))
            is_met[nodes] = True
            reached += len(nodes)
        return np.concatenate(levels)

    def _order_from(self, level: Numbers, is_met: Flags) -> Numbers:
        offsets, targets = self.offsets.tolist(), self.targets.tolist()
        met, queue = is_met.tolist(), level.tolist()
        for node in queue:
            for after in targets[offsets[node] : offsets[node + 1]]:
                if not met[after]:
                    met[after] = True
                    queue.append(after)
        return np.array(queue[len(level) :], np.int64)

    def reached(self, beginnings: NDArray[np.integer]) -> Flags:
        """Return a mask of the nodes that are reachable from any of ``beginnings``, including these."""
        return self.distances(beginnings) >= 0
