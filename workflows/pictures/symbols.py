"""Draws shapes in familiar notations: BPMN for processes, bars and circles for nets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from workflows.diagram import Point, Shape
from workflows.pictures.labels import AREAS, EVENTS, GATEWAYS, LABEL_SIZE, PLACES, SMALLEST_TEXT, Label
from workflows.pictures.svg import circle, element, number, path, rectangle, styled, text_lines
from workflows.pictures.text import LINE_STEP, MOST_IN_TITLE, escaped, shortened, width_of, wrapped

_TEXT = 12.0
_WIDE = 80.0
"""Width from which a shape has more room beside its text."""
_BAND = 28.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How a shape is highlighted.

    Attributes:
        is_seen: Whether the event of the shape has occurred.
        times: The number of its occurrences; 0 if no number is shown.
        is_expected: Whether the event may occur next.
    """

    is_seen: bool = False
    times: int = 0
    is_expected: bool = False

    @property
    def words(self) -> str:
        """The highlight in words, such as ``(seen 2 times)``, to follow a label. Empty if nothing is highlighted."""
        seen = f"seen {self.times} times" if self.times > 1 else "seen once" if self.times else "seen"
        highlights = [seen] * self.is_seen + ["may come next"] * self.is_expected
        return f" ({', '.join(highlights)})" if highlights else ""


def symbol(shape: Shape, mark: Mark, *, label: Label | None = None, has_inner: bool = False) -> str:
    """Return a shape as SVG, with its text, its highlight and a title in words.

    ``label`` is drawn outside the shape. ``has_inner`` means that the content of a sub-process, or the lanes of a pool,
    are drawn too.
    """
    role = "seen" if mark.is_seen else "area" if shape.kind in AREAS else "box"
    attributes: dict[str, str | float] = {"data-element": shape.element}
    if shape.event is not None:
        attributes["data-event"] = shape.event
    name = shape.label or shape.event or shape.kind
    title = name if len(name) <= MOST_IN_TITLE else shortened(name, MOST_IN_TITLE)
    parts = [element("title", {}, escaped(f"{title}{mark.words}"))]
    if mark.is_expected:
        parts.append(_outline(shape))
    parts.extend(_OUTLINES.get(shape.kind, partial(_box, radius=8.0))(shape, role))
    if shape.kind == "pool" and not has_inner:
        parts.append(_band(shape))
    if label is not None:
        parts.append(text_lines("halo", label.lines, label.at, LABEL_SIZE, anchor=label.anchor))
    else:
        parts.extend(_inside(shape, "seen-text" if mark.is_seen else "text", has_inner=has_inner))
    if mark.times:
        parts.append(_badge(shape, mark.times))
    return element("g", attributes, *parts)


def _outline(shape: Shape) -> str:
    sides = {"x": shape.x - 5.0, "y": shape.y - 5.0, "width": shape.width + 10.0, "height": shape.height + 10.0}
    return styled("rect", "expected", {**sides, "rx": 10, "stroke-width": 3, "stroke-dasharray": "8 4"})


def _badge(shape: Shape, times: int) -> str:
    text = str(times) if times < 10_000 else f"{times / 1000:.0f}k" if times < 10_000_000 else "many"
    width = max(18.0, width_of(text, LABEL_SIZE) + 12.0)
    x, y = shape.x + shape.width - width / 2 - 2.0, shape.y
    return rectangle("badge", (x - width / 2, y - 9.0), (width, 18.0), radius=9.0, width=1.0) + text_lines(
        "badge-text", [text], (x, y), LABEL_SIZE
    )


def _inside(shape: Shape, role: str, *, has_inner: bool) -> Iterator[str]:
    if not shape.label:
        return
    if shape.kind in ("pool", "lane"):
        yield _band_label(shape, role)
    elif shape.kind in ("subprocess", "group") and has_inner:
        lines = wrapped(shape.label, max(20.0, shape.width - 16.0), _TEXT, 1)
        yield text_lines(role, lines, (shape.x + shape.width / 2, shape.y + 16.0), _TEXT)
    elif shape.kind == "note":
        yield _fitted(shape, role, anchor="start")
    else:
        yield _fitted(shape, role)


