"""Compiles the kernels for a piece of work in advance, in several processes at once, and reports the progress.

An *exercise* is a function that does a small piece of the work, and thereby calls the kernels that the work needs.
Other processes find it by its name, ``module:function`` or ``module:function:argument``. The list of its kernels is
recorded once, and stored beside the compiled kernels. If all of them are cached, no process is started. The processes
(``streams.compiling.work``) divide the kernels among themselves by locks, so a process may die or be superfluous
without harm.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import IO

LOOKUPS = "streams.compiling.exercises:lookups"
"""The exercise for lookups of keys in reference tables."""

JSON_LINES = "streams.compiling.exercises:json_lines"
"""The exercise for reading JSON lines by columns."""

COMPILING = "compiling kernels"
"""The beginning of ``CompileProgress.text``."""

_POLL_S = 0.1
_REPORT_EVERY_S = 1.0
_MOST_PROCESSES = 4  # three kernels take most of the time; each process needs about 200 MB
_TAIL_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class CompileProgress:
    """The progress of compilation.

    Attributes:
        kept: Number of needed kernels that are in the cache.
        needed: Number of needed kernels. None if not known yet.
    """

    kept: int
    needed: int | None

    @property
    def is_complete(self) -> bool:
        """Whether all needed kernels are cached."""
        return self.kept == self.needed

    @property
    def text(self) -> str:
        """The progress in words, such as ``compiling kernels, 12 of 40``."""
        return COMPILING if self.needed is None else f"{COMPILING}, {self.kept} of {self.needed}"


Report = Callable[[CompileProgress], None]


def compile_kernels(
    exercises: Sequence[str],
    report: Report = lambda _: None,
    *,
    processes: int | None = None,
    stop: Event | None = None,
) -> bool:
    """Compile the kernels that exercises need and that are not cached. Return whether all are cached now.

    An exercise (``module:function``) is a function that calls the kernels of a piece of work. Return True as well if
    ``NUMBA_DISABLE_JIT`` leaves nothing to compile. If a kernel could not be compiled here, the process that calls the
    kernel compiles it. ``report`` is called about once a second during compilation, and at the end. It is not called if
    all kernels are cached already. By default there is one process per core, at most four. ``stop`` terminates the
    compilation once set. Raises ``KeptFolderRefused`` if other users may have written to the folder of kernels.
    """
    if _is_done(exercises):
        return True
    with _started(exercises, processes or min(_cores(), _MOST_PROCESSES)) as running:
        reported_at, progress = 0.0, progress_of(exercises)
        while (
            not progress.is_complete
            and any(process.poll() is None for process in running)
            and not (stop and stop.is_set())
        ):
            if time.monotonic() - reported_at > _REPORT_EVERY_S:
                reported_at = time.monotonic()
                report(progress)
            time.sleep(_POLL_S)
            progress = progress_of(exercises)
    progress = progress_of(exercises)
    report(progress)
    return progress.is_complete


def compile_missing(exercises: Sequence[str]) -> None:
    """Compile the kernels that exercises need and that are not cached, in this process.

    Other processes may do so at the same time.
    """
    if not _is_done(exercises):
        from streams.compiling.work import compile_here  # noqa: PLC0415 - cached kernels are found without it

        compile_here(exercises)


def kernels_folder() -> Path:
    """Return the folder of the compiled kernels of this release for this machine. The folder may be missing."""
    return Path(_keeping().kernels_folder())


def _is_done(exercises: Sequence[str]) -> bool:
    return _keeping().is_compiling_off() or progress_of(exercises).is_complete


def _keeping() -> ModuleType:
    """Import ``streams.kernels.keeping`` on first use, because numba takes half a second to import."""
    return import_module("streams.kernels.keeping")


def progress_of(exercises: Sequence[str]) -> CompileProgress:
    """Return how many kernels exercises need, and how many of these are cached."""
    keeping = _keeping()
    needs = [keeping.kept_needs(exercise) for exercise in exercises]
    names = frozenset[str]().union(*(need for need in needs if need is not None))
    return CompileProgress(len(keeping.kept_of(names)), None if None in needs else len(names))


@contextmanager
def _started(exercises: Sequence[str], count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start processes that compile kernels. When the block ends, they are terminated, and failures are logged."""
    with ExitStack() as ends:
        running: list[subprocess.Popen[bytes]] = []
        outputs = [ends.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        ends.callback(_end, running)
        words = [sys.executable, "-P", "-m", "streams.compiling", str(os.getpid()), *exercises]
        with suppress(OSError):  # without further processes, this one compiles the kernels that it calls
            running.extend(_start(words, file) for file in outputs)
        yield running
        for process, file in zip(running, outputs, strict=False):
            if process.poll():
                _log_failure(process.returncode, file)


def _start(words: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _log_failure(status: int, output: IO[bytes]) -> None:
    output.seek(0)
    text = output.read().decode(errors="replace")[-_TAIL_CHARACTERS:].strip()
    logging.getLogger(__name__).warning(
        "a process that compiles kernels ended with status %s; what it has left is compiled when it is called: %s",
        status,
        text or "it said nothing",
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
