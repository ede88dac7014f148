"""Distance of Forestall from the machine's limits: memory bandwidth, kernels, matcher, and command, in ns per event.

The input is workload W (``SEQ(T0, T1, T2)`` within 60 s). In memory, figures are thread time, the fastest of 9 rounds
in turn. For each stage of the command, they are wall-clock time, the fastest of 3 rounds with the file in the page
cache. If py-spy may inspect processes, flame graphs of the command and of the matcher follow.
``pipeline_against_empty`` measures the cost of Spark.

Tables and flame graphs are in ``benchmarks/results/limits``, which git ignores. Takes a minute or two.

    scripts/bench limits
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.limits.files import WholeJob, command, whole_job
from benchmarks.limits.flames import NotSampled, flame_graph, own_time
from benchmarks.limits.flames import table as functions
from benchmarks.limits.memory import bandwidth, stages
from benchmarks.limits.stages import table
from benchmarks.lines import write_lines
from benchmarks.matcher_speed import EVENTS, W, matches_in, unguarded, workload_w

RESULTS = Path(__file__).resolve().parents[1] / "results" / "limits"
_SHOWN = 15
_REPEATS = 100  # repetitions of W, so that a sampled process matches for some seconds


def main() -> None:
    """Measure, print, draw."""
    parser = ArgumentParser(prog="scripts/bench limits", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the events")
    parser.add_argument("--busy", action="store_true", help="only match W for some seconds, for whoever samples it")
    wanted = parser.parse_args()
    events = EVENTS // 5 if wanted.quick else EVENTS
    if wanted.busy:
        _keep_busy(events)
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="forestall-limits-") as name:
        folder = Path(name)
        text = "\n".join([_machine(), _in_memory(events), _of_command(events, folder), _flames(folder, wanted.quick)])
    (RESULTS / "tables.md").write_text(text, encoding="utf-8")
    print(f"tables and flame graphs are in {RESULTS}")


def _told(text: str) -> str:
    print(text, flush=True)
    return text


def _machine() -> str:
    speeds = ", ".join(f"{name} {speed / 1e9:.1f} GB/s" for name, speed in bandwidth().items())
    return _told(f"Load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. Memory, one thread: {speeds}.\n")


def _in_memory(events: int) -> str:
    found = stages(events)
    return _told(table("in memory", found, found[-1].seconds, "the last"))


def _of_command(events: int, folder: Path) -> str:
    write_lines(workload_w(events), folder / "w.jsonl")
    job: WholeJob = whole_job(folder / "w.jsonl", folder, events)
    title = f"forestall match --json, {job.seconds:.2f} s in all"
    return _told(table(title, job.stages, job.seconds, "the whole"))


def _flames(folder: Path, is_quick: bool) -> str:
    quick = ["--quick"] if is_quick else []
    ours = command(folder / "w.pattern", folder / "w.jsonl")
    commands = {
        "command": (ours, "match (cli/match.py)"),
        "matcher": (
            [sys.executable, "-m", "benchmarks.limits", "--busy", *quick],
            "matches_in (benchmarks/matcher_speed.py)",
        ),
    }
    parts = []
    try:
        for name, (run, within) in commands.items():
            flame_graph(run, RESULTS / f"{name}.svg")
            spent = own_time(run, folder, within)
            parts.append(f"Sampled in {within}: {spent.total():,} samples\n\n{functions(spent, _SHOWN)}")
    except NotSampled as reason:
        parts.append(f"no flame graph: {reason}\n")
    return _told("\n".join(parts))


def _keep_busy(events: int) -> None:
    batch = workload_w(events)
    for _ in range(_REPEATS):
        matches_in(unguarded(W), batch)


if __name__ == "__main__":
    main()