def _fitted(shape: Shape, role: str, *, anchor: str = "middle") -> str:
    """Return the text in the middle of a shape, in the largest font size that fits. If none fits, the text is cut."""
    width = max(10.0, shape.width - (16.0 if shape.width >= _WIDE else 10.0))
    size = _TEXT
    while True:
        most = max(1, int((shape.height - 6.0) // (size * LINE_STEP)))
        lines = wrapped(shape.label, width, size, 99)
        if len(lines) <= most or size <= SMALLEST_TEXT:
            break
        size -= 1.0
    middle = shape.centre if anchor == "middle" else (shape.x + 6.0, shape.y + shape.height / 2)
    return text_lines(role, wrapped(shape.label, width, size, most), middle, size, anchor=anchor)


def _band_label(shape: Shape, role: str) -> str:
    """Return the name of a pool or lane, written vertically at the left edge.

    Upright shapes have it at the upper edge.
    """
    if shape.height > shape.width:
        lines = wrapped(shape.label, max(20.0, shape.width - 16.0), _TEXT, 1)
        return text_lines(role, lines, (shape.x + shape.width / 2, shape.y + _BAND / 2), _TEXT)
    middle = shape.x + _BAND / 2, shape.y + shape.height / 2
    lines = wrapped(shape.label, max(20.0, shape.height - 12.0), _TEXT, 1 if shape.kind == "pool" else 2)
    turned = f"rotate(-90 {number(middle[0])} {number(middle[1])})"
    return element("g", {"transform": turned}, text_lines(role, lines, middle, _TEXT))


def _box(shape: Shape, role: str, radius: float = 0.0) -> Iterator[str]:
    yield rectangle(role, (shape.x, shape.y), (shape.width, shape.height), radius=radius)


def _silent(shape: Shape, role: str) -> Iterator[str]:
    return _box(shape, "seen" if role == "seen" else "solid")


def _band(shape: Shape) -> str:
    if shape.height > shape.width:
        edge = f"M{number(shape.x)} {number(shape.y + _BAND)}h{number(shape.width)}"
    else:
        edge = f"M{number(shape.x + _BAND)} {number(shape.y)}v{number(shape.height)}"
    return path("mark", edge, width=1.0)


def _group(shape: Shape, _role: str) -> Iterator[str]:
    corner = f"M{number(shape.x)} {number(shape.y)}"
    yield path(
        "mark", f"{corner}h{number(shape.width)}v{number(shape.height)}h{number(-shape.width)}Z", dashes="8 4 2 4"
    )


def _gateway(shape: Shape, role: str) -> Iterator[str]:
    x, y = shape.centre
    half_width, half_height = shape.width / 2, shape.height / 2
    corners = f"M{number(x)} {number(shape.y)}l{number(half_width)} {number(half_height)}"
    rest = f"l{number(-half_width)} {number(half_height)}l{number(-half_width)} {number(-half_height)}Z"
    yield path(role, corners + rest)
    arm = min(half_width, half_height)
    yield from _GATEWAY_MARKS[shape.kind]((x, y), arm)


def _cross(middle: Point, arm: float) -> Iterator[str]:
    x, y, reach = *middle, arm * 0.33
    x1, x2, y1, y2 = (number(value) for value in (x - reach, x + reach, y - reach, y + reach))
    yield path("mark", f"M{x1} {y1}L{x2} {y2}M{x2} {y1}L{x1} {y2}", width=2.6)


def _plus(middle: Point, arm: float) -> Iterator[str]:
    x, y, reach = *middle, arm * 0.45
    level = f"M{number(x - reach)} {number(y)}h{number(2 * reach)}"
    yield path("mark", f"{level}M{number(x)} {number(y - reach)}v{number(2 * reach)}", width=2.6)


def _star(middle: Point, arm: float) -> Iterator[str]:
    yield from _cross(middle, arm)
    yield from _plus(middle, arm)


def _ring(middle: Point, arm: float) -> Iterator[str]:
    yield circle("mark", middle, arm * 0.45, width=2.6)


def _rings(middle: Point, arm: float) -> Iterator[str]:
    yield circle("mark", middle, arm * 0.58, width=1.2)
    yield circle("mark", middle, arm * 0.48, width=1.2)
    x, y, reach = *middle, arm * 0.3
    points = ((0.0, -1.0), (0.95, -0.31), (0.59, 0.81), (-0.59, 0.81), (-0.95, -0.31))
    corners = "L".join(f"{number(x + dx * reach)} {number(y + dy * reach)}" for dx, dy in points)
    yield path("mark", f"M{corners}Z", width=1.2)


def _event(shape: Shape, role: str) -> Iterator[str]:
    middle, radius = shape.centre, min(shape.width, shape.height) / 2
    is_end = shape.kind in ("end", "terminate")
    yield circle(role, middle, radius - (1.0 if is_end else 0.0), width=3.4 if is_end else 1.5)
    if shape.kind in ("intermediate", "boundary"):
        yield circle("mark", middle, radius - 3.5)
    if shape.kind == "terminate":
        yield circle("solid", middle, radius * 0.55)


def _net_place(shape: Shape, role: str) -> Iterator[str]:
    middle, radius = shape.centre, min(shape.width, shape.height) / 2
    yield circle(role, middle, radius)
    if shape.kind == "marked-place":
        yield circle("solid", middle, radius * 0.3)
    if shape.kind == "final-place":
        yield circle("mark", middle, radius - 3.5)


def _note(shape: Shape, _role: str) -> Iterator[str]:
    x, y, height = shape.x, shape.y, shape.height
    yield path("mark", f"M{number(x + 10)} {number(y)}H{number(x)}v{number(height)}h10")


def _data(shape: Shape, role: str) -> Iterator[str]:
    x, y, fold = shape.x, shape.y, min(shape.width, shape.height) / 3
    sheet = f"M{number(x)} {number(y)}h{number(shape.width - fold)}l{number(fold)} {number(fold)}"
    yield path(role, f"{sheet}v{number(shape.height - fold)}h{number(-shape.width)}Z")
    yield path("mark", f"M{number(x + shape.width - fold)} {number(y)}v{number(fold)}h{number(fold)}", width=1.0)


_Outline = Callable[[Shape, str], Iterator[str]]

_GATEWAY_MARKS: Mapping[str, Callable[[Point, float], Iterator[str]]] = {
    "exclusive": _cross,
    "parallel": _plus,
    "inclusive": _ring,
    "event-based": _rings,
    "complex": _star,
}
_OUTLINES: Mapping[str, _Outline] = {
    **dict.fromkeys(GATEWAYS, _gateway),
    **dict.fromkeys(EVENTS, _event),
    **dict.fromkeys(PLACES, _net_place),
    "transition": _box,
    "silent": _silent,
    "pool": _box,
    "lane": _box,
    "group": _group,
    "subprocess": partial(_box, radius=10.0),
    "note": _note,
    "data": _data,
}
