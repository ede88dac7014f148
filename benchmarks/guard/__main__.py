"""Check whether this version is slower than the newest release, by counts and ratios instead of seconds.

Without options, the command measures for about a minute, and compares with the newest line of
``benchmarks/history.jsonl``. It exits with status 1 if a count differs or a ratio has lost a fifth. A ratio that seems
lost is measured again, and counts only if it is lost again. ``--record=VERSION`` measures three times and appends the
medians as the line of a release; use an idle machine for this. ``--repeat=N`` measures N times and shows the spread of
the ratios.

    scripts/bench guard
    scripts/bench guard --record=0.2.0
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.guard.changes import WANTED
from benchmarks.guard.measures import joined, parts
from benchmarks.guard.records import Measured, Record, RecordRefused, append, best, compare, history, spreads, typical

ROOT = Path(__file__).resolve().parents[2]
HISTORY = ROOT / "benchmarks" / "history.jsonl"


def main() -> int:
    """Measure, and compare or record. Return the exit status."""
    wanted = _arguments()
    runs = [_measured() for _ in range(wanted.repeat or (3 if wanted.record else 1))]
    if len(runs) > 1:
        _tell_spreads(runs)
    if wanted.record:
        append(HISTORY, _record(wanted.record, typical(runs)))
        print(f"{wanted.record}: recorded in {HISTORY.relative_to(ROOT)}")
        return 0
    return _compared(best(runs))


def _compared(now: Measured) -> int:
    records = history(HISTORY)
    if not records:
        print("no release is recorded yet: scripts/bench guard --record=VERSION", file=sys.stderr)
        return 1
    before, machine = records[-1], _machine()
    verdict = compare(before, now, machine, WANTED)
    if verdict.lost and not verdict.changed:
        print("  measured once more, as others may have been busy:", "; ".join(verdict.lost), flush=True)
        now = best([now, _measured()])
        verdict = compare(before, now, machine, WANTED)
    for name, ratio in now.ratios.items():
        old = before.measured.ratios.get(name)
        print(f"  {name:58} {ratio.value:9.2f}   {before.version}: {'-' if old is None else f'{old.value:.2f}'}")
    for note in verdict.notes:
        print(f"  note: {note}")
    for line in (*verdict.changed, *verdict.lost):
        print(f"LOST: {line}", file=sys.stderr)
    if verdict.is_good:
        print(f"nothing lost since {before.version}: {len(now.counts)} counts, {len(now.ratios)} ratios")
    return 0 if verdict.is_good else 1


def _measured() -> Measured:
    found = []
    for name, part in parts():
        print(f"  measuring: {name}", flush=True)
        found.append(part())
    return joined(found)


def _tell_spreads(runs: list[Measured]) -> None:
    for name, spread in sorted(spreads(runs).items(), key=lambda one: -one[1]):
        values = ", ".join(f"{run.ratios[name].value:.2f}" for run in runs)
        print(f"  {name:58} {spread:6.1%} apart: {values}")


def _record(version: str, measured: Measured) -> Record:
    now = datetime.now(UTC)
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return Record(
        version=version,
        date=f"{now:%Y-%m-%d}",
        commit=described.stdout.strip() or "unknown",
        machine=_machine(),
        measured=measured,
    )


def _machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cores": str(os.cpu_count()), "memory_gib": f"{memory:.0f}", "python": platform.python_version()}


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="scripts/bench guard", description=__doc__)
    parser.add_argument("--record", default="", metavar="VERSION", help="append a line for this release")
    parser.add_argument(
        "--repeat", type=int, default=0, help="measure so many times; unless said: 3 for a record, else 1"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RecordRefused as refusal:
        sys.exit(f"guard: {refusal}")
