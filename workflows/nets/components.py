"""Computes the strongly connected components of a graph."""

from __future__ import annotations


def components(first: list[int], target: list[int]) -> list[int]:
    """Return the strongly connected component of each node of a graph, as an index.

    An edge leads to a component with the same or a lower index. ``target`` lists the targets of all edges, grouped by
    source. ``first[node]`` is the index of the node's first edge, and the last entry is the number of edges. The
    algorithm is R. E. Tarjan, Depth-first search and linear graph algorithms (1972), without recursion.
    """
    nodes = len(first) - 1
    component, met, low = [-1] * nodes, [-1] * nodes, [0] * nodes
    edge, stack, count, met_count = first[:-1].copy(), [], 0, 0
    for root in range(nodes):
        path = [root] if met[root] < 0 else []
        while path:
            node = path[-1]
            if met[node] < 0:
                met[node] = low[node] = met_count
                met_count += 1
                stack.append(node)
            if edge[node] < first[node + 1]:
                other = target[edge[node]]
                if met[other] < 0:
                    path.append(other)
                    continue
                if component[other] < 0:
                    low[node] = min(low[node], low[other])
                edge[node] += 1
                continue
            path.pop()
            if low[node] == met[node]:
                _close(stack, node, component, count)
                count += 1
    return component


def _close(stack: list[int], node: int, component: list[int], number: int) -> None:
    while True:
        other = stack.pop()
        component[other] = number
        if other == node:
            return
