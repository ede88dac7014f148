"""Arranges boxes in layers, and orders the boxes of each layer.

This is the layer method of K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system
structures, 1981. Arrows that close a cycle are set aside. A box is placed one layer after the last of its predecessors.
A long arrow gets a node in every layer that it crosses. Each layer is ordered by the barycentres of its neighbours.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workflows.pictures.draft import Arrow, PictureDraft

_SWEEPS = 12

Link = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """A draft whose nodes are arranged in layers, from left to right. A node is a box or a crossing.

    A crossing is a point where a long arrow passes a layer. Nodes are numbered: first the boxes in the order of the
    draft, then the crossings.

    Attributes:
        layers: The layers from left to right, each with its nodes from top to bottom.
        links: Pairs of linked nodes in neighbouring layers.
        chains: For each forward arrow, its nodes from source to target.
        back: The arrows that lead backwards.
    """

    layers: tuple[tuple[int, ...], ...]
    layer_of: tuple[int, ...]
    links: tuple[Link, ...]
    chains: tuple[tuple[Arrow, tuple[int, ...]], ...]
    back: tuple[Arrow, ...]


def layered(draft: PictureDraft, max_places: int) -> Layered:
    """Assign a layer to each box of a draft, and a position in this layer.

    The crossings of long arrows are at most ``max_places`` in total. Further long arrows are straight, and may cross
    boxes.
    """
    forward, back = _without_cycles(draft)
    layer_of = _longest_paths(len(draft.boxes), forward)
    chains = []
    for arrow in forward:
        chain = [arrow.source]
        crossed = range(layer_of[arrow.source] + 1, layer_of[arrow.target])
        if len(layer_of) - len(draft.boxes) + len(crossed) <= max_places:
            for layer in crossed:
                chain.append(len(layer_of))
                layer_of.append(layer)
        chains.append((arrow, (*chain, arrow.target)))
    links = [link for _, chain in chains for link in pairwise(chain)]
    near = [(first, second) for first, second in links if layer_of[second] == layer_of[first] + 1]
    return Layered(
        layers=_ordered(layer_of, near),
        layer_of=tuple(layer_of),
        links=tuple(near),
        chains=tuple(chains),
        back=tuple(back),
    )


def _without_cycles(draft: PictureDraft) -> tuple[list[Arrow], list[Arrow]]:
    """Split the arrows into forward and backward arrows.

    Backward arrows close a cycle in a depth-first walk that starts at boxes without predecessors.
    """
    leaving: list[list[Arrow]] = [[] for _ in draft.boxes]
    entered = set()
    for arrow in draft.arrows:
        leaving[arrow.source].append(arrow)
        if arrow.source != arrow.target:
            entered.add(arrow.target)
    forward, back = [], []
    unvisited, open_, done = 0, 1, 2
    state = [unvisited] * len(draft.boxes)
    for root in sorted(range(len(draft.boxes)), key=lambda box: box in entered):
        if state[root] != unvisited:
            continue
        state[root] = open_
        walk = [(root, iter(leaving[root]))]
        while walk:
            for arrow in walk[-1][1]:
                if state[arrow.target] == open_:
                    back.append(arrow)
                    continue
                forward.append(arrow)
                if state[arrow.target] == unvisited:
                    state[arrow.target] = open_
                    walk.append((arrow.target, iter(leaving[arrow.target])))
                    break
            else:
                state[walk.pop()[0]] = done
    return forward, back


def _longest_paths(boxes: int, forward: Sequence[Arrow]) -> list[int]:
    leaving: list[list[int]] = [[] for _ in range(boxes)]
    missing = [0] * boxes
    for arrow in forward:
        leaving[arrow.source].append(arrow.target)
        missing[arrow.target] += 1
    layer_of = [0] * boxes
    ready = [box for box in range(boxes) if not missing[box]]
    for box in ready:
        for target in leaving[box]:
            layer_of[target] = max(layer_of[target], layer_of[box] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layer_of


def _ordered(layer_of: Sequence[int], links: Sequence[Link]) -> tuple[tuple[int, ...], ...]:
    layers: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for number in _reading_order(layer_of, links):
        layers[layer_of[number]].append(number)
    before, after = neighbours(len(layer_of), links)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, after)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        if sweep % 2:
            for layer, fixed in zip(layers[-2::-1], layers[:0:-1], strict=True):
                _sort(layer, fixed, after)
        else:
            for layer, fixed in zip(layers[1:], layers, strict=False):
                _sort(layer, fixed, before)
        if (crossings := _crossings(layers, after)) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return tuple(map(tuple, best))


def _reading_order(layer_of: Sequence[int], links: Sequence[Link]) -> list[int]:
    """Return the nodes in the order of a depth-first walk. This order keeps the nodes of a branch together."""
    _, after = neighbours(len(layer_of), links)
    order: dict[int, None] = {}
    for root in sorted(range(len(layer_of)), key=lambda number: layer_of[number]):
        walk = [root]
        while walk:
            number = walk.pop()
            if number not in order:
                order[number] = None
                walk.extend(reversed(after[number]))
    return list(order)


def neighbours(count: int, links: Iterable[Link]) -> tuple[list[list[int]], list[list[int]]]:
    """Return two lists: the predecessors of each node, and the successors of each node."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for first, second in links:
        after[first].append(second)
        before[second].append(first)
    return before, after


def _sort(layer: list[int], fixed: Sequence[int], neighbours: Sequence[Sequence[int]]) -> None:
    """Sort a layer in place, by the mean position of each node's neighbours in the layer ``fixed``.

    Nodes without neighbours stay about where they are.
    """
    place = {number: index for index, number in enumerate(fixed)}
    position = {number: index * len(fixed) / len(layer) for index, number in enumerate(layer)}

    def barycentre(number: int) -> float:
        places = [place[other] for other in neighbours[number]]
        return sum(places) / len(places) if places else position[number]

    layer.sort(key=barycentre)


def _crossings(layers: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> int:
    total = 0
    for layer, following in pairwise(layers):
        place = {number: index for index, number in enumerate(following)}
        ends = [place[other] for number in layer for other in sorted(after[number], key=place.__getitem__)]
        seen: list[int] = []
        for end in ends:  # count the earlier ends below this end
            total += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return total
