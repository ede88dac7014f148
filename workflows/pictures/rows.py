"""Breaks long drawings into rows, as text is broken into lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from workflows.diagram import Diagram, Edge, Point, Shape
from workflows.pictures.labels import Rectangle, extent, label_below

MOST_WIDTH = 3_000.0
"""Largest width of a drawing in a single row."""

_ROW = 1_600.0
"""Width of a row, if the drawing has a position for a break within this width."""
_BETWEEN = 70.0
_AROUND = 16.0
"""The distance by which an arrow extends beyond its row, on both sides."""


@dataclass(frozen=True, slots=True)
class _Break:
    """A position where a long drawing can be broken into rows: only one arrow crosses it, horizontally to the right."""

    x: float
    edge: int
    piece: int  # the index of the last point of the arrow before the break


def in_rows(diagram: Diagram) -> Diagram:
    """Break a very wide drawing into rows. Arrows lead from row to row.

    A drawing that is not very wide, or has no position for a break, is returned unchanged.
    """
    held = extent(diagram)
    if held.right - held.left <= MOST_WIDTH:
        return diagram
    breaks = _chosen(_breaks(diagram), held)
    if not breaks:
        return diagram
    return _Rows(diagram, breaks, held).folded()


def _breaks(diagram: Diagram) -> list[_Break]:
    crossing = _pieces(diagram.edges)
    breaks: list[_Break] = []
    for left, right in _gaps(diagram.shapes):
        x = (left + right) / 2
        met = [piece for piece in crossing if piece[0] < x < piece[1]]
        if len(met) == 1 and met[0][4]:
            breaks.append(_Break(x, met[0][2], met[0][3]))
    return breaks


def _pieces(edges: Sequence[Edge]) -> list[tuple[float, float, int, int, bool]]:
    """Return the straight pieces of all arrows, except vertical ones.

    The values of a piece are its left end, its right end, the index of the arrow, the index of the piece in the arrow,
    and whether the piece runs horizontally to the right.
    """
    return [
        (min(x1, x2), max(x1, x2), number, place, y1 == y2 and x1 < x2)
        for number, edge in enumerate(edges)
        for place, ((x1, y1), (x2, y2)) in enumerate(pairwise(edge.points))
        if x1 != x2
    ]


def _gaps(shapes: Sequence[Shape]) -> list[tuple[float, float]]:
    """Return the horizontal ranges in which there is neither a shape nor a text below a shape."""
    covered = []
    for shape in shapes:
        label = label_below(shape)
        left, right = shape.x, shape.x + shape.width
        if label is not None:
            left, right = min(left, label.rectangle.left), max(right, label.rectangle.right)
        covered.append((left, right))
    gaps, reached = [], min(left for left, _ in covered)
    for left, right in sorted(covered):
        if left > reached:
            gaps.append((reached, left))
        reached = max(reached, right)
    return gaps


def _chosen(breaks: Sequence[_Break], held: Rectangle) -> list[_Break]:
    """Return the breaks to use: the last break within the width of each row or, without one, the next break.

    No row is shorter than half of the usual width.
    """
    usable = [candidate for candidate in breaks if candidate.x < held.right - _ROW / 2]
    selection: list[_Break] = []
    places = [candidate.x for candidate in usable]
    begin, used = held.left, 0
    while (first := max(used, bisect_right(places, begin + _ROW / 2))) < len(usable):
        number = max(bisect_right(places, begin + _ROW) - 1, first)
        selection.append(usable[number])
        begin, used = places[number], number + 1
    return selection


class _Rows:
    def __init__(self, diagram: Diagram, breaks: Sequence[_Break], held: Rectangle) -> None:
        self._diagram, self._breaks, self._left = diagram, breaks, held.left
        self._at = [row_break.x for row_break in breaks]
        self._height = held.bottom - held.top + _BETWEEN
        self._bottom = held.bottom

    def folded(self) -> Diagram:
        shapes = []
        for shape in self._diagram.shapes:
            x, y = self._moved((shape.x, shape.y), self._row(shape.x + shape.width / 2))
            shapes.append(replace(shape, x=x, y=y))
        edges = [
            replace(edge, points=self._with_detours(number, edge)) for number, edge in enumerate(self._diagram.edges)
        ]
        return Diagram(shapes=tuple(shapes), edges=tuple(edges))

    def _row(self, x: float) -> int:
        return bisect_right(self._at, x)

    def _moved(self, point: Point, row: int) -> Point:
        begin = self._at[row - 1] if row else self._left
        return point[0] - begin + self._left, point[1] + row * self._height

    def _with_detours(self, number: int, edge: Edge) -> tuple[Point, ...]:
        row_of_piece = {row_break.piece: row for row, row_break in enumerate(self._breaks) if row_break.edge == number}
        points: list[Point] = []
        for place, point in enumerate(edge.points):
            points.append(self._moved(point, self._row(point[0])))
            if place in row_of_piece:
                points.extend(self._around(row_of_piece[place], point[1]))
        return tuple(points)

    def _around(self, row: int, height: float) -> list[Point]:
        """Return the points by which an arrow leads from the end of a row to the beginning of the next row.

        ``height`` is the height of the arrow before the rows were broken.
        """
        right, y = self._moved((self._at[row], height), row)
        right, left = right + _AROUND, self._left - _AROUND
        between = self._bottom + row * self._height + _BETWEEN / 2
        below = y + self._height
        return [(right, y), (right, between), (left, between), (left, below)]
