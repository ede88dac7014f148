"""Tables of the figures, as the section of ``RESULTS.md`` between two marks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.ccep.experiments import LEAN, SCALE_CELLS, WATCHED
from benchmarks.ccep.figures import Figures, Row, Timing, change, select
from benchmarks.ccep.modes import R_CEP
from benchmarks.ccep.queries import VARIED, Cell, cell_of, table_cells

BEGIN, END = "<!-- ccep: begin, written by scripts/bench ccep -->", "<!-- ccep: end -->"
_PLOTS = {
    "memory.png": "Peak held instances over each sweep",
    "targets.png": "Measured against wanted for each cell",
    "probes.png": "Probes over each sweep",
    "time.png": "Time over each sweep",
    "q3.png": "Q3's grid",
    "bytes.png": "Bytes at 90 %",
}


def write_report(figures: Figures, path: Path) -> None:
    """Replace the section in a file, or append it if the file has none."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Measurements\n"
    section = f"{BEGIN}\n{section_of(figures, path)}\n{END}"
    marked = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not marked.search(text):
        text = f"{text.rstrip()}\n\n{section}\n"
    text = marked.sub(lambda _: section, text)
    path.write_text(text, encoding="utf-8")


def section_of(figures: Figures, path: Path) -> str:
    """Return the section as Markdown. Plots are linked if they are in a folder beside ``path``."""
    makers: tuple[Callable[[Figures], str], ...] = (_cells, _bytes, _scale, _times, _work, _monitor, _early)
    parts = [_opening(figures), *(made for maker in makers if (made := maker(figures)))]
    folders = [folder for folder in ("ccep/plots", "plots") if (path.parent / folder).is_dir()]
    if folders:
        found = [name for name in _PLOTS if (path.parent / folders[0] / name).exists()]
        parts.append("\n".join(f"![{_PLOTS[name]}]({folders[0]}/{name})" for name in found))
    return "\n".join(map(_wrapped, "\n\n".join(part for part in parts if part).split("\n")))


def _wrapped(line: str) -> str:
    """Wrap a line of prose. Tables, headings, links and code are not wrapped."""
    is_prose = bool(line) and (line[0].isalpha() or line.startswith(("`query`", "**")))
    return textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False) if is_prose else line


