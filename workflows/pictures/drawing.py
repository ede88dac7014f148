"""Draws a model as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from workflows.diagram import Diagram, Shape
from workflows.model import WorkflowModel
from workflows.pictures.drafting import draft_of, size_of
from workflows.pictures.labels import AREAS, Label, Rectangle, extent, outside_labels
from workflows.pictures.layout import laid_out
from workflows.pictures.lines import line, line_label
from workflows.pictures.rows import in_rows
from workflows.pictures.svg import dark_style, element, picture, text_lines
from workflows.pictures.symbols import Mark, symbol
from workflows.pictures.text import MOST_IN_TITLE, escaped, shortened

MAX_ELEMENTS = 3_000
"""Largest number of shapes and lines in a picture."""
MAX_SIDE = 60_000.0
"""Longest side of a drawing in its own unit. A model with a larger drawing gets a new layout."""
MAX_PIXELS = 4_000.0
"""Longest side of a picture in pixels. Larger pictures are scaled down."""

_MARGIN = 16.0
_NOTICE = Rectangle(left=0.0, top=0.0, right=480.0, bottom=60.0)


def draw(
    model: WorkflowModel,
    highlighted: Mapping[str, int] | Collection[str] = (),
    expected: Collection[str] = (),
) -> str:
    """Draw a model as SVG.

    The model's own drawing is used unless its size is unusual. Otherwise the model gets a new layout, which is broken
    into rows if it is long. If a model has too many elements, the picture only has a notice.

    Shapes of ``highlighted`` event types are filled; if it is a mapping, the number of each type is drawn beside the
    shape. Shapes of ``expected`` event types, which may occur next, are outlined.
    """
    marks = _marks(highlighted, expected)
    diagram = model.diagram if model.diagram is not None and _is_usual(model.diagram) else None
    if diagram is None:
        size = size_of(model.source)
        if size > MAX_ELEMENTS:
            return _picture(model, [_notice(f"{size} elements are too many for a picture")], _NOTICE, marks)
        diagram = in_rows(laid_out(draft_of(model.source)))
    labels = outside_labels(diagram)
    return _picture(model, _content(diagram, labels, marks), extent(diagram, labels.values()), marks)


def _marks(highlighted: Mapping[str, int] | Collection[str], expected: Collection[str]) -> dict[str, Mark]:
    times = highlighted if isinstance(highlighted, Mapping) else dict.fromkeys(highlighted, 0)
    seen = {name: count for name, count in times.items() if count or not isinstance(highlighted, Mapping)}
    return {
        name: Mark(is_seen=name in seen, times=seen.get(name, 0), is_expected=name in expected)
        for name in dict.fromkeys([*seen, *expected])
    }


def _is_usual(diagram: Diagram) -> bool:
    if not diagram.shapes or len(diagram.shapes) + len(diagram.edges) > MAX_ELEMENTS:
        return False
    places = [value for shape in diagram.shapes for value in (shape.x, shape.y, shape.width, shape.height)]
    places.extend(value for edge in diagram.edges for point in edge.points for value in point)
    if not all(math.isfinite(value) and abs(value) <= 100 * MAX_SIDE for value in places):
        return False
    held = extent(diagram)
    return held.right - held.left <= MAX_SIDE and held.bottom - held.top <= MAX_SIDE


def _content(diagram: Diagram, labels: Mapping[int, Label], marks: Mapping[str, Mark]) -> Iterator[str]:
    for index, shape in enumerate(diagram.shapes):
        if shape.kind in AREAS:
            later = diagram.shapes[index + 1 :]
            yield symbol(shape, _mark(shape, marks), has_inner=any(_holds(shape, other) for other in later))
    for edge in diagram.edges:
        yield element("g", {"data-element": edge.element}, *line(edge))
    for index, shape in enumerate(diagram.shapes):
        if shape.kind not in AREAS:
            yield symbol(shape, _mark(shape, marks), label=labels.get(index))
    for edge in diagram.edges:
        yield from line_label(edge)


def _mark(shape: Shape, marks: Mapping[str, Mark]) -> Mark:
    return Mark() if shape.event is None else marks.get(shape.event, Mark())


def _holds(area: Shape, other: Shape) -> bool:
    """Check whether a shape lies in an area. A pool holds only lanes, and no area holds boundary events."""
    if area.kind == "pool" and other.kind != "lane":
        return False
    x, y = other.centre
    return other.kind != "boundary" and area.x < x < area.x + area.width and area.y < y < area.y + area.height


def _notice(text: str) -> str:
    return text_lines("text", [text], (240.0, 30.0), 14.0)


def _picture(model: WorkflowModel, content: Iterable[str], held: Rectangle, marks: Mapping[str, Mark]) -> str:
    x, y = held.left - _MARGIN, held.top - _MARGIN
    width, height = held.right - held.left + 2 * _MARGIN, held.bottom - held.top + 2 * _MARGIN
    scale = min(1.0, MAX_PIXELS / max(width, height))
    name = shortened(model.name, MOST_IN_TITLE) or "workflow"
    head = (
        element("title", {}, escaped(name)),
        element("desc", {}, escaped(_description(marks))),
        element("style", {}, dark_style()),
    )
    return picture((x, y), (width, height), head, content, scale=scale)


def _description(marks: Mapping[str, Mark]) -> str:
    seen = ", ".join(name for name, mark in marks.items() if mark.is_seen)
    expected = ", ".join(name for name, mark in marks.items() if mark.is_expected)
    sentences = ["A process model."]
    if seen:
        sentences.append(f"Filled: {seen}.")
    if expected:
        sentences.append(f"Outlined, as they may come next: {expected}.")
    return " ".join(sentences)
