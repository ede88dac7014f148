"""One run: an engine, a case, a mode and a number of events; what comes out is a record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.cases import Case
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.launching import Bench, Files
from benchmarks.peers.processes import Finished, finish, pin_words
from benchmarks.peers.results import Record
from benchmarks.peers.systems import Mode, System
from benchmarks.peers.workloads import file_of

WARM_SHARE = 5  # of the events, one in so many warms up
MOST_WARM = 50_000
LEAST_SHARE = 0.2  # of a command's time that is not start-up; with less, what is left is noise
_MARK = "RESULT "


class Failed(Exception):
    """Why a run has no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be run."""

    case: Case
    system: System
    mode: Mode
    events: int

    @property
    def empty(self) -> Record:
        """Its record before it has begun."""
        return Record(
            case=self.case.name,
            system=self.system.name,
            source=self.mode.source,
            threads=self.mode.threads,
            variant=self.mode.variant,
            events=self.events,
        )


class Runner:
    """Runs one after the other.

    Args:
        bench: The engines that are set up.
        folder: For events and what runs write.
        pins: Whether runs of one thread are held to one core.
    """

    def __init__(self, bench: Bench, folder: Path, *, pins: bool) -> None:
        self._bench, self._folder, self._pins = bench, folder, pins

    def record(self, run: Run, limit_s: float) -> Record:
        """Run it; a run that fails has a record with its reason.

        Raises:
            Absent: The workload is not there.
        """
        before = pin_words(run.mode.threads, is_wanted=self._pins)
        wording = run.case.wording(run.system.wording)
        empty = replace(run.empty, version=self._bench.version(run.system), lines=wording.lines, pinned=bool(before))
        measure = self._command if run.system.is_command else self._driver
        try:
            return measure(run, empty, before, limit_s)
        except Failed as failure:
            return replace(empty, status="failed", reason=str(failure))

    def _file(self, run: Run, events: int) -> Path:
        return file_of(run.case.workload, events, self._folder / "events")

    def _driver(self, run: Run, empty: Record, before: Sequence[str], limit_s: float) -> Record:
        """A driver warms up and measures in one process."""
        warm = self._file(run, min(MOST_WARM, run.events // WARM_SHARE))
        files = Files(events=self._file(run, run.events), warm=warm, folder=self._fresh())
        done = finish(self._bench.launch(run.system, run.case, run.mode, files), before, files.folder, limit_s)
        told = told_by(done, limit_s)
        return replace(
            empty,
            start_up_s=(start_up := told["ready_at"] - done.began_at),
            warm_up_s=told["warm_up_s"],
            seconds=told["seconds"],
            whole_s=start_up + told["seconds"],
            matches=told["matches"],
            digest=told["digest"],
            peak_bytes=done.peak_bytes,
        )

    def _command(self, run: Run, empty: Record, before: Sequence[str], limit_s: float) -> Record:
        """A command is run for some events to warm up caches, for one to see its start, and for all."""
        times: list[float] = []
        for events in (min(MOST_WARM, run.events // WARM_SHARE), 1, run.events):
            files = Files(events=self._file(run, events), warm=None, folder=self._fresh())
            launch = self._bench.launch(run.system, run.case, run.mode, files)
            done = finish(launch, before, files.folder, limit_s - sum(times))
            if done.status != 0:
                raise Failed(_trouble(done, limit_s))
            times.append(done.seconds)
        warm_up, start_up, whole = times
        assert launch.answer is not None
        matches, digest = digest_of(_answer(launch.answer))
        return replace(
            empty,
            start_up_s=start_up,
            warm_up_s=warm_up,
            seconds=whole - start_up if whole - start_up > LEAST_SHARE * whole else 0.0,
            whole_s=whole,
            matches=matches,
            digest=digest,
            peak_bytes=done.peak_bytes,
        )

    def _fresh(self) -> Path:
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def told_by(done: Finished, limit_s: float) -> dict[str, Any]:
    """What a driver has told.

    Raises:
        Failed: It has not.
    """
    lines = [line for line in done.output.splitlines() if line.startswith(_MARK)]
    if done.status != 0 or not lines:
        raise Failed(_trouble(done, limit_s))
    return dict(json.loads(lines[-1].removeprefix(_MARK)))


def _trouble(done: Finished, limit_s: float) -> str:
    return f"not done within {limit_s:.0f} s" if done.status is None else done.last_words


def _answer(path: Path) -> Iterator[tuple[int, list[int]]]:
    """Matches of ``forestall match`` (a file) or of a backtest (a folder)."""
    if path.is_dir():
        rows = (orjson.loads(line) for part in sorted(path.glob("alert-*.jsonl")) for line in part.open("rb"))
    else:
        rows = iter(orjson.loads(path.read_bytes())["matches"])
    for row in rows:
        yield int(row["pattern"][1:]), sorted(int(one[1:]) for ids in row["bindings"].values() for one in ids)
