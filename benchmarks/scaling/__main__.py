"""Speed of the library engine with more patterns, open traces, steps, constraints and cores, and longer windows.

The whole ``Matcher`` is measured, from columns in memory to match columns, on one thread, in thread time except for
cores. Every point is a matcher in the middle of a stream. It is warmed up over at least its window. Then points take
turns, each with one stretch of events at a time, and the fastest stretch counts. Tables show the ratio to the first
point of a series. The benchmark takes about two minutes, or half a minute with ``--quick``, which measures fewer
points.

For each plot, a table, its points and a picture are written to ``benchmarks/results/scaling``, which git ignores.

    scripts/bench scaling
    scripts/bench scaling --only=traces
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.scaling.axes import constraints, lengths, patterns, traces, windows
from benchmarks.scaling.cores import cores
from benchmarks.scaling.plots import draw
from benchmarks.scaling.points import Point, keep, table

RESULTS = Path(__file__).resolve().parents[1] / "results" / "scaling"


class Measure(Protocol):
    """A function that measures the points of a plot."""

    def __call__(self, *, is_quick: bool) -> Iterator[Point]: ...


class Plot(NamedTuple):
    """A plot: its title, the unit of its axis, and the function that measures it."""

    title: str
    unit: str
    measure: Measure


PLOTS = {
    "patterns": Plot("Patterns", "patterns", patterns),
    "traces": Plot("Open traces", "open traces", traces),
    "window": Plot("Window: workload W, SEQ of three steps", "seconds of WITHIN", windows),
    "length": Plot("Steps: workload W, WITHIN 60 s", "steps", lengths),
    "constraints": Plot("Constraints: the order workflow", "constraints", constraints),
    "cores": Plot("Cores: workload W, keys divided by shard", "processes", cores),
}


def main() -> None:
    """Measure, print, draw."""
    wanted = _arguments()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    for name in [wanted.only] if wanted.only else list(PLOTS):
        plot, begin = PLOTS[name], time.perf_counter()
        points = list(plot.measure(is_quick=wanted.quick))
        draw(name, plot.title, plot.unit, points, RESULTS)
        keep(RESULTS / f"{name}.jsonl", points)
        text = table(plot.title, plot.unit, points)
        (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{text}\n({time.perf_counter() - begin:.0f} s)\n", flush=True)
    print(f"tables and pictures are in {RESULTS}")


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="scripts/bench scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter points")
    parser.add_argument("--only", choices=list(PLOTS), help="one plot")
    return parser.parse_args()


if __name__ == "__main__":
    main()
