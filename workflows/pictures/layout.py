"""Lays out models that have no drawing: layers from left to right, with horizontal and vertical arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from workflows.diagram import Diagram, Edge, Point, Shape
from workflows.pictures.draft import Arrow, PictureDraft, room_of
from workflows.pictures.layers import Layered, layered
from workflows.pictures.placing import extents, heights
from workflows.pictures.routing import Hop, lanes_below, tracks_of, without_detours

MAX_PLACES = 3_000
"""Largest number of nodes for long arrows. Arrows beyond this number are straight."""

PORT_DISTANCE = 56.0

_MARGIN = 24.0
_BETWEEN_TRACKS = 10.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Placed:
    """A layered draft with all coordinates.

    Attributes:
        middle: Height of the middle of each node.
        left: Left edge of each layer.
        width: Width of each layer.
        tracks: The x coordinate of the vertical part of each hop (the piece of an arrow between two layers).
        back: For each backward arrow, the x coordinates of its vertical parts at its source and at its target.
    """

    draft: PictureDraft
    layers: Layered
    middle: Sequence[float]
    left: Sequence[float]
    width: Sequence[float]
    tracks: dict[Hop, float]
    back: dict[Arrow, tuple[float, float]]

    def edges(self, number: int) -> tuple[float, float]:
        layer = self.layers.layer_of[number]
        if number >= len(self.draft.boxes):
            return self.left[layer], self.left[layer] + self.width[layer]
        width = self.draft.boxes[number].width
        left = self.left[layer] + (self.width[layer] - width) / 2
        return left, left + width


def laid_out(draft: PictureDraft) -> Diagram:
    """Lay out a draft: return the shapes and edges with coordinates. The upper left corner is (0, 0)."""
    if not draft.boxes:
        return Diagram(shapes=(), edges=())
    layers = layered(draft, MAX_PLACES)
    placed = _columns(draft, layers, heights(draft, layers))
    edges = [*_forward(placed), *_backward(placed)]
    return Diagram(shapes=tuple(_shapes(placed)), edges=tuple(edges))


def moved(diagram: Diagram, right: float, down: float) -> Diagram:
    """Return the drawing, moved to the right and down by these distances."""
    return Diagram(
        shapes=tuple(replace(shape, x=shape.x + right, y=shape.y + down) for shape in diagram.shapes),
        edges=tuple(
            replace(edge, points=tuple((x + right, y + down) for x, y in edge.points)) for edge in diagram.edges
        ),
    )


def _hops(draft: PictureDraft, layers: Layered, middle: Sequence[float]) -> list[list[Hop]]:
    """Return the pieces of forward arrows (hops) in each channel. Channel ``n`` is the space after layer ``n``.

    ``middle`` has the height of each node.
    """
    channels: list[list[Hop]] = [[] for _ in layers.layers]
    for arrow, chain in layers.chains:
        for first, second in pairwise(chain):
            if layers.layer_of[second] == layers.layer_of[first] + 1:
                channels[layers.layer_of[first]].append(_hop(draft, layers, middle, arrow, (first, second)))
    return [list(dict.fromkeys(channel)) for channel in channels]


def _hop(draft: PictureDraft, layers: Layered, middle: Sequence[float], arrow: Arrow, link: tuple[int, int]) -> Hop:
    first, second = link
    rise = middle[first] + (_port_offset(draft, arrow) if first == arrow.source else 0.0)
    return Hop(first=first, second=second, rise=rise, fall=middle[second], channel=layers.layer_of[first])


def _port_offset(draft: PictureDraft, arrow: Arrow) -> float:
    return port_height(draft.boxes[arrow.source].height, arrow.port) if arrow.port else 0.0


def port_height(height: float, port: int) -> float:
    """Return how far the port with this number is below the middle of a box of this height.

    Ports are counted from 1.
    """
    return min(port * PORT_DISTANCE, height / 2 - 4.0)


@dataclass(slots=True)
class _Tracks:
    x: float = 0.0
    hops: dict[Hop, float] = field(default_factory=dict)
    leave: dict[Arrow, float] = field(default_factory=dict)
    enter: dict[Arrow, float] = field(default_factory=dict)

    def take(self, hops: Sequence[Hop], leaving: Sequence[Arrow], entering: Sequence[Arrow]) -> None:
        """Assign x coordinates to the vertical parts of arrows in a channel.

        Forward arrows come before backward arrows.
        """
        tracks = tracks_of(hops)
        self.hops.update({hop: self.x + track * _BETWEEN_TRACKS for hop, track in tracks.items()})
        self.x += (max(tracks.values(), default=-1) + 1) * _BETWEEN_TRACKS
        for positions, arrows in ((self.leave, leaving), (self.enter, entering)):
            for arrow in arrows:
                positions[arrow] = self.x
                self.x += _BETWEEN_TRACKS


def _columns(draft: PictureDraft, layers: Layered, middle: Sequence[float]) -> _Placed:
    channels = [[], *_hops(draft, layers, middle)]
    leaving: list[list[Arrow]] = [[] for _ in channels]
    entering: list[list[Arrow]] = [[] for _ in channels]
    for arrow in layers.back:
        leaving[layers.layer_of[arrow.source] + 1].append(arrow)
        entering[layers.layer_of[arrow.target]].append(arrow)
    left, width, tracks = [], [], _Tracks()
    for layer, numbers in enumerate([*layers.layers, ()]):
        if layer or entering[0]:
            tracks.x += _MARGIN
            tracks.take(channels[layer], leaving[layer], entering[layer])
            tracks.x += _MARGIN
        boxes = [draft.boxes[number] for number in numbers if number < len(draft.boxes)]
        left.append(tracks.x)
        width.append(max((box.width + room_of(box)[0] for box in boxes), default=0.0))
        tracks.x += width[-1]
    back = {arrow: (tracks.leave[arrow], tracks.enter[arrow]) for arrow in layers.back}
    return _Placed(draft=draft, layers=layers, middle=middle, left=left, width=width, tracks=tracks.hops, back=back)


def _shapes(placed: _Placed) -> Iterator[Shape]:
    inner: list[Shape] = []
    for number, box in enumerate(placed.draft.boxes):
        left, right = placed.edges(number)
        top = placed.middle[number] - box.height / 2
        yield Shape(
            element=box.element,
            kind=box.kind,
            label=box.label,
            x=left,
            y=top,
            width=box.width,
            height=box.height,
            event=box.event,
        )
        if box.inner is not None:
            inner.extend(moved(box.inner, left, top).shapes)
        for port, (element, label) in enumerate(box.ports, start=1):
            middle = placed.middle[number] + port_height(box.height, port)
            inner.append(
                Shape(element=element, kind="boundary", label=label, x=right - 13, y=middle - 13, width=26, height=26)
            )
    yield from inner


def _forward(placed: _Placed) -> Iterator[Edge]:
    for number, box in enumerate(placed.draft.boxes):
        if box.inner is not None:
            left, _ = placed.edges(number)
            yield from moved(box.inner, left, placed.middle[number] - box.height / 2).edges
    for arrow, chain in placed.layers.chains:
        points: list[Point] = []
        for first, second in pairwise(chain):
            points.extend(_piece(placed, arrow, first, second))
        yield _edge(arrow, points)


def _piece(placed: _Placed, arrow: Arrow, first: int, second: int) -> Sequence[Point]:
    hop = _hop(placed.draft, placed.layers, placed.middle, arrow, (first, second))
    start, end = _start(placed, arrow, first), placed.edges(second)[0]
    if hop not in placed.tracks:
        return (start, hop.rise), (end, hop.fall)
    track = placed.tracks[hop]
    return (start, hop.rise), (track, hop.rise), (track, hop.fall), (end, hop.fall)


def _start(placed: _Placed, arrow: Arrow, number: int) -> float:
    return placed.edges(number)[1] + (13.0 if arrow.port and number == arrow.source else 0.0)


def _backward(placed: _Placed) -> Iterator[Edge]:
    _, below = extents(placed.draft, len(placed.middle))
    bottoms = [
        max((placed.middle[number] + below[number] for number in layer), default=0.0) for layer in placed.layers.layers
    ]
    lanes = lanes_below(placed.layers.back, placed.layers, bottoms)
    for arrow in placed.layers.back:
        lane, (leave, enter) = lanes[arrow], placed.back[arrow]
        start = placed.middle[arrow.source] + _port_offset(placed.draft, arrow)
        end = placed.middle[arrow.target]
        points = (
            (_start(placed, arrow, arrow.source), start),
            (leave, start),
            (leave, lane),
            (enter, lane),
            (enter, end),
            (placed.edges(arrow.target)[0], end),
        )
        yield _edge(arrow, points)


def _edge(arrow: Arrow, points: Sequence[Point]) -> Edge:
    return Edge(element=arrow.element, points=without_detours(points), label=arrow.label, is_dashed=arrow.is_dashed)
