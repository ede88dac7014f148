"""The input of a layout: boxes of known size, and arrows between them."""

from __future__ import annotations

from dataclasses import dataclass

from workflows.diagram import Diagram, Shape
from workflows.pictures.labels import label_below
from workflows.pictures.text import wrapped

TEXT_SIZE = 12.0
LINE_HEIGHT = 15.0

_TASK_WIDTH = 110.0
_WIDEST_TASK = 170.0
_TASK_LINES = 4
_MARGIN = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An element of a layout: a shape of known size, without a position. ``kind`` is as in ``workflows.diagram``.

    Attributes:
        element: Id of the element.
        event: The event type that the element emits.
        inner: The drawing inside the box, if any.
        ports: Ids and names of the exits on the right edge of the box.
    """

    element: str
    kind: str
    label: str
    width: float
    height: float
    event: str | None = None
    inner: Diagram | None = None
    ports: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A flow from the box at index ``source`` to the box at index ``target``.

    ``port`` is the number of the exit by which the flow leaves its source, counted from 1. It is 0 if there is no exit.
    """

    element: str
    source: int
    target: int
    label: str = ""
    is_dashed: bool = False
    port: int = 0


@dataclass(frozen=True, slots=True)
class PictureDraft:
    """The input of a layout: boxes, and arrows between them."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def task_box(element: str, label: str, *, kind: str = "task", event: str | None = None) -> Box:
    """Return a box with a text inside. Longer texts get wider and higher boxes."""
    width = _TASK_WIDTH
    while width < _WIDEST_TASK and len(wrapped(label, width - _MARGIN, TEXT_SIZE, 99)) > 2:
        width += 20.0
    lines = len(wrapped(label, width - _MARGIN, TEXT_SIZE, _TASK_LINES))
    return Box(
        element=element, kind=kind, label=label, width=width, height=max(54.0, lines * LINE_HEIGHT + 18.0), event=event
    )


def small_box(element: str, kind: str, label: str = "") -> Box:
    """Return a box for a gateway, an event or a place. Its text is drawn outside the box."""
    size = _SIZES.get(kind, (36.0, 36.0))
    return Box(element=element, kind=kind, label=label, width=size[0], height=size[1])


def room_of(box: Box) -> tuple[float, float]:
    """Return the additional room that the text below a box needs: how much wider than the box, and how far below it."""
    shape = Shape(element="", kind=box.kind, label=box.label, x=0.0, y=0.0, width=box.width, height=box.height)
    label = label_below(shape)
    if label is None:
        return 0.0, 0.0
    held = label.rectangle
    return max(0.0, held.right - held.left - box.width), held.bottom - box.height


_SIZES = {
    "exclusive": (42.0, 42.0),
    "parallel": (42.0, 42.0),
    "inclusive": (42.0, 42.0),
    "event-based": (42.0, 42.0),
    "silent": (12.0, 44.0),
    "boundary": (26.0, 26.0),
}
