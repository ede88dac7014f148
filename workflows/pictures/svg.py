"""Writes SVG elements as escaped text, with colours for light and for dark pages that have enough contrast.

Every role is an SVG class. The light colours are attributes of each element, so that a page that blocks styles shows
them. A style sheet replaces them for readers who prefer dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from workflows.diagram import Point
from workflows.pictures.text import LINE_STEP, escaped

Value = str | float

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


_Colours = Mapping[str, str]

PREFIX = "fw-"

LIGHT: Mapping[str, _Colours] = {
    "page": {"fill": "#ffffff"},
    "area": {"fill": "#f8fafc", "stroke": "#64748b"},
    "box": {"fill": "#ffffff", "stroke": "#334155"},
    "mark": {"fill": "none", "stroke": "#334155"},
    "solid": {"fill": "#334155"},
    "line": {"fill": "none", "stroke": "#475569"},
    "head": {"fill": "#475569", "stroke": "#475569"},
    "text": {"fill": "#0f172a"},
    "halo": {"fill": "#0f172a", "stroke": "#ffffff"},
    "seen": {"fill": "#fcd34d", "stroke": "#92400e"},
    "seen-text": {"fill": "#0f172a"},
    "expected": {"fill": "none", "stroke": "#1d4ed8"},
    "badge": {"fill": "#92400e", "stroke": "#ffffff"},
    "badge-text": {"fill": "#ffffff"},
}
DARK: Mapping[str, _Colours] = {
    "page": {"fill": "#0f172a"},
    "area": {"fill": "#162032", "stroke": "#94a3b8"},
    "box": {"fill": "#1e293b", "stroke": "#cbd5e1"},
    "mark": {"fill": "none", "stroke": "#cbd5e1"},
    "solid": {"fill": "#cbd5e1"},
    "line": {"fill": "none", "stroke": "#94a3b8"},
    "head": {"fill": "#94a3b8", "stroke": "#94a3b8"},
    "text": {"fill": "#f1f5f9"},
    "halo": {"fill": "#f1f5f9", "stroke": "#0f172a"},
    "seen": {"fill": "#fbbf24", "stroke": "#fde68a"},
    "seen-text": {"fill": "#0f172a"},
    "expected": {"fill": "none", "stroke": "#60a5fa"},
    "badge": {"fill": "#fde68a", "stroke": "#0f172a"},
    "badge-text": {"fill": "#0f172a"},
}


def dark_style() -> str:
    """Return the style sheet for readers who prefer dark pages."""
    rules = "".join(
        f".{PREFIX}{role}{{{';'.join(f'{name}:{value}' for name, value in colours.items())}}}"
        for role, colours in DARK.items()
    )
    return f"@media (prefers-color-scheme: dark){{{rules}}}"


def element(name: str, attributes: dict[str, Value], *children: str) -> str:
    """Return an SVG element. Its ``children`` are SVG already, so they are not escaped."""
    written = "".join(f' {key}="{escaped(_written(value))}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def picture(corner: Point, size: Point, head: Sequence[str], content: Iterable[str], *, scale: float = 1.0) -> str:
    """Return a whole SVG picture that shows the area of ``size`` from ``corner`` on. ``head`` has titles and styles."""
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": " ".join(map(number, (*corner, *size))),
            "width": size[0] * scale,
            "height": size[1] * scale,
            "role": "img",
            "font-family": FONT,
        },
        *head,
        rectangle("page", corner, size, width=0.0),
        *content,
    )


def styled(name: str, role: str, attributes: dict[str, Value], *children: str) -> str:
    """Return an SVG element in the colours of a role, such as ``box`` or ``seen``."""
    return element(name, {"class": f"{PREFIX}{role}", **LIGHT[role], **attributes}, *children)


def rectangle(role: str, corner: Point, size: Point, *, radius: float = 0.0, width: float = 1.5) -> str:
    """Return a rectangle, given by its upper left corner."""
    attributes: dict[str, Value] = {"x": corner[0], "y": corner[1], "width": size[0], "height": size[1]}
    if radius:
        attributes["rx"] = radius
    return styled("rect", role, {**attributes, "stroke-width": width})


def circle(role: str, middle: Point, radius: float, *, width: float = 1.5) -> str:
    """Return a circle, given by its middle."""
    return styled("circle", role, {"cx": middle[0], "cy": middle[1], "r": max(0.0, radius), "stroke-width": width})


def path(role: str, commands: str, *, width: float = 1.5, dashes: str = "") -> str:
    """Return a path, given by its commands."""
    attributes: dict[str, Value] = {"d": commands, "stroke-width": width}
    if dashes:
        attributes["stroke-dasharray"] = dashes
    return styled("path", role, {**attributes, "stroke-linejoin": "round", "stroke-linecap": "round"})


def text_lines(role: str, lines: Sequence[str], middle: Point, size: float, *, anchor: str = "middle") -> str:
    """Return lines of text as SVG, with their vertical middle at ``middle``. The role ``halo`` outlines the letters."""
    step = size * LINE_STEP
    top = middle[1] - (len(lines) - 1) * step / 2 + size * 0.35
    attributes: dict[str, Value] = {"text-anchor": anchor, "font-size": size}
    if role == "halo":
        attributes.update({"stroke-width": 3, "paint-order": "stroke", "stroke-linejoin": "round"})
    spans = (
        element("tspan", {"x": middle[0], "y": top + number * step}, escaped(line)) for number, line in enumerate(lines)
    )
    return styled("text", role, attributes, *spans) if lines else ""


def number(value: float) -> str:
    """Return a coordinate as text, rounded to a tenth."""
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written


def _written(value: Value) -> str:
    return value if isinstance(value, str) else number(value)
