"""Places labels outside their shapes, at a free position, preferably below the shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workflows.diagram import Diagram, Point, Shape
from workflows.pictures.text import LINE_STEP, MOST_LETTERS, is_whole, width_of, wrapped

LABEL_SIZE = 11.0
SMALLEST_TEXT = 8.0
"""Smallest font size for a text inside its shape."""

GATEWAYS = frozenset({"exclusive", "parallel", "inclusive", "event-based", "complex"})
EVENTS = frozenset({"start", "end", "terminate", "intermediate", "boundary"})
PLACES = frozenset({"place", "marked-place", "final-place"})
AREAS = frozenset({"pool", "lane", "subprocess", "group"})

_OUTSIDE = GATEWAYS | EVENTS | PLACES | {"silent", "data"}
_SMALL = 60.0
"""Width below which a transition gets its name outside, if the name would be cut inside."""
_WIDEST, _WIDEST_OF_SMALL, _MOST_LINES = 110.0, 72.0, 4
_STEP = LABEL_SIZE * LINE_STEP
_SPACE, _SPACE_OF_SMALL = 4.0, 10.0
_LARGEST = 400
"""Largest number of labels for which free positions are searched. In larger drawings every label is below its shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A rectangle, given by its upper left and its lower right corner."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rectangle) -> bool:
        """Return whether two rectangles overlap. Rectangles that only touch do not."""
        is_beside = self.right <= other.left or other.right <= self.left
        return not (is_beside or self.bottom <= other.top or other.bottom <= self.top)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text at a position.

    Vertically, ``at`` is the middle of the text. Horizontally, it is the start, middle or end of the text, depending on
    ``anchor``.
    """

    lines: tuple[str, ...]
    at: Point
    anchor: str = "middle"

    @property
    def rectangle(self) -> Rectangle:
        width = max(width_of(line, LABEL_SIZE) for line in self.lines)
        left = self.at[0] - {"middle": width / 2, "start": 0.0, "end": width}[self.anchor]
        half = len(self.lines) * _STEP / 2
        return Rectangle(left=left, top=self.at[1] - half, right=left + width, bottom=self.at[1] + half)


def label_below(shape: Shape) -> Label | None:
    """Return the label below a shape, or None if the shape has no text or shows it inside."""
    return next(_places(shape), None)


def outside_labels(diagram: Diagram) -> dict[int, Label]:
    """Return, by the index of its shape, each label that is drawn outside its shape."""
    below = {index: label for index, shape in enumerate(diagram.shapes) if (label := label_below(shape)) is not None}
    if len(below) > _LARGEST:
        return below
    shapes = [_covered(shape) for shape in diagram.shapes if shape.kind not in AREAS]
    headings = [_heading(shape) for shape in diagram.shapes if shape.kind in ("subprocess", "group")]
    obstacles = [*shapes, *headings, *_lines(diagram)]
    labels: dict[int, Label] = {}
    for index in below:
        label = _free(list(_places(diagram.shapes[index])), obstacles)
        labels[index] = label
        obstacles.append(label.rectangle)
    return labels


def _free(places: Sequence[Label], obstacles: Sequence[Rectangle]) -> Label:
    """Return the first of several possible labels that overlaps no obstacle, or the one with the fewest overlaps."""
    meetings = []
    for label in places:
        rectangle = label.rectangle
        meetings.append(sum(rectangle.meets(obstacle) for obstacle in obstacles))
        if not meetings[-1]:
            return label
    return places[meetings.index(min(meetings))]


def _places(shape: Shape) -> Iterator[Label]:
    """Yield a shape's label at each possible position, the best position first."""
    is_small = shape.kind == "transition"  # needs more space, because a highlight adds an outline or a number
    widest, space = (_WIDEST_OF_SMALL, _SPACE_OF_SMALL) if is_small else (max(_WIDEST, shape.width), _SPACE)
    lines = tuple(wrapped(shape.label, widest, LABEL_SIZE, _MOST_LINES))
    if not lines or not _stands_outside(shape):
        return
    half = len(lines) * _STEP / 2
    middle = shape.x + shape.width / 2
    above, below = shape.y - space - half, shape.y + shape.height + space + half
    right, left = shape.x + shape.width + space, shape.x - space
    yield Label(lines=lines, at=(middle, below))
    yield Label(lines=lines, at=(middle, above))
    for height in (below - space, above + space):
        yield Label(lines=lines, at=(right - shape.width / 2 + space, height), anchor="start")
        yield Label(lines=lines, at=(left + shape.width / 2 - space, height), anchor="end")
    yield Label(lines=lines, at=(right, shape.y + shape.height / 2), anchor="start")


def _stands_outside(shape: Shape) -> bool:
    if shape.kind != "transition" or shape.width >= _SMALL:
        return shape.kind in _OUTSIDE
    return not is_whole(shape.label, shape.width - 10.0, shape.height - 6.0, SMALLEST_TEXT)


def _covered(shape: Shape) -> Rectangle:
    return Rectangle(left=shape.x, top=shape.y, right=shape.x + shape.width, bottom=shape.y + shape.height)


def _heading(shape: Shape) -> Rectangle:
    middle, half = (
        shape.x + shape.width / 2,
        min(shape.width, width_of(shape.label[:MOST_LETTERS], LABEL_SIZE + 1.0)) / 2,
    )
    return Rectangle(left=middle - half, top=shape.y + 6.0, right=middle + half, bottom=shape.y + 26.0)


def _lines(diagram: Diagram) -> Iterator[Rectangle]:
    for edge in diagram.edges:
        for (x1, y1), (x2, y2) in pairwise(edge.points):
            yield Rectangle(left=min(x1, x2), top=min(y1, y2), right=max(x1, x2), bottom=max(y1, y2))


def extent(diagram: Diagram, labels: Iterable[Label] | None = None) -> Rectangle:
    """Return the smallest rectangle around all shapes, lines and labels. An empty drawing gets a default size.

    If ``labels`` is None, all outside labels are assumed to be below their shapes.
    """
    if labels is None:
        labels = [label for shape in diagram.shapes if (label := label_below(shape)) is not None]
    rectangles = [_covered(shape) for shape in diagram.shapes]
    rectangles.extend(_lines(diagram))
    rectangles.extend(label.rectangle for label in labels)
    if not rectangles:
        return Rectangle(left=0.0, top=0.0, right=120.0, bottom=60.0)
    return Rectangle(
        left=min(rectangle.left for rectangle in rectangles),
        top=min(rectangle.top for rectangle in rectangles),
        right=max(rectangle.right for rectangle in rectangles),
        bottom=max(rectangle.bottom for rectangle in rectangles),
    )
