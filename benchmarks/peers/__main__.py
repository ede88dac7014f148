"""``scripts/bench peers``: set up, run, compare, and report. The command exits with 1 if answers disagree."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.peers.axes import AXES, SCALING, SYSTEMS_TOLD, Axis
from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.environments import FOLDER, HERE, PEERS, Unavailable
from benchmarks.peers.launching import Bench
from benchmarks.peers.planning import plan
from benchmarks.peers.report import allowances, write_report
from benchmarks.peers.results import Judgement, Record, judge, keep, kept_in
from benchmarks.peers.running import Run, Runner
from benchmarks.peers.systems import SYSTEMS, System
from benchmarks.peers.workloads import Absent

BUDGET_S = 900


def main() -> None:
    """Run the cases and engines that the command line selects."""
    options = _options()
    folder, told = Path(options.out).resolve(), Console(stderr=True)
    cases, axes = (SCALING, AXES) if options.scaling else (CASES, ())
    kept = folder / f"{'quick-' * options.quick}{'scaling' if axes else 'runs'}.jsonl"
    if options.fresh:
        kept.unlink(missing_ok=True)
    systems = [system for system in chosen(options.only) if not axes or system.name in SYSTEMS_TOLD]
    bench = Bench(cases, FOLDER, "scaling" if axes else "bench")
    if options.set_up:
        for peer, reason in unavailable(PEERS, bench).items():
            told.print(f"{peer} is not available: {reason}")
        return
    before = {record.run: record for record in kept_in(kept) if record.status == "done"}
    runs = plan(cases, systems, is_quick=options.quick, events=options.events, names=options.case)
    todo = [run for run in runs if run.empty.run not in before]
    told.print(f"{len(runs)} runs, {len(runs) - len(todo)} of them kept from before in {kept}")
    try:
        carry_out(todo, bench, Runner(bench, folder, pins=not options.no_pin), kept, options.budget)
    except KeyboardInterrupt:
        told.print("interrupted; what was finished is kept, and the same command goes on from there")
    asked = {run.empty.run for run in runs}
    judgement = finish_up([record for record in kept_in(kept) if record.run in asked], folder, cases, axes)
    if judgement.disagreements:
        sys.exit(1)


def chosen(names: str | None) -> list[System]:
    """Return the selected engines and Forestall, with which all are compared."""
    if names is None:
        return list(SYSTEMS)
    asked = {name.strip() for name in names.split(",")}
    known = {word for system in SYSTEMS for word in (system.name, system.peer or "forestall")}
    if strangers := asked - known:
        raise SystemExit(f"--only: {', '.join(sorted(strangers))}: write some of {', '.join(sorted(known))}")
    return [one for one in SYSTEMS if one.name == "library" or asked & {one.name, one.peer or "forestall"}]


def carry_out(todo: Sequence[Run], bench: Bench, runner: Runner, kept: Path, budget_s: float) -> None:
    """Carry out runs one after the other until the time budget is spent. Every record is saved at once."""
    deadline = time.monotonic() + budget_s
    columns = (TextColumn("{task.description:52}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(todo))
        progress.update(bar, description="setting up")
        reasons = unavailable(dict.fromkeys(run.system.peer for run in todo if run.system.peer), bench)
        for peer, reason in reasons.items():
            progress.console.print(f"{peer} is not available: {reason}")
        for run in todo:
            left = deadline - time.monotonic()
            if left <= 0:
                progress.console.print("the time is over; the same command goes on with what is left")
                break
            progress.update(bar, description=f"{run.case.name}: {run.empty.label}, {run.mode.source}")
            keep(kept, _record(run, runner, reasons, left))
            progress.advance(bar)


def unavailable(peers: Iterable[str], bench: Bench) -> dict[str, str]:
    """Set up the given peers. Return the peers that cannot be set up, with the reasons."""
    reasons: dict[str, str] = {}
    for peer in peers:
        try:
            bench.prepare(peer)
        except Unavailable as reason:
            reasons[peer] = str(reason)
    return reasons


def _record(run: Run, runner: Runner, reasons: dict[str, str], left_s: float) -> Record:
    if run.system.peer in reasons:
        return replace(run.empty, status="unavailable", reason=reasons[run.system.peer])
    try:
        return runner.record(run, left_s)
    except Absent as reason:
        return replace(run.empty, status="unavailable", reason=str(reason))


def finish_up(
    records: Iterable[Record], folder: Path, cases: Sequence[Case] = CASES, axes: Sequence[Axis] = ()
) -> Judgement:
    """Compare the answers, write the report, print the table."""
    found = list(records)
    judgement = judge(found, {case.name: case.expected for case in cases}, allowances(cases))
    text = write_report(found, judgement, cases, folder, axes)
    print(text)
    return judgement


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description="Forestall beside other engines.")
    parser.add_argument("--quick", action="store_true", help="few events: shows that it runs and that answers agree")
    parser.add_argument(
        "--scaling", action="store_true", help="over patterns, keys, windows and steps, in place of cases"
    )
    parser.add_argument("--set-up", action="store_true", help="install the peers and run nothing")
    parser.add_argument("--only", help="peers or engines, with commas between; ours is always there")
    parser.add_argument(
        "--case", action="append", choices=[case.name for case in (*CASES, *SCALING)], help="only this case; repeatable"
    )
    parser.add_argument("--events", type=int, help="at most so many events in each case")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds for all runs, without setting up")
    parser.add_argument("--fresh", action="store_true", help="run again what was finished before")
    parser.add_argument("--no-pin", action="store_true", help="do not hold runs of one thread to one core")
    parser.add_argument("--out", default=str(HERE / "results"), help="folder for events, results and pictures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
