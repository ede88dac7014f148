"""Routes arrows between layers: horizontally out of a box, vertically between the layers, then horizontally again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workflows.diagram import Point
from workflows.pictures.draft import Arrow
from workflows.pictures.layers import Layered

_LEVEL = 0.5  # smaller differences between coordinates are ignored
_BETWEEN_LANES = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """The piece of an arrow in one channel, from node ``first`` to node ``second``.

    A channel is the space between two layers; ``channel`` is the index of the layer on its left. The piece begins at
    the height ``rise`` and ends at the height ``fall``.
    """

    first: int
    second: int
    rise: float
    fall: float
    channel: int

    @property
    def is_level(self) -> bool:
        """Whether the piece is horizontal. If so, it needs no vertical line (track)."""
        return abs(self.rise - self.fall) < _LEVEL


def tracks_of(hops: Sequence[Hop]) -> dict[Hop, int]:
    """Assign a track to each hop of a channel that is not level. Tracks are vertical lines, counted from the left.

    Hops from one node share a track. So do other hops to one node. Downward hops are assigned from the lowest one on,
    and upward hops from the highest one on, so that they do not cross each other.
    """
    leaving: dict[int, int] = {}
    for hop in hops:
        leaving[hop.first] = leaving.get(hop.first, 0) + 1
    groups: dict[tuple[bool, int], list[Hop]] = {}
    for hop in (hop for hop in hops if not hop.is_level):
        is_fan = leaving[hop.first] > 1
        groups.setdefault((is_fan, hop.first if is_fan else hop.second), []).append(hop)
    placed: list[tuple[float, float, int]] = []
    tracks = {}
    for group in sorted(groups.values(), key=_turn):
        low = min(min(hop.rise, hop.fall) for hop in group)
        high = max(max(hop.rise, hop.fall) for hop in group)
        track = max(
            (other_track + 1 for bottom, top, other_track in placed if bottom <= high and low <= top), default=0
        )
        placed.append((low, high, track))
        tracks.update(dict.fromkeys(group, track))
    return tracks


def _turn(group: Sequence[Hop]) -> tuple[bool, float]:
    rise = sum(hop.rise for hop in group) / len(group)
    is_upward = sum(hop.fall - hop.rise for hop in group) < 0
    return is_upward, rise if is_upward else -rise


def lanes_below(back: Sequence[Arrow], layers: Layered, bottoms: Sequence[float]) -> dict[Arrow, float]:
    """Return the height at which each backward arrow runs, below all boxes that it passes.

    Shorter backward arrows run above longer ones that they share a layer with. ``bottoms`` has the lower edge of each
    layer.
    """
    lanes: dict[Arrow, float] = {}
    occupied_spans: list[tuple[int, int, float]] = []
    spans: Mapping[Arrow, tuple[int, int]] = {
        arrow: (layers.layer_of[arrow.target], layers.layer_of[arrow.source]) for arrow in back
    }
    for arrow in sorted(back, key=lambda back_arrow: spans[back_arrow][1] - spans[back_arrow][0]):
        first, last = spans[arrow]
        height = max(bottoms[first : last + 1]) + _BETWEEN_LANES / 2
        for other_first, other_last, other in sorted(occupied_spans, key=lambda span: span[2]):
            if other_first <= last + 1 and first <= other_last + 1 and other > height - _BETWEEN_LANES:
                height = max(height, other + _BETWEEN_LANES)
        lanes[arrow] = height
        occupied_spans.append((first, last, height))
    return lanes


def without_detours(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return a line without the points that are on the straight line between their neighbours."""
    corners: list[Point] = []
    for point in points:
        if corners and abs(corners[-1][0] - point[0]) < _LEVEL and abs(corners[-1][1] - point[1]) < _LEVEL:
            continue
        if len(corners) > 1 and _is_between(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return tuple(corners) if len(corners) > 1 else (points[0], points[-1])


def _is_between(first: Point, middle: Point, last: Point) -> bool:
    return any(
        abs(first[axis] - middle[axis]) < _LEVEL
        and abs(middle[axis] - last[axis]) < _LEVEL
        and min(first[1 - axis], last[1 - axis]) <= middle[1 - axis] <= max(first[1 - axis], last[1 - axis])
        for axis in (0, 1)
    )
