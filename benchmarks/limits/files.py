"""``forestall match`` on a file of JSON lines: the time of each stage, and the wall-clock time of the whole process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.limits.stages import Stage
from benchmarks.matcher_speed import W
from nfa import parse_pattern
from service.runs.stream_run import run_patterns
from streams.readers import read_batch

_ROUNDS = 3
_IMPORTS = "start of the process: imports"
_KERNELS = "the same: pattern, kernels from their cache"
_BYTES = "bytes of the file"
_COLUMNS = "read_batch, without those: JSON to columns"
_FORESTALL = Path(sys.executable).parent / "forestall"


class WholeJob(NamedTuple):
    """The stages of the command, and the seconds of the whole process."""

    stages: list[Stage]
    seconds: float


def command(pattern: Path, events: Path) -> list[str]:
    """Return the command that is measured as a whole."""
    return [str(_FORESTALL), "match", "--pattern", str(pattern), "--events", str(events), "--json"]


def whole_job(events: Path, folder: Path, count: int) -> WholeJob:
    """Measure each stage in this process, and the command in its own process. The fastest of several rounds counts."""
    pattern, one = folder / "w.pattern", folder / "one.jsonl"
    pattern.write_text(W, encoding="utf-8")
    with events.open("rb") as file:
        one.write_bytes(file.readline())
    batch = read_batch(events)
    report = run_patterns([parse_pattern(W)], batch)
    seconds = {
        _IMPORTS: _least(lambda: _run([str(_FORESTALL), "--version"])),
        _KERNELS: _least(lambda: _run(command(pattern, one))),
        _BYTES: _least(events.read_bytes),
        _COLUMNS: _least(lambda: read_batch(events)),
        "run_patterns: columns to what was found": _least(lambda: run_patterns([parse_pattern(W)], batch)),
        "to_json: what was found to text": _least(report.to_json),
    }
    seconds[_KERNELS] -= seconds[_IMPORTS]
    seconds[_COLUMNS] -= seconds[_BYTES]
    whole_s = _least(lambda: _run(command(pattern, events)))
    seconds["else: progress, output, differences between runs"] = whole_s - sum(seconds.values())
    return WholeJob([Stage(name, taken, count) for name, taken in seconds.items()], whole_s)


def _run(parts: list[str]) -> None:
    subprocess.run(parts, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _least(run: Callable[[], object]) -> float:
    """Return the minimum wall-clock seconds of several runs, after a run that does not count."""
    run()
    best = float("inf")
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best
