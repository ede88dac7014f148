"""Runs the whole service: its own Redis if no other is set, the API, the pipeline, the deliverer, and backtests.

The supervisor restarts a process that dies, including the private Redis server. The pauses between restarts grow while
the process keeps dying or cannot be started. Processes do not talk to each other. They share state through Redis only,
so that each may be killed at any moment.

Python processes are forked from a process that has already done their imports (the fork server of ``multiprocessing``),
because the imports take seconds, and forked processes share memory.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event
from typing import IO

import structlog

from service.embedded import EmbeddedServer
from service.errors import DataFolderUnusable, EmbeddedServerFailed, NoServerBinary
from service.processes.data_folder import take_folder
from service.processes.forking import run_child
from service.settings import PREFIX, Settings

CHILDREN: Mapping[str, str] = {
    "api": "api.__main__",
    "pipeline": "service.processes.pipeline_process",
    "deliverer": "service.delivery.deliverer",
    "backtests": "service.backtests.__main__",
}
"""The module of each process, whose ``main`` returns the exit status."""

CONSOLE: Mapping[str, str] = {"console": "service.processes.console_process"}
"""The process of the web console, which is the user interface of the service."""

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
_STEADY_S = 30.0
_SERVER_CHECK_S = 1.0
_SERVER = "redis"
_ROTATED_EVERY_S = 10.0
_FORMER_LOGS = 2

log = structlog.get_logger(__name__)


_FULL_BYTES = 1_000_000  # with less free space, the disk counts as full


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The end of a process, or its failed start. ``reason`` explains a failed start.

    ``status`` is the exit status, or None if unknown. ``pause_s`` is the pause before the next start.
    """

    name: str
    pause_s: float
    log_file: Path
    status: int | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """A message that a process has ended and when it starts again, with the last line of its log."""
        status = "" if self.status is None else f" (status {self.status})"
        end = f"cannot be started ({self.reason})" if self.reason else f"ended{status}"
        return f"{self.name} {end}, it starts again in {self.pause_s:g} s; {self._full_disk}{self._last_line}"

    @property
    def _last_line(self) -> str:
        try:
            lines = [line for line in self.log_file.read_text(errors="replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        return f"{self.log_file} ends with: {lines[-1][:300] if lines else 'nothing was logged'}"

    @property
    def _full_disk(self) -> str:
        try:
            free = shutil.disk_usage(self.log_file.parent).free
        except OSError:
            return ""
        return f"the disk is full ({free:,} bytes are free); " if free < _FULL_BYTES else ""


def _log_death(death: Death) -> None:
    log.warning(
        "process-ended",
        name=death.name,
        status=death.status,
        reason=death.reason or None,
        again_in_s=death.pause_s,
        log=str(death.log_file),
    )


@dataclass(slots=True)
class _Child:
    module: str
    log_file: Path
    process: ForkServerProcess | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    pause_s: float = _FIRST_PAUSE_S
    starts: int = 0
    is_up: bool = True

    def failed(self, name: str, now: float, *, status: int | None = None, reason: str = "") -> Death:
        was_steady = not reason and now - self.started_at > _STEADY_S
        self.pause_s = _FIRST_PAUSE_S if was_steady else min(2 * self.pause_s, _LONGEST_PAUSE_S)
        self.due_at = now + self.pause_s
        self.process = None
        return Death(name=name, pause_s=self.pause_s, log_file=self.log_file, status=status, reason=reason)


@dataclass(slots=True)
class Supervisor:
    """Starts, watches and stops processes. ``children`` has the module of each process by name.

    All processes inherit the environment of this process, with ``overrides`` such as ``FORESTALL_API_PORT``. ``now`` is
    a monotonic clock in seconds.
    """

    settings: Settings
    overrides: Mapping[str, str] = field(default_factory=dict)
    children: Mapping[str, str] = field(default_factory=lambda: dict(CHILDREN))
    now: Callable[[], float] = time.monotonic
    on_death: Callable[[Death], None] = _log_death
    _running: dict[str, _Child] = field(default_factory=dict)
    _server: EmbeddedServer | None = None
    _server_child: _Child | None = None
    _rotates_at: float = 0.0
    _redis_url: str = ""
    _lock: IO[str] | None = None

    @property
    def log_folder(self) -> Path:
        return self.settings.data_dir / "logs"

    @property
    def redis_url(self) -> str:
        """The URL of the Redis server, empty before the start."""
        return self._redis_url

    def pid(self, name: str) -> int | None:
        """Return the process id of a child, or None if it does not run."""
        process = self._running[name].process
        return process.pid if process is not None and process.exitcode is None else None

    def starts(self, name: str) -> int:
        """Return the number of times that a child process was started."""
        return self._running[name].starts

    def start(self) -> None:
        """Start all processes without waiting until they are ready. Raises ``DataFolderUnusable``."""
        self._lock = take_folder(self.settings.data_dir, f"name another folder with {PREFIX}DATA_DIR")
        try:
            self.log_folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataFolderUnusable(f"{self.log_folder} cannot be made: {error.strerror or error}") from error
        if self.settings.redis_url is None:
            reserved = (self.settings.api_port, self.settings.console_port)
            self._server = EmbeddedServer(self.settings.data_dir, reserved=reserved)
            self._redis_url = self._server.start()
            self._server_child = _Child("", self._server.log_file, started_at=self.now())
        else:
            self._redis_url = self.settings.redis_url.get_secret_value()
        self._running = {
            name: _Child(module, self.log_folder / f"{name}.log") for name, module in self.children.items()
        }
        self.tend()

    def tend(self) -> None:
        """Start each process that is not running and whose pause is over. Call this often."""
        now = self.now()
        if self._server is not None and self._server_child is not None and now >= self._server_child.due_at:
            self._tend_server(self._server, self._server_child, now)
        for name, child in self._running.items():
            if child.process is not None and (status := child.process.exitcode) is not None:
                self.on_death(child.failed(name, now, status=status))
            if child.process is None and now >= child.due_at:
                self._launch(name, child, now)
        self._rotate(now)

    def _rotate(self, now: float) -> None:
        if now < self._rotates_at:
            return
        self._rotates_at = now + _ROTATED_EVERY_S
        children = [*self._running.values(), *([] if self._server_child is None else [self._server_child])]
        for child in children:
            rotate(child.log_file, self.settings.log_file_bytes)

    def _tend_server(self, server: EmbeddedServer, child: _Child, now: float) -> None:
        try:
            if child.is_up and server.running_url() is None:
                child.is_up = False
                self.on_death(child.failed(_SERVER, now, status=server.exit_status))
                return
            if not child.is_up:
                self._redis_url = server.start()
                child.is_up, child.started_at = True, now
            child.due_at = now + _SERVER_CHECK_S
        except (EmbeddedServerFailed, NoServerBinary) as error:
            child.is_up = False
            self.on_death(child.failed(_SERVER, now, reason=error.message))

    def run(self, stop: Event, *, each_round: Callable[[], None] = lambda: None, interval_s: float = 0.2) -> None:
        """Start and watch the processes until ``stop`` is set, then stop all of them."""
        try:
            while not stop.wait(interval_s):
                self.tend()
                each_round()
        finally:
            self.stop()

    def stop(self) -> None:
        """Terminate all processes, kill those that still run after ``stop_timeout_s``, and stop Redis last."""
        processes = {name: child.process for name, child in self._running.items() if child.process is not None}
        for process in processes.values():
            if process.exitcode is None:
                process.terminate()
        deadline = time.monotonic() + self.settings.stop_timeout_s
        for name, process in processes.items():
            process.join(timeout=max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                log.warning("process-killed", name=name, after_s=self.settings.stop_timeout_s)
                process.kill()
                process.join()
        self._running = {}
        if self._server is not None:
            self._server.stop(even_found=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _launch(self, name: str, child: _Child, now: float) -> None:
        # house: allow environment: the children inherit this process's environment
        environment = {**os.environ, **self.overrides}
        environment[f"{PREFIX}REDIS_URL"] = self._redis_url
        environment[f"{PREFIX}PARENT_PID"] = str(os.getpid())
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(self.children.values()))
        process = context.Process(target=run_child, args=(child.module, child.log_file, environment), name=name)
        try:
            child.log_file.open("ab").close()
            process.start()
        except (OSError, EOFError) as error:  # ``EOFError``: the fork server has ended
            self.on_death(child.failed(name, now, reason=str(getattr(error, "strerror", None) or error)))
            return
        child.process = process
        child.started_at = now
        child.starts += 1


def rotate(log_file: Path, most_bytes: int) -> bool:
    """Rotate a log file that is too large. Two former files are kept, ``NAME.log.1`` and ``NAME.log.2``.

    The writing process keeps the file open for appending. So the file is copied and then truncated, and lines written
    between these two steps are lost. If the copy fails, for example because the disk is full, the file is truncated
    without a copy. Returns whether the file was truncated.
    """
    with suppress(OSError):
        if log_file.stat().st_size <= most_bytes:
            return False
        former = [log_file.with_name(f"{log_file.name}.{number}") for number in range(1, _FORMER_LOGS + 1)]
        with suppress(OSError):
            for older, newer in zip(reversed(former), reversed(former[:-1]), strict=False):
                if newer.exists():
                    newer.replace(older)
            shutil.copyfile(log_file, former[0])
        os.truncate(log_file, 0)
        return True
    return False