def _opening(figures: Figures) -> str:
    setting = figures.setting
    small = "**Small streams (`--quick`): this shows that it runs and measures nothing.**\n\n"
    return (
        "## Constraint-aware CEP\n\n<!-- not run: a benchmark, takes most of an hour -->\n```bash\nscripts/bench "
        f"ccep\n```\n\n{small if setting.get('size') == 'quick' else ''}The experiments of constraint-aware CEP, "
        "section 8: 400,000 events of 20,000 orders, 1,000 at a time. Peaks are taken after an event is fully "
        "processed, once as many orders have finished as are open at a time. R-CEP is the same matcher without "
        "constraints; `query` prunes whole alternatives by the four constraints that the text names; `state` "
        "prunes each state by the 533 constraints that follow from the workflow; `exact` knows the workflow's "
        "automaton with its loop unrolled, `free` with the loop left open. A replay of occupied pattern states that "
        "shares no code with the matcher gives probes, and the same held instances as the matcher at every moment "
        f"that was compared. Kernels {setting.get('kernels', '?')}, Python {setting.get('python', '?')}."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{round(value):+d}" if round(value) else "0"


def _cells(figures: Figures) -> str:
    """Return a table of all cells with expected and measured figures: memory / scan probes."""
    modes = ("query", "state", "exact")
    rows = []
    for cell in table_cells():
        base = select(figures.rows, cell.sweep, cell.label, R_CEP)
        if not base:
            continue
        shown = [cell.sweep, cell.label, f"{cell.peak:,}", f"{mean(row.peak for row in base):,.0f}"]
        for mode in modes:
            own, figure = select(figures.rows, cell.sweep, cell.label, mode), cell.wanted[mode]
            shown.append(f"{_percent(figure.memory)} / {_percent(figure.probes)}")
            shown.append(f"{_percent(change(base, own, 'peak'))} / {_percent(change(base, own, 'scan_probes'))}")
        typed = change(base, select(figures.rows, cell.sweep, cell.label, "state"), "typed_probes")
        rows.append([*shown, _percent(typed)])
    if not rows:
        return ""
    head = ["", "%", "R-CEP wanted", "R-CEP"]
    head += [text for mode in modes for text in (f"{mode} wanted", mode)]
    varied = "; ".join(f"{sweep}: {text}" for sweep, text in VARIED.items())
    return (
        "### Memory and probes\n\nHeld instances / scan probes, % against R-CEP, means of the seeds; last, typed "
        f"probes of `state`. What varies: {varied}.\n\n"
        + _table([*head, "typed"], rows)
        + f"\n\nLargest distance to a wanted figure: {_largest_distance(figures):.1f} points."
    )


def _largest_distance(figures: Figures) -> float:
    """Return the largest difference of measured and expected figures, over all cells, modes and both columns.

    The difference is in percentage points.
    """
    found = [0.0]
    for cell in table_cells():
        base = select(figures.rows, cell.sweep, cell.label, R_CEP)
        for mode, figure in cell.wanted.items():
            own = select(figures.rows, cell.sweep, cell.label, mode)
            for column, wanted in (("peak", figure.memory), ("scan_probes", figure.probes)):
                changed = change(base, own, column)
                if changed is not None:
                    found.append(abs(changed - wanted))
    return max(found)


def _smaller(base: Sequence[Row], own: Sequence[Row], column: str) -> str:
    pairs = [(getattr(one, column), getattr(other, column)) for one, other in zip(base, own, strict=False)]
    known = [(one, other) for one, other in pairs if one and other]
    return f"{mean(one / other for one, other in known):.2f}" if known else "-"


def _bytes(figures: Figures) -> str:
    rows = []
    ratios = [("Q1 early", (90,)), ("Q1 late", (90,)), ("Q2", (90,)), ("Q2 late", (90,)), ("Q3", (90, 90))]
    for cell in (cell_of(sweep, ratio) for sweep, ratio in ratios):
        base = [row for row in select(figures.rows, cell.sweep, cell.label, R_CEP) if row.state_bytes]
        for mode in ("query", "state", "exact"):
            own = [row for row in select(figures.rows, cell.sweep, cell.label, mode) if row.state_bytes]
            if base and own:
                columns = ("engine_peak", "pattern_bytes", "state_bytes", "checkpoint_bytes")
                shown = [f"{mean(getattr(row, column) or 0 for row in base):,.0f}" for column in columns[1:]]
                factors = [_smaller(base, own, column) for column in columns]
                rows.append([f"{cell.sweep} {cell.label}", mode, *shown, *factors])
    if not rows:
        return ""
    head = ["", "", "R-CEP: bytes of patterns", "of state", "of a checkpoint"]
    head += ["held, times smaller", "bytes of patterns", "of state", "of a checkpoint"]
    return (
        "### Bytes at 90 %\n\nBytes of state are the matcher's own count; bytes of patterns leave out the 16 that "
        "each open trace takes in any mode. A checkpoint is `len(matcher.dump())`, with the ids of bound events. "
        "Wanted for Q1 and "
        "Q2 at 90 %: 3.5 times smaller.\n\n" + _table(head, rows)
    )


def _scale(figures: Figures) -> str:
    rows = []
    for (sweep, ratio), wanted in SCALE_CELLS.items():
        cell = cell_of(sweep, ratio)
        base = select(figures.scale, sweep, cell.label, R_CEP)
        if base:
            own = {mode: select(figures.scale, sweep, cell.label, mode) for mode in ("query", "state")}
            changes = [_percent(change(base, own[mode], "peak")) for mode in ("query", "state")]
            probes = [_percent(change(base, own[mode], "scan_probes")) for mode in ("query", "state")]
            line = [
                f"{sweep} {cell.label}",
                f"{base[0].events:,}",
                f"{base[0].peak:,}",
                _percent(wanted),
                *changes,
                *probes,
            ]
            rows.append(line)
    if not rows:
        return ""
    head = ["", "events", "R-CEP", "query wanted", "query", "state", "query, probes", "state, probes"]
    return "### The long stream\n\n200,000 orders, 10,000 at a time: peak held instances.\n\n" + _table(head, rows)


def _timing(figures: Figures, cell: Cell, mode: str) -> Timing | None:
    found = [one for one in figures.timings if (one.sweep, one.ratio, one.mode) == (cell.sweep, cell.label, mode)]
    return found[0] if found else None


def _times(figures: Figures) -> str:
    rows = []
    for cell in table_cells():
        base = _timing(figures, cell, R_CEP)
        if base is None:
            continue
        line = [f"{cell.sweep} {cell.label}", f"{base.nanoseconds:.0f}", _cycles(figures, base)]
        for mode in ("query", "state", "exact", WATCHED, LEAN):
            own = _timing(figures, cell, mode)
            line.append("-" if own is None else _percent(100 * (own.ratio_to_first - 1)))
        rows.append(line)
    if not rows:
        return ""
    rounds = max(one.rounds for one in figures.timings)
    return (
        "### Time\n\nThread time of the whole matcher, columns in memory, batches of 65,536 rows, from the point on "
        "where peaks count; dispatch by "
        f"type (each event meets only the steps of its type); % against R-CEP, medians of {rounds} paired rounds "
        "in one process. `watched` follows the extracted constraints and prunes nothing: the price of the "
        "monitor. R-CEP here knows every open trace, as it must where a guard may come; `untracked` is R-CEP told "
        f"that none will come, which need not look up traces that hold nothing. {_overhead(figures)}\n\n"
        + _table(["", "R-CEP, ns an event", "cycles", "query", "state", "exact", WATCHED, "untracked"], rows)
    )


def _cycles(figures: Figures, timing: Timing) -> str:
    """Return the clock cycles per event, if the clock is known."""
    clock = figures.setting.get("megahertz", "")
    return f"{timing.nanoseconds * float(clock) / 1_000:.0f}" if clock else "-"


def _overhead(figures: Figures) -> str:
    """Return the lines about the overhead in workloads where nothing can be pruned."""
    shown = []
    for sweep, ratio in (("Q1 early", (0,)), ("Q1 late", (0,)), ("Q3", (0, 0))):
        own = _timing(figures, cell_of(sweep, ratio), "query")
        if own is not None:
            shown.append(f"{sweep} {100 * (own.ratio_to_first - 1):+.1f} %")
    return f"Where nothing is ever pruned (`query` at 0 %, wanted: at most 3 %): {', '.join(shown)}." if shown else ""


def _work(figures: Figures) -> str:
    """Return a table of extensions of partial matches, which are the work of enumeration."""
    rows = []
    for cell in table_cells():
        base = select(figures.rows, cell.sweep, cell.label, R_CEP)
        if base:
            per_event = mean(row.binds / row.events for row in base)
            changes = [
                change(base, select(figures.rows, cell.sweep, cell.label, mode), "binds") for mode in ("query", "state")
            ]
            rows.append([f"{cell.sweep} {cell.label}", f"{per_event:.3f}", *map(_percent, changes)])
    if not rows:
        return ""
    head = ["", "R-CEP, an event", "query", "state"]
    return "### Work\n\nTimes that a kept state is extended by an event, % against R-CEP.\n\n" + _table(head, rows)


def _monitor(figures: Figures) -> str:
    if not figures.monitor:
        return ""
    return (
        "### The monitor\n\nAll four patterns on one matcher, orders of every ending; 54 sets and 11 rows were "
        "wanted.\n\n" + _table(["", "number"], [[name, f"{count:,}"] for name, count in figures.monitor.items()])
    )


def _early(figures: Figures) -> str:
    if not figures.early:
        return ""
    rows = [
        [
            f"`{one.pattern}`",
            "none" if one.mode == R_CEP else "extracted",
            f"{one.alerts:,}",
            "-" if one.wanted is None else f"{one.wanted:.1f}",
            f"{one.expected:.1f}",
            f"{one.events:.1f}",
        ]
        for one in figures.early
    ]
    head = ["pattern", "constraints", "alerts", "wanted", "by definition", "measured"]
    return "### Early certainty\n\nMean number of events of the trace from a match to its alert.\n\n" + _table(
        head, rows
    )
