"""Runs of a process with its descendants: duration, peak memory and output."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.launching import Launch

PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A process that has exited.

    Attributes:
        began_at: The start time, in seconds since 1970.
        seconds: The duration.
        status: The exit status. None means that the process was killed at its time limit.
        output: The output.
        peak_bytes: The peak memory of the process and its descendants, if it was watched. Shared pages count once.
    """

    began_at: float
    seconds: float
    status: int | None
    output: str
    peak_bytes: int

    @property
    def last_words(self) -> str:
        """The line of output that most likely explains a failure."""
        if self.status is not None and self.status < 0:
            return f"ended by signal {-self.status}"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        told = [line for line in lines if "Exception" in line or "Error" in line]
        return (told[:1] or lines[-1:] or ["no word"])[0][:200]


def pin_words(threads: int, *, is_wanted: bool) -> tuple[str, ...]:
    """Return the words before a command that pin it to a core.

    If pinning is not wanted or not possible, or with several threads, return none.
    """
    if not is_wanted or threads != 1 or shutil.which("taskset") is None or not hasattr(os, "sched_getaffinity"):
        return ()
    return ("taskset", "-c", str(max(os.sched_getaffinity(0))))


def finish(launch: Launch, before: Sequence[str], folder: Path, limit_s: float, *, is_watched: bool = True) -> Finished:
    """Run a command to its end, or until its time limit.

    Args:
        launch: The command.
        before: The words before the command.
        folder: The working folder.
        limit_s: The time limit.
        is_watched: Whether to sample the memory, which takes time if the command has child processes.
    """
    said = folder / "said.txt"
    output = launch.output or said
    begin, began_at = time.perf_counter(), time.time()
    with output.open("wb") as out, said.open("ab" if launch.output is None else "wb") as errors:
        process = subprocess.Popen(
            [*before, *launch.command],
            stdout=out,
            stderr=errors if launch.output else subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **launch.environment},
            start_new_session=True,
        )
        try:
            peak, is_over = _watch(process, begin + limit_s, PAUSE_S if is_watched else limit_s)
        finally:
            if process.poll() is None:
                _end(process)
    return Finished(
        began_at=began_at,
        seconds=time.perf_counter() - begin,
        status=None if is_over else process.returncode,
        output=said.read_text(encoding="utf-8", errors="replace"),
        peak_bytes=peak,
    )


def _watch(process: subprocess.Popen[bytes], deadline: float, pause_s: float) -> tuple[int, bool]:
    """Return the peak memory until the process exits, and whether it exceeded its time limit."""
    peak = 0
    while True:
        try:
            process.wait(pause_s)
            return peak, False
        except subprocess.TimeoutExpired:
            peak = max(peak, _memory([process.pid, *below(process.pid)]))
        if time.perf_counter() > deadline:
            return peak, True


def _memory(pids: Sequence[int]) -> int:
    """Return the memory of the given processes in bytes.

    For a single process, return its peak so far, which is cheap.
    """
    return sum(map(memory_of, pids)) if len(pids) > 1 else _told_of(pids[0], "status", "VmHWM:")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a running process and all processes of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def below(pid: int) -> list[int]:
    """Return the descendants of a process. If the system does not report them, return none."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text(encoding="ascii").split()]
        except OSError:
            continue
        for child in children:
            found += [child, *below(child)]
    return found


def memory_of(pid: int) -> int:
    """Return the memory of a process in bytes, with its share of shared pages.

    If the system does not report it, return 0.
    """
    return _told_of(pid, "smaps_rollup", "Pss:")


def _told_of(pid: int, file: str, name: str) -> int:
    """Return the bytes that the system reports for a process under ``name``, or 0 if it reports none."""
    try:
        for line in Path(f"/proc/{pid}/{file}").read_text(encoding="ascii").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0
