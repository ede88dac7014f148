"""Draws numbers over time. A picture has one panel for each value, and a panel has one line for each series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TypeAlias

from streams import format_time
from workflows.pictures.svg import PREFIX, dark_style, element, number, path, picture, rectangle, text_lines
from workflows.pictures.text import MOST_IN_TITLE, escaped, shortened

Points: TypeAlias = "Sequence[tuple[int, float]]"
"""Numbers over time: pairs of a time in microseconds and a number, in the order of time."""

MOST_SERIES = 8
"""Largest number of lines in a panel. The legend shows the number of series that are left out."""
MOST_PANELS = 6

_COLOURS: Sequence[tuple[str, str]] = (  # colours on light pages, on dark pages
    ("#1d4ed8", "#60a5fa"),
    ("#b45309", "#fbbf24"),
    ("#047857", "#34d399"),
    ("#be123c", "#fb7185"),
    ("#6d28d9", "#a78bfa"),
    ("#0e7490", "#22d3ee"),
    ("#4d7c0f", "#a3e635"),
    ("#a21caf", "#e879f9"),
)
_WIDTH, _HEIGHT, _LEFT, _LEGEND, _GAP = 560.0, 150.0, 72.0, 190.0, 44.0
_SMALL, _LARGE = 11.0, 13.0
_DOT = 2.5
_MOST_DOTTED = 200  # each point is marked in panels with at most this number of points
_MOST_LETTERS = 24
_LEAST_SPAN = 1e-300  # parts of a smaller span would be 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A chart of one value over time, with a line for each series. The most important series comes first."""

    title: str
    series: Mapping[str, Points]


def draw_series(title: str, panels: Sequence[Panel]) -> str:
    """Draw panels below each other with a common time axis, as SVG. Without any point, the picture has a notice."""
    drawn_panels = [panel for panel in panels if any(panel.series.values())][:MOST_PANELS]
    times_us = [time_us for panel in drawn_panels for points in panel.series.values() for time_us, _ in points]
    span = (min(times_us), max(times_us)) if times_us else (0, 0)
    height = _GAP + max(1, len(drawn_panels)) * (_HEIGHT + _GAP)
    content = [part for place, panel in enumerate(drawn_panels) for part in _panel(panel, span, _top(place))]
    if not drawn_panels:
        content = [text_lines("text", ["no values yet"], (_LEFT + _WIDTH / 2, height / 2), _LARGE)]
    head = (
        element("title", {}, escaped(shortened(title, MOST_IN_TITLE))),
        element("style", {}, dark_style() + _dark_lines()),
    )
    return picture((0.0, 0.0), (_LEFT + _WIDTH + _LEGEND, height), head, content)


def _top(place: int) -> float:
    return _GAP + place * (_HEIGHT + _GAP)


def _panel(panel: Panel, span: tuple[int, int], top: float) -> Iterator[str]:
    drawn = dict(list(panel.series.items())[:MOST_SERIES])
    values = [value for points in drawn.values() for _, value in points]
    first, last, step = _scale(min(0.0, *values), max(0.0, *values))
    low, high = first * step, last * step

    def place_of(time_us: int, value: float) -> tuple[float, float]:
        x = (time_us - span[0]) / (span[1] - span[0]) if span[1] > span[0] else 0.5
        return _LEFT + x * _WIDTH, top + _HEIGHT * (1 - (value - low) / (high - low))

    yield rectangle("area", (_LEFT, top), (_WIDTH, _HEIGHT), width=1.0)
    yield text_lines("text", [shortened(panel.title, 80)], (_LEFT, top - 12.0), _LARGE, anchor="start")
    for mark in range(first, last + 1):
        _, y = place_of(span[0], mark * step)
        yield path("line", f"M{number(_LEFT - 4)} {number(y)}H{number(_LEFT)}", width=1.0)
        yield text_lines("text", [f"{mark * step:.6g}"], (_LEFT - 8.0, y), _SMALL, anchor="end")
    for x, time_us, anchor in ((_LEFT, span[0], "start"), (_LEFT + _WIDTH, span[1], "end")):
        yield text_lines("text", [format_time(time_us)], (x, top + _HEIGHT + 12.0), _SMALL, anchor=anchor)
    is_dotted = len(values) <= _MOST_DOTTED
    for row, (name, points) in enumerate(drawn.items()):
        yield from _line(row, [place_of(*point) for point in points], is_dotted=is_dotted)
        yield from _entry(row, name, top + 8.0 + 16.0 * row)
    if left := len(panel.series) - len(drawn):
        beside = (_LEFT + _WIDTH + 12.0, top + 8.0 + 16.0 * len(drawn))
        yield text_lines("text", [f"and {left:,} more"], beside, _SMALL, anchor="start")


def _line(row: int, places: Sequence[tuple[float, float]], *, is_dotted: bool) -> Iterator[str]:
    if len(places) > 1:
        commands = "L".join(f"{number(x)} {number(y)}" for x, y in places)
        stroke = {"class": f"{PREFIX}line-{row}", "stroke": _COLOURS[row][0]}
        yield element("path", {**stroke, "d": f"M{commands}", "fill": "none", "stroke-width": 1.5})
    for x, y in places if is_dotted or len(places) == 1 else ():
        filling = {"class": f"{PREFIX}dot-{row}", "fill": _COLOURS[row][0]}
        yield element("circle", {**filling, "cx": x, "cy": y, "r": _DOT})


def _entry(row: int, name: str, y: float) -> Iterator[str]:
    x = _LEFT + _WIDTH + 12.0
    yield element(
        "rect",
        {"class": f"{PREFIX}dot-{row}", "fill": _COLOURS[row][0], "x": x, "y": y - 5.0, "width": 10.0, "height": 10.0},
    )
    yield text_lines("text", [shortened(name, _MOST_LETTERS)], (x + 16.0, y), _SMALL, anchor="start")


def _scale(low: float, high: float) -> tuple[int, int, float]:
    """Return the first and the last mark of a scale that contains two numbers, and the distance between marks.

    Marks are multiples of the distance, which is 1, 2 or 5 times a power of ten.
    """
    span = high - low if high - low > _LEAST_SPAN else 1.0
    power = 10.0 ** floor(log10(span / 4))
    step = next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= 4)
    return floor(low / step), ceil((high if high > low else low + 1.0) / step), step


def _dark_lines() -> str:
    rules = "".join(
        f".{PREFIX}line-{row}{{stroke:{dark}}}.{PREFIX}dot-{row}{{fill:{dark}}}"
        for row, (_, dark) in enumerate(_COLOURS)
    )
    return f"@media (prefers-color-scheme: dark){{{rules}}}"
