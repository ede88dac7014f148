"""Plots of the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.drawing import STYLE
from benchmarks.peers.axes import Axis
from benchmarks.peers.results import Record

_OWN, _OTHER = "#1f6fb4", "#9aa5b1"


def draw_all(records: Sequence[Record], folder: Path) -> None:
    """Write a plot of events/s and one of memory, with a panel for each case."""
    done = [record for record in records if record.status == "done"]
    if not done:
        return
    with mpl.rc_context(STYLE):
        _draw(done, "events/s", "rate", folder / "speed.png")
        _draw(done, "peak memory, MB", "peak_bytes", folder / "memory.png")


def draw_axes(records: Sequence[Record], axes: Sequence[Axis], path: Path) -> None:
    """Write a plot with a panel for each axis and a line for each engine."""
    done = [record for record in records if record.status == "done" and record.rate]
    known = {record.case for record in done}
    axes = [axis for axis in axes if any(case.name in known for case in axis.points.values())]
    if not axes:
        return
    with mpl.rc_context(STYLE):
        picture = Figure(figsize=(11, 3), layout="constrained")
        for place, axis in enumerate(axes):
            panel = picture.add_subplot(1, len(axes), place + 1)
            for system in dict.fromkeys(record.system for record in done):
                found = {
                    value: max(rates)
                    for value, case in axis.points.items()
                    if (rates := [one.rate for one in done if (one.case, one.system) == (case.name, system)])
                }
                (line,) = panel.plot([*found], [*found.values()], marker="o", label=system)
                if system == "library":
                    line.set(color=_OWN, linewidth=2.4)
            panel.set(xscale="log", yscale="log", title=axis.name, ylabel="" if place else "events/s")
            panel.set_xticks([*axis.points], [f"{value:,}" for value in axis.points], fontsize=8)
            panel.minorticks_off()
        panel.legend(fontsize=8)
        picture.savefig(path, dpi=130, metadata={"Software": None})


def _draw(records: Sequence[Record], title: str, column: str, path: Path) -> None:
    """Draw bars on a logarithmic scale, with the best result on top."""
    cases = list(dict.fromkeys(record.case for record in records))
    rows = (len(cases) + 1) // 2
    picture = Figure(figsize=(11, 1 + 2.6 * rows), layout="constrained")
    picture.suptitle(f"{title} (ours blue; logarithmic)", fontsize=12, fontweight="bold", x=0.01, ha="left")
    for place, case in enumerate(cases):
        panel = picture.add_subplot(rows, 2, place + 1)
        own = sorted((one for one in records if one.case == case), key=lambda one: float(getattr(one, column)))
        heights = [float(getattr(one, column)) / (1e6 if column == "peak_bytes" else 1) for one in own]
        colours = [_OWN if one.system == "library" or one.system.startswith("forestall") else _OTHER for one in own]
        labels = [f"{one.label}, {one.source}, {one.events:,}" for one in own]
        bars = panel.barh(range(len(own)), heights, color=colours)
        panel.bar_label(bars, [f"{height:,.0f}" for height in heights], padding=3, fontsize=7)
        panel.set_yticks(range(len(own)), labels, fontsize=7)
        panel.set_xscale("log")
        panel.margins(x=0.15)
        panel.set_title(case, loc="left")
    picture.savefig(path, dpi=130, metadata={"Software": None})
