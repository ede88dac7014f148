"""Plots of the points: events/s over the quantity that varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.drawing import STYLE
from benchmarks.scaling.points import Point

_COLOURS = ("#1f6fb4", "#d1781f", "#2a9d68", "#8c5fb3")
_WIDE = frozenset({"patterns"})  # with a logarithmic scale of rates, which differ by a factor of a thousand
_EVEN = frozenset({"length", "cores"})  # with a linear axis, because its values are few and evenly spaced


def draw(plot: str, title: str, unit: str, points: Sequence[Point], folder: Path) -> Path:
    """Write one plot. Return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plot}.png"
    with mpl.rc_context(STYLE):
        picture = Figure(figsize=(6, 3.4), layout="constrained")
        axes = picture.add_subplot()
        for colour, (series, own) in zip(_COLOURS, _by_series(points).items(), strict=False):
            rates = [one.rate / 1e6 for one in own]
            axes.plot([one.at for one in own], rates, "o-", color=colour, label=series)
        if plot == "constraints":
            axes.set_xscale("symlog", linthresh=10)
        elif plot not in _EVEN:
            axes.set_xscale("log")
        axes.set_xticks(sorted({one.at for one in points}), [f"{at:,.0f}" for at in sorted({p.at for p in points})])
        axes.minorticks_off()
        if plot in _WIDE:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(unit)
        axes.set_ylabel("M events/s, one thread" if plot != "cores" else "M events/s")
        axes.set_title(title, loc="left")
        axes.legend()
        picture.savefig(path, dpi=130, metadata={"Software": None})
    return path


def _by_series(points: Sequence[Point]) -> Mapping[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.series, []).append(point)
    return found
