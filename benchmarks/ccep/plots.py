"""Plots of the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.ccep.experiments import LEAN, WATCHED
from benchmarks.ccep.figures import Figures, Row, change, select
from benchmarks.ccep.modes import R_CEP
from benchmarks.ccep.queries import VARIED, cell_of, table_cells
from benchmarks.drawing import STYLE

_COLOURS: Mapping[str, str] = {
    R_CEP: "#5f6b7a",
    "query": "#d1781f",
    "state": "#1f6fb4",
    "exact": "#2a9d68",
    WATCHED: "#8c5fb3",
    LEAN: "#b9a13a",
}
_MARKS: Mapping[str, str] = {R_CEP: "s", "query": "o", "state": "D", "exact": "^", WATCHED: "v", LEAN: "P"}
_SWEEPS = ("Q1 early", "Q1 late", "Q2", "Q2 late", "EP1")
_MODES = ("query", "state", "exact")


def draw_all(figures: Figures, folder: Path) -> None:
    """Write all plots for which there are figures."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, Callable[[Figures], Figure | None]] = {
        "memory.png": _memory,
        "probes.png": _probes,
        "time.png": _time,
        "q3.png": _grid,
        "targets.png": _targets,
        "bytes.png": _bytes,
    }
    with mpl.rc_context(STYLE):
        for name, draw in drawings.items():
            picture = draw(figures)
            if picture is not None:
                picture.savefig(folder / name, dpi=130, metadata={"Software": None})


def _panels(title: str) -> tuple[Figure, list[Axes]]:
    """Return a plot with a panel for each sweep, and a sixth panel for the legend."""
    picture = Figure(figsize=(10.5, 6.2), layout="constrained")
    picture.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
    axes = [picture.add_subplot(2, 3, place + 1) for place in range(6)]
    for sweep, panel in zip(_SWEEPS, axes, strict=False):
        panel.set_title(sweep, loc="left")
        panel.set_xlabel(f"%, {VARIED[sweep]}")
    return picture, axes


def _close(axes: Sequence[Axes]) -> None:
    """Add the legend in the last panel."""
    handles, labels = axes[0].get_legend_handles_labels()
    axes[-1].axis("off")
    axes[-1].legend(handles, labels, loc="center", fontsize=10, labelspacing=0.9)
    for panel in axes[:-1]:
        panel.set_ylim(bottom=0)


def _ratios(rows: Sequence[Row], sweep: str) -> list[str]:
    return sorted({row.ratio for row in rows if row.sweep == sweep}, key=int)


def _memory(figures: Figures) -> Figure | None:
    if not figures.rows:
        return None
    picture, axes = _panels("Peak held instances")
    for sweep, panel in zip(_SWEEPS, axes, strict=False):
        ratios = _ratios(figures.rows, sweep)
        for mode in (R_CEP, *_MODES):
            peaks = [mean(row.peak for row in select(figures.rows, sweep, ratio, mode)) for ratio in ratios]
            size = 8 if mode == "query" else 4.5  # often hidden below ``state``
            places = list(map(int, ratios))
            panel.plot(places, peaks, _line(mode), color=_COLOURS[mode], label=_name(mode), markersize=size)
        _draw_reported(figures, sweep, panel)
    _close(axes)
    return picture


def _draw_reported(figures: Figures, sweep: str, panel: Axes) -> None:
    """Draw the values that the source reports, relative to our R-CEP."""
    label = "as reported by the source"
    for cell in (cell for cell in table_cells() if cell.sweep == sweep and cell.reported):
        base = select(figures.rows, sweep, cell.label, R_CEP)
        if base:
            height = mean(row.peak for row in base) * (1 + int(cell.reported) / 100)
            panel.plot([cell.ratio[0]], [height], "x", color="black", markersize=9, markeredgewidth=1.8, label=label)
            label = "_"


def _name(mode: str) -> str:
    names = {
        "query": "prune: query, 4 named constraints",
        "state": "prune: state, extracted constraints",
        "exact": "exact, loop unrolled",
        WATCHED: "extracted constraints, nothing pruned",
        LEAN: "R-CEP that forgets empty traces",
    }
    return names.get(mode, "R-CEP: no constraints")


def _line(mode: str) -> str:
    """Return marker and line style of a mode. ``exact`` is dashed, because it mostly coincides with ``state``."""
    return f"{_MARKS[mode]}{'--' if mode == 'exact' else '-'}"


def _probes(figures: Figures) -> Figure | None:
    if not figures.rows:
        return None
    picture, axes = _panels("Probes, % of R-CEP's (solid: scan; dotted: typed)")
    for sweep, panel in zip(_SWEEPS, axes, strict=False):
        ratios = _ratios(figures.rows, sweep)
        places = list(map(int, ratios))
        for mode in _MODES:
            for column, line, label in (("scan_probes", _line(mode), _name(mode)), ("typed_probes", ":", "_")):
                heights = [_remaining(figures.rows, sweep, ratio, mode, column) for ratio in ratios]
                panel.plot(places, heights, line, color=_COLOURS[mode], label=label)
        panel.axhline(100, color=_COLOURS[R_CEP], linewidth=1)
    _close(axes)
    return picture


def _remaining(rows: Sequence[Row], sweep: str, ratio: str, mode: str, column: str) -> float:
    """Return the value of a column in percent of R-CEP's. If a figure is missing, return NaN."""
    changed = change(select(rows, sweep, ratio, R_CEP), select(rows, sweep, ratio, mode), column)
    return float("nan") if changed is None else 100 + changed


