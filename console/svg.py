"""The API's pictures inside a page: only drawing elements, in the page's colours, with counts at event types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as Xml

from defusedxml.ElementTree import fromstring
from markupsafe import Markup

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"
_DRAWN: Final = frozenset("svg g title desc rect path text tspan circle ellipse line polyline polygon".split())
_KEPT: Final = frozenset(
    (
        "class cx cy d data-element data-event fill font-size font-weight height paint-order points r role rx ry "
        "stroke stroke-dasharray stroke-linecap stroke-linejoin stroke-width text-anchor transform viewBox width "
        "x x1 x2 y y1 y2"
    ).split()
)
_REFERENCES: Final = "url("
_BADGE_HEIGHT: Final = 18


@dataclass(frozen=True, slots=True)
class Badge:
    """A count that is drawn beside an event type of a model. ``kind`` determines colour and corner.

    ``title`` explains the count.
    """

    count: int
    kind: str
    title: str


def inline(picture: bytes, badges: Mapping[str, Sequence[Badge]] | None = None) -> Markup:
    """Return an SVG picture as markup, reduced to its drawing elements. ``badges`` are added at their event types."""
    drawn = _cleaned(fromstring(picture))
    if drawn is None or drawn.tag != "svg":
        return Markup("")
    for group in drawn.iter("g"):
        box = group.find("rect")
        for badge in (badges or {}).get(group.get("data-event", ""), ()):
            if box is not None:
                group.extend(_badge(badge, box))
    drawn.set("class", "picture")
    return Markup(Xml.tostring(drawn, encoding="unicode"))  # noqa: S704 # written from a tree of known elements


def _cleaned(element: Element) -> Element | None:
    tag = element.tag.removeprefix(_NAMESPACE) if isinstance(element.tag, str) else ""
    if tag not in _DRAWN:
        return None
    attributes = {name: value for name, value in element.attrib.items() if name in _KEPT and _REFERENCES not in value}
    clean = Xml.Element(tag, attributes)
    clean.text, clean.tail = element.text, element.tail
    clean.extend(child for child in map(_cleaned, element) if child is not None)
    return clean


def _badge(badge: Badge, box: Element) -> Iterator[Element]:
    left, top = float(box.get("x", 0)), float(box.get("y", 0))
    right, bottom = left + float(box.get("width", 0)), top + float(box.get("height", 0))
    text = f"{badge.count:,}"
    width = 9 + 7 * len(text)
    x = left + 2 if badge.kind in ("open", "deviating") else right - width - 2
    y = (bottom if badge.kind in ("deviating", "ended") else top) - _BADGE_HEIGHT / 2
    place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width}", "height": f"{_BADGE_HEIGHT}", "rx": "9"}
    shape = Xml.Element("rect", {"class": f"badge-{badge.kind}", **place})
    Xml.SubElement(shape, "title").text = badge.title
    yield shape
    middle = {"x": f"{x + width / 2:g}", "y": f"{y + 13:g}", "font-size": "11", "text-anchor": "middle"}
    label = Xml.Element("text", {"class": "badge-text", **middle})
    label.text = text
    yield label
