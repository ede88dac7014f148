"""The drawing of a net in a PNML file."""

from __future__ import annotations

import math
from collections.abc import Mapping

from workflows.diagram import Diagram, Edge, Point, Shape
from workflows.formats.pnml.elements import Arc, Drawn, NetNode

_SIZE = 30.0
_SILENT_WIDTH = 10.0


def draw_net(drawn: Drawn, labels: Mapping[str, str | None]) -> Diagram | None:
    """The drawing; None unless all nodes are drawn on one page, each at a place of its own."""
    nodes = drawn.nodes.values()
    spots = {(node.spot.x, node.spot.y) for node in nodes if node.spot is not None}
    if not nodes or len(spots) < len(nodes) or len({node.page for node in nodes}) > 1:
        return None
    shapes = {node.id: _shape(node, labels.get(node.id)) for node in nodes}
    edges = tuple(_edge(arc, shapes[arc.source], shapes[arc.target]) for arc in drawn.arcs)
    return Diagram(shapes=tuple(shapes.values()), edges=edges)


def _shape(node: NetNode, event: str | None) -> Shape:
    assert node.spot is not None
    is_silent = node.kind == "transition" and event is None
    width = node.spot.width or (_SILENT_WIDTH if is_silent else _SIZE)
    height = node.spot.height or _SIZE
    return Shape(
        element=node.id,
        kind="silent" if is_silent else node.kind,
        label=node.name,
        x=node.spot.x - width / 2,
        y=node.spot.y - height / 2,
        width=width,
        height=height,
        event=event,
    )


def _edge(arc: Arc, source: Shape, target: Shape) -> Edge:
    first, last = _centre(source), _centre(target)
    inner = arc.bends
    points = (
        _border(source, inner[0] if inner else last),
        *inner,
        _border(target, inner[-1] if inner else first),
    )
    label = str(arc.weight) if arc.weight > 1 else "" if arc.kind == "normal" else arc.kind
    return Edge(element=arc.id, points=points, label=label, is_dashed=arc.kind != "normal")


def _centre(shape: Shape) -> Point:
    return shape.x + shape.width / 2, shape.y + shape.height / 2


def _border(shape: Shape, towards: Point) -> Point:
    """The point where a line from the centre of a shape to another point leaves the shape."""
    x, y = _centre(shape)
    dx, dy = towards[0] - x, towards[1] - y
    if not dx and not dy:
        return x, y
    if shape.kind == "place":
        share = min(shape.width, shape.height) / 2 / math.hypot(dx, dy)
    else:
        share = min(size / 2 / abs(step) for size, step in ((shape.width, dx), (shape.height, dy)) if step)
    share = min(1.0, share)
    return x + dx * share, y + dy * share
