"""Runs of an engine on a case, in a mode and with a number of events. The result is a record."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.peers.cases import Case
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.launching import Bench, Files
from benchmarks.peers.processes import Finished, finish, pin_words
from benchmarks.peers.results import Record
from benchmarks.peers.systems import Mode, System
from benchmarks.peers.workloads import file_of

WARM_SHARE = 5  # one event in WARM_SHARE is used for the warm-up
MOST_WARM = 50_000
ROUNDS = 3  # rounds of a brief command
BRIEF_S = 40.0
LEAST_SHARE = 0.1  # minimum share of a command's time after start-up; with less, the rest is noise
_MARK = "RESULT "


class Failed(Exception):
    """A run has no result. The message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run to carry out."""

    case: Case
    system: System
    mode: Mode
    events: int

    @property
    def empty(self) -> Record:
        """The record of the run before it has started."""
        return Record(
            case=self.case.name,
            system=self.system.name,
            source=self.mode.source,
            threads=self.mode.threads,
            variant=self.mode.variant,
            events=self.events,
        )


class Runner:
    """Carries out runs one after the other.

    Args:
        bench: The engines that are set up.
        folder: The folder for events and the files of runs.
        pins: Whether runs with one thread are pinned to one core.
    """

    def __init__(self, bench: Bench, folder: Path, *, pins: bool) -> None:
        self._bench, self._folder, self._pins = bench, folder, pins

    def record(self, run: Run, limit_s: float) -> Record:
        """Carry out a run and return its record. The record of a failed run has the reason.

        Raises:
            Absent: The workload is not available.
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
        """Run a driver, which warms up and measures in one process."""
        warm = self._file(run, min(MOST_WARM, run.events // WARM_SHARE))
        files = Files(events=self._file(run, run.events), warm=warm, folder=self._fresh())
        done = finish(self._bench.launch(run.system, run.case, run.mode, files), before, files.folder, limit_s)
        told = told_by(done, limit_s)
        return replace(
            empty,
            start_up_s=(start_up := told["ready_at"] - done.began_at),
            warm_up_s=told["warm_up_s"],
            seconds=told["seconds"],
            cpu_s=told.get("cpu_s", 0.0),
            whole_s=start_up + told["seconds"],
            matches=told["matches"],
            digest=told["digest"],
            peak_bytes=done.peak_bytes,
        )

    def _command(self, run: Run, empty: Record, before: Sequence[str], limit_s: float) -> Record:
        """Run a command, and return its record.

        A first run, for some events, warms up caches. A run for all events measures memory. Then the command is run for
        one event, which measures its start, and for all events. Brief commands repeat both in turn, and the medians
        count.
        """
        deadline = time.monotonic() + limit_s
        warm_up = self._timed(run, min(MOST_WARM, run.events // WARM_SHARE), before, deadline).seconds
        peak_bytes = self._timed(run, run.events, before, deadline, is_watched=True).peak_bytes
        starts: list[float] = []
        wholes: list[float] = []
        while len(wholes) < ROUNDS and sum(starts + wholes) < BRIEF_S:
            starts.append(self._timed(run, 1, before, deadline).seconds)
            wholes.append(self._timed(run, run.events, before, deadline).seconds)
        start_up, whole = median(starts), median(wholes)
        answer = self._bench.launch(run.system, run.case, run.mode, self._files(run, run.events)).answer
        assert answer is not None
        matches, digest = digest_of(_answer(answer))
        return replace(
            empty,
            start_up_s=start_up,
            warm_up_s=warm_up,
            seconds=whole - start_up if whole - start_up > LEAST_SHARE * whole else 0.0,
            whole_s=whole,
            matches=matches,
            digest=digest,
            peak_bytes=peak_bytes,
        )

    def _timed(
        self, run: Run, events: int, before: Sequence[str], deadline: float, *, is_watched: bool = False
    ) -> Finished:
        """Run a command from its start to its end.

        Raises:
            Failed: The command failed or exceeded its time.
        """
        self._fresh()
        files = self._files(run, events)
        launch = self._bench.launch(run.system, run.case, run.mode, files)
        limit_s = max(deadline - time.monotonic(), 1.0)
        done = finish(launch, before, files.folder, limit_s, is_watched=is_watched)
        if done.status != 0:
            raise Failed(_trouble(done, limit_s))
        return done

    def _files(self, run: Run, events: int) -> Files:
        return Files(events=self._file(run, events), warm=None, folder=self._folder / "run")

    def _fresh(self) -> Path:
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def told_by(done: Finished, limit_s: float) -> dict[str, Any]:
    """Return the result that a driver has printed.

    Raises:
        Failed: There is no result.
    """
    lines = [line for line in done.output.splitlines() if line.startswith(_MARK)]
    if done.status != 0 or not lines:
        raise Failed(_trouble(done, limit_s))
    return dict(json.loads(lines[-1].removeprefix(_MARK)))


def _trouble(done: Finished, limit_s: float) -> str:
    return f"not done within {limit_s:.0f} s" if done.status is None else done.last_words


def _answer(path: Path) -> Iterator[tuple[int, list[int]]]:
    """Yield the matches of ``forestall match`` (a file) or of a backtest (a folder)."""
    if path.is_dir():
        rows = (orjson.loads(line) for part in sorted(path.glob("alert-*.jsonl")) for line in part.open("rb"))
    else:
        rows = iter(orjson.loads(path.read_bytes())["matches"])
    for row in rows:
        yield int(row["pattern"][1:]), sorted(int(one[1:]) for ids in row["bindings"].values() for one in ids)
