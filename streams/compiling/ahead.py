"""Compiles the kernels that some work needs before it begins, in several processes at once, and shows how far it is.

An *exercise* is a function that does a small piece of the work: it stands for the kernels that it calls. Its name,
``module:function`` or ``module:function:argument``, lets other processes find it. What an exercise needs is recorded
once and kept beside the compiled kernels; if everything is there, nothing is started. The processes
(``streams.compiling.work``) share the kernels out by their locks, so one that dies, or is one too many, does no harm.
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
from importlib import import_module
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import IO

from streams.compiling.progress import CompileProgress

JSON_LINES = "streams.compiling.exercises:json_lines"
"""The exercise that stands for reading JSON lines by columns."""

_POLL_S = 0.1
_SHOWN_EVERY_S = 1.0
_MOST_PROCESSES = 4  # three kernels take most of the time; each process takes some 200 MB
_TAIL_CHARACTERS = 2_000


Report = Callable[[CompileProgress], None]


def compile_kernels(
    exercises: Sequence[str],
    report: Report = lambda _: None,
    *,
    processes: int | None = None,
    stop: Event | None = None,
) -> bool:
    """Compile the kernels that exercises need, unless they are kept.

    What could not be compiled here is compiled by the process that calls it, so this fails only where compiled code
    would be refused.

    Args:
        exercises: As ``module:function``.
        report: Called about once a second while kernels are compiled, and at the end; never if all are kept.
        processes: How many compile at once (default: one per core, at most four).
        stop: Ends it early once it is set.

    Returns:
        Whether all kernels are kept now; True where ``NUMBA_DISABLE_JIT`` leaves nothing to compile.

    Raises:
        KeptFolderRefused: Other users may have put something into the folder of kernels.
    """
    if _is_done(exercises):
        return True
    with _started(exercises, processes or min(_cores(), _MOST_PROCESSES)) as running:
        shown_at, found = 0.0, progress_of(exercises)
        while not found.is_complete and any(one.poll() is None for one in running) and not (stop and stop.is_set()):
            if time.monotonic() - shown_at > _SHOWN_EVERY_S:
                shown_at = time.monotonic()
                report(found)
            time.sleep(_POLL_S)
            found = progress_of(exercises)
    found = progress_of(exercises)
    report(found)
    return found.is_complete


def compile_missing(exercises: Sequence[str]) -> None:
    """Compile in this process the kernels that exercises need and that are not kept, beside others that do the same.

    Raises:
        KeptFolderRefused: Other users may have put something into the folder of kernels.
    """
    if not _is_done(exercises):
        from streams.compiling.work import compile_here  # noqa: PLC0415 - what is kept is found without it

        compile_here(exercises)


def kernels_folder() -> Path:
    """Where compiled kernels of this release for this machine are kept, whether the folder exists or not.

    Raises:
        OSError: Nothing says where this user's folders are.
    """
    return Path(_keeping().kernels_folder())


def _is_done(exercises: Sequence[str]) -> bool:
    return _keeping().is_compiling_off() or progress_of(exercises).is_complete


def _keeping() -> ModuleType:
    """Imported when it is needed: numba takes half a second, and many commands compile nothing."""
    return import_module("streams.kernels.keeping")


def progress_of(exercises: Sequence[str]) -> CompileProgress:
    """How many of the kernels that exercises need are kept.

    Raises:
        KeptFolderRefused: Other users may have put something into the folder of kernels.
    """
    keeping = _keeping()
    needs = [keeping.kept_needs(exercise) for exercise in exercises]
    names = frozenset[str]().union(*(need for need in needs if need is not None))
    return CompileProgress(len(keeping.kept_of(names)), None if None in needs else len(names))


@contextmanager
def _started(exercises: Sequence[str], count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that compile; those that run when the block is left are ended, what failed goes to the log."""
    with ExitStack() as ends:
        running: list[subprocess.Popen[bytes]] = []
        said = [ends.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        ends.callback(_end, running)
        words = [sys.executable, "-P", "-m", "streams.compiling", str(os.getpid()), *exercises]
        with suppress(OSError):  # without further processes, this one compiles what it calls
            running.extend(_start(words, file) for file in said)
        yield running
        for process, file in zip(running, said, strict=False):
            if process.poll():
                _log_failure(process.returncode, file)


def _start(words: Sequence[str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _log_failure(status: int, said: IO[bytes]) -> None:
    said.seek(0)
    text = said.read().decode(errors="replace")[-_TAIL_CHARACTERS:].strip()
    logging.getLogger(__name__).warning(
        "a process that compiles kernels ended with status %s; what it has left is compiled when it is called: %s",
        status,
        text or "it said nothing",
    )


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
