"""``scripts/bench ccep``: run the experiments, then write figures, plots and tables."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import numba
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.ccep.experiments import FULL, QUICK, SECTIONS, Task, tasks
from benchmarks.ccep.figures import Figures
from benchmarks.ccep.modes import all_modes
from benchmarks.ccep.plots import draw_all
from benchmarks.ccep.report import write_report
from streams import kernel_digest

HERE = Path(__file__).parent
RESULTS = HERE.parent / "RESULTS.md"


def main() -> None:
    """Run the experiments that the command line selects. Exit with 1 if results that must be equal differ."""
    options = _options()
    folder = Path(options.out) if options.out else HERE
    results = folder / "RESULTS.md" if options.out else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "figures.json"
    figures = Figures.read(kept) if options.keep and kept.exists() else Figures()
    sections = options.section or SECTIONS
    if not options.draw_only:
        figures.disagreements.clear()
        run_all(tasks(QUICK if options.quick else FULL, all_modes(), sections), figures)
        figures.keep_newest()
        figures.setting = _setting(is_quick=options.quick)
        figures.write(kept)
    draw_all(figures, folder / "plots")
    write_report(figures, results)
    print(f"figures, plots and tables are in {folder} and {results}")
    for line in figures.disagreements:
        print(f"DISAGREEMENT {line}")
    if figures.disagreements:
        sys.exit(1)


def run_all(todo: list[Task], figures: Figures) -> None:
    """Run tasks in their order, with a progress bar."""
    columns = (
        TextColumn("{task.description:44}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=sum(task.weight for task in todo))
        for task in todo:
            progress.update(bar, description=task.label)
            task.run(figures)
            progress.advance(bar, task.weight)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench ccep", description="The experiments of constraint-aware CEP.")
    parser.add_argument("--quick", action="store_true", help="small streams: shows that it runs, measures nothing")
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only this part; may be given again")
    parser.add_argument("--keep", action="store_true", help="keep the figures of the parts that are not run")
    parser.add_argument("--draw-only", action="store_true", help="run nothing: plots and tables from kept figures")
    parser.add_argument("--out", help="folder for figures, plots and RESULTS.md instead of this project's own")
    options = parser.parse_args()
    options.keep = options.keep or options.draw_only
    return options


def _setting(*, is_quick: bool) -> dict[str, str]:
    return {
        "size": "quick" if is_quick else "full",
        "python": platform.python_version(),
        "numba": numba.__version__,
        "processors": str(os.cpu_count()),
        "megahertz": _megahertz(),
        "kernels": kernel_digest(),
    }


def _megahertz() -> str:
    """Return the processor's clock in MHz, as Linux reports it. On other systems, return the empty text."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("cpu MHz")), "")


if __name__ == "__main__":
    main()