def _time(figures: Figures) -> Figure | None:
    if not figures.timings:
        return None
    picture, axes = _panels("Time of the matcher, % of R-CEP's, dispatch by type")
    for sweep, panel in zip(_SWEEPS, axes, strict=False):
        for mode in ("query", "state", WATCHED, LEAN):
            own = [one for one in figures.timings if (one.sweep, one.mode) == (sweep, mode)]
            own.sort(key=lambda one: int(one.ratio))
            places, heights = [int(one.ratio) for one in own], [100 * one.ratio_to_first for one in own]
            panel.plot(places, heights, color=_COLOURS[mode], marker=_MARKS[mode], label=_name(mode))
        panel.axhline(100, color=_COLOURS[R_CEP], linewidth=1)
    _close(axes)
    return picture


def _grid(figures: Figures) -> Figure | None:
    rows = [row for row in figures.rows if row.sweep == "Q3"]
    if not rows:
        return None
    picture = Figure(figsize=(10.5, 3.9), layout="constrained")
    picture.suptitle("Q3, % against R-CEP", fontsize=12, fontweight="bold", x=0.01, ha="left")
    quotes = sorted({int(row.ratio.partition(",")[0]) for row in rows})
    shown = (
        ("query", "peak", "held, prune: query"),
        ("state", "peak", "held, prune: state"),
        ("query", "scan_probes", "scan probes, prune: query"),
    )
    for place, (mode, column, title) in enumerate(shown):
        heights = np.array(
            [[_remaining(rows, "Q3", f"{quote},{local}", mode, column) - 100 for quote in quotes] for local in quotes]
        )
        panel = picture.add_subplot(1, 3, place + 1)
        panel.grid(visible=False)
        panel.imshow(heights, origin="lower", cmap="Blues_r", vmin=-60, vmax=0, aspect="auto")
        for (row, column_), height in np.ndenumerate(heights):
            if not np.isnan(height):
                colour = "white" if height < -30 else "#333333"
                panel.text(column_, row, f"{round(height)}", ha="center", va="center", fontsize=7, color=colour)
        panel.set_xticks(range(len(quotes)), [str(quote) for quote in quotes])
        panel.set_yticks(range(len(quotes)), [str(quote) for quote in quotes])
        panel.set_title(title, loc="left")
        panel.set_xlabel("% of quotes that fail")
        panel.set_ylabel("% local stock")
    return picture


def _targets(figures: Figures) -> Figure | None:
    """Draw measured and expected values, one row for each cell. Without figures, return None."""
    cells = [cell for cell in table_cells() if select(figures.rows, cell.sweep, cell.label, R_CEP)]
    if not cells:
        return None
    picture = Figure(figsize=(10.5, 5.4), layout="constrained")
    picture.suptitle(
        "Measured (filled) and wanted (ring), % against R-CEP", fontsize=12, fontweight="bold", x=0.01, ha="left"
    )
    names = [f"{cell.sweep}  {cell.label}" for cell in cells]
    for place, (column, title) in enumerate((("peak", "Peak held instances"), ("scan_probes", "Scan probes"))):
        panel = picture.add_subplot(1, 2, place + 1)
        for mode in _MODES:
            heights = np.arange(len(cells)) + {"query": -0.24, "state": 0.0, "exact": 0.24}[mode]
            found = [_remaining(figures.rows, one.sweep, one.label, mode, column) - 100 for one in cells]
            figure_of = [one.wanted[mode] for one in cells]
            wanted = [one.memory if column == "peak" else one.probes for one in figure_of]
            panel.scatter(wanted, heights, s=46, facecolors="none", edgecolors=_COLOURS[mode], linewidths=1.2)
            panel.scatter(found, heights, s=14, color=_COLOURS[mode], label=_name(mode))
        panel.set_yticks(range(len(cells)), names if place == 0 else [""] * len(cells))
        panel.invert_yaxis()
        panel.set_xlim(-90, 3)
        panel.set_title(title, loc="left")
    picture.legend(*picture.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return picture


def _bytes(figures: Figures) -> Figure | None:
    cells = [cell_of(sweep, (90,)) for sweep in ("Q1 early", "Q1 late", "Q2", "Q2 late")] + [cell_of("Q3", (90, 90))]
    columns = {"engine_peak": "held instances", "pattern_bytes": "bytes of patterns", "state_bytes": "bytes of state"}
    columns |= {"checkpoint_bytes": "bytes of a checkpoint"}
    if not any(row.state_bytes for row in figures.rows):
        return None
    picture = Figure(figsize=(10.5, 3.6), layout="constrained")
    picture.suptitle("What the matcher holds at 90 %, % of R-CEP's", fontsize=12, fontweight="bold", x=0.01, ha="left")
    for place, mode in enumerate(("query", "state")):
        panel = picture.add_subplot(1, 2, place + 1)
        for bar, (column, label) in enumerate(columns.items()):
            heights = [_remaining(figures.rows, cell.sweep, cell.label, mode, column) for cell in cells]
            places = np.arange(len(cells)) + 0.2 * (bar - 1.5)
            panel.bar(places, heights, width=0.19, label=label, color=("#123f66", "#1f6fb4", "#6aa5d6", "#b8d4ec")[bar])
        panel.set_xticks(range(len(cells)), [cell.sweep for cell in cells])
        panel.set_ylim(0, 105)
        panel.axhline(100, color=_COLOURS[R_CEP], linewidth=1)
        panel.grid(visible=False, axis="x")
        panel.set_title(_name(mode), loc="left")
    picture.legend(*picture.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return picture
