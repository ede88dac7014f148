"""Places the boxes of each layer as close to the height of their neighbours as the order of the layer allows.

This is the priority method of K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system
structures, 1981. In each layer, nodes are moved in the order of their priority: first the crossings of long arrows,
then boxes with many arrows. A node is moved to the median height of its neighbours, and pushes away nodes of lower
priority.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from workflows.pictures.draft import PictureDraft, room_of
from workflows.pictures.layers import Layered, neighbours

_SWEEPS = 9
_BETWEEN_BOXES = 26.0
_ARROW_SPACE = 9.0


def heights(draft: PictureDraft, layers: Layered) -> list[float]:
    """Return how far the middle of each node is below the top. A node is a box or the crossing of a long arrow."""
    count = len(layers.layer_of)
    above, below = extents(draft, count)
    before, after = neighbours(count, layers.links)
    middle = [0.0] * count
    for layer in layers.layers:
        for upper, lower in pairwise(layer):
            middle[lower] = middle[upper] + below[upper] + above[lower]
    for sweep in range(_SWEEPS):
        near = after if sweep % 2 else before
        for layer in layers.layers[:: -1 if sweep % 2 else 1]:
            column = _Column(layer, middle, above, below)
            priority = [math.inf if number >= len(draft.boxes) else len(near[number]) for number in layer]
            for index in sorted(range(len(layer)), key=lambda index: -priority[index]):
                column.move(index, [middle[other] for other in near[layer[index]]])
    top = min((middle[number] - above[number] for number in range(count)), default=0.0)
    return [height - top for height in middle]


def extents(draft: PictureDraft, count: int) -> tuple[list[float], list[float]]:
    """Return the space that each of ``count`` nodes needs above its middle, and the space below.

    The space includes the text of a box, and half of the distance to the next node.
    """
    above, below = [_ARROW_SPACE] * count, [_ARROW_SPACE] * count
    for number, box in enumerate(draft.boxes):
        above[number] = (box.height + _BETWEEN_BOXES) / 2
        below[number] = above[number] + room_of(box)[1]
    return above, below


class _Column:
    """A layer whose nodes get their heights one by one. A node that has been moved keeps its height."""

    def __init__(
        self, layer: Sequence[int], middle: list[float], above: Sequence[float], below: Sequence[float]
    ) -> None:
        self._layer, self._middle = layer, middle
        self._offsets = [0.0]
        for upper, lower in pairwise(layer):
            self._offsets.append(self._offsets[-1] + below[upper] + above[lower])
        self._fixed: list[int] = []  # sorted indices of the members that have been moved

    def move(self, index: int, wanted_heights: Sequence[float]) -> None:
        if not wanted_heights:
            return
        place = bisect(self._fixed, index)
        height = median(wanted_heights)
        if place < len(self._fixed):
            height = min(height, self._limit(self._fixed[place], index))
        if place:
            height = max(height, self._limit(self._fixed[place - 1], index))
        self._fixed.insert(place, index)
        self._middle[self._layer[index]] = height
        for step in (-1, 1):
            self._push(index, step)

    def _limit(self, fixed: int, index: int) -> float:
        return self._middle[self._layer[fixed]] + self._offsets[index] - self._offsets[fixed]

    def _push(self, index: int, step: int) -> None:
        """Push away the members that are too close to a moved member: above it if ``step`` is -1, else below."""
        at = index
        while 0 <= at + step < len(self._layer):
            limit = self._limit(at, at + step)
            following = self._layer[at + step]
            if step * (self._middle[following] - limit) >= 0:
                return
            self._middle[following] = limit
            at += step
