"""Measured points in the series of a plot, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured point.

    Attributes:
        plot: The name of the quantity that varies.
        series: The name of the line to which the point belongs.
        at: The value of the quantity.
        rate: Events/s.
        note: A further observation at the point.
    """

    plot: str
    series: str
    at: float
    rate: float
    note: str = ""


def keep(path: Path, points: Sequence[Point]) -> None:
    """Write points as JSON lines."""
    path.write_bytes(b"".join(orjson.dumps(asdict(point), option=orjson.OPT_APPEND_NEWLINE) for point in points))


def table(title: str, unit: str, points: Sequence[Point]) -> str:
    """Return the points of a plot as Markdown, each with its ratio to the first point of its series."""
    lines = [f"| {unit} | series | events/s | to the first | |", "|---|---|---|---|---|"]
    for series in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == series]
        lines += [
            f"| {shown(one.at)} | {series} | {rate_text(one.rate)} | {one.rate / own[0].rate:.2f} | {one.note} |"
            for one in own
        ]
    return f"### {title}\n\n" + "\n".join(lines) + "\n"


def shown(at: float) -> str:
    """Return a place on the axis as text. Infinity is "none"."""
    return "none" if at == float("inf") else f"{at:,.0f}"


def rate_text(rate: float) -> str:
    """Return events/s to about three digits."""
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:,.1f} k"
