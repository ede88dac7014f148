"""Draws flows as lines that have round corners and an arrowhead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from workflows.diagram import Edge, Point
from workflows.pictures.svg import number, path, text_lines
from workflows.pictures.text import LINE_STEP, width_of, wrapped

_CORNER = 6.0
_HEAD_LENGTH, _HEAD_WIDTH = 9.0, 3.6
_LABEL_SIZE = 11.0


def line(edge: Edge) -> Iterator[str]:
    """Yield the line and the arrowhead of a flow."""
    points = [*edge.points[:1], *(point for before, point in pairwise(edge.points) if point != before)]
    if len(points) < 2:
        return
    yield path("line", _rounded(points), dashes="5 4" if edge.is_dashed else "")
    yield path("head", _head(points[-2], points[-1]), width=1.0)


def line_label(edge: Edge) -> Iterator[str]:
    """Yield the text of a flow as SVG.

    The text is above the first horizontal part that is long enough, or beside the longest part.
    """
    if not edge.label or len(edge.points) < 2:
        return
    lines = wrapped(edge.label, 120.0, _LABEL_SIZE, 2)
    (x1, y1), (x2, y2) = _labelled_part(edge.points, max(width_of(text, _LABEL_SIZE) for text in lines) + 6.0)
    if abs(x2 - x1) >= abs(y2 - y1):
        height = (len(lines) - 1) * _LABEL_SIZE * LINE_STEP / 2
        yield text_lines("halo", lines, ((x1 + x2) / 2, (y1 + y2) / 2 - 9.0 - height), _LABEL_SIZE)
    else:
        yield text_lines("halo", lines, ((x1 + x2) / 2 + 5.0, (y1 + y2) / 2), _LABEL_SIZE, anchor="start")


def _labelled_part(points: Sequence[Point], width: float) -> tuple[Point, Point]:
    """Return the straight part of a line at which its text of this width is drawn.

    The first part of a bent line is avoided, because other flows often share it.
    """
    parts = list(pairwise(points))
    for first, second in parts[1:] or parts:
        if abs(first[1] - second[1]) < 1.0 and abs(first[0] - second[0]) >= width:
            return first, second
    return max(parts, key=lambda part: math.dist(*part))


def _rounded(points: Sequence[Point]) -> str:
    commands = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        cut = min(_CORNER, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        commands.append(f"L{_pair(_toward(corner, before, cut))}Q{_pair(corner)} {_pair(_toward(corner, after, cut))}")
    return "".join([*commands, f"L{_pair(points[-1])}"])


def _head(before: Point, tip: Point) -> str:
    base = _toward(tip, before, _HEAD_LENGTH)
    length = math.dist(before, tip) or 1.0
    across = ((before[1] - tip[1]) / length * _HEAD_WIDTH, (tip[0] - before[0]) / length * _HEAD_WIDTH)
    left, right = (base[0] + across[0], base[1] + across[1]), (base[0] - across[0], base[1] - across[1])
    return f"M{_pair(left)}L{_pair(tip)}L{_pair(right)}Z"


def _toward(start: Point, end: Point, distance: float) -> Point:
    length = math.dist(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * distance / length, start[1] + (end[1] - start[1]) * distance / length


def _pair(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
