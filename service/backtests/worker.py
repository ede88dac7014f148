"""The backtest worker, which runs queued backtests one at a time, each in its own process.

The worker does not import Spark. When the process of a backtest ends, its memory is released, and the worker stores the
reason if it failed. If the worker is killed, the process of its backtest ends too, and the next worker starts the
backtest again. After a second interruption, the backtest has failed. A lease in Redis ensures that only one worker is
active.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event

import structlog

from service.errors import StoreUnavailable, UnknownBacktest
from service.process import life_sign
from service.runtime import Stores, open_stores
from service.settings import PREFIX, Settings
from service.stores import Backtest
from streams import Clock, SystemClock

MOST_ATTEMPTS = 2

_POLL_S = 0.5
_LEASE_MS = 15_000
_STOP_PATIENCE_S = 10.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Worker:
    """Runs queued backtests, oldest first. The process of a backtest runs ``command`` with the backtest's id."""

    stores: Stores
    clock: Clock
    command: Sequence[str] = (sys.executable, "-P", "-m", "service.backtests.run")
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _holds_lease: bool = False
    _current: str | None = None
    _process: subprocess.Popen[bytes] | None = None

    def run(self, stop: Event, on_round: Callable[[], None] = lambda: None) -> None:
        """Run backtests until ``stop`` is set, then queue a running backtest again. Call ``on_round`` in each round."""
        try:
            while not stop.wait(_POLL_S):
                on_round()
                try:
                    self.step()
                except StoreUnavailable as error:
                    log.warning("backtests-wait", reason=error.message)
        finally:
            self.close()

    def step(self) -> None:
        """Perform one round of ``run``.

        Renew the lease and check the running backtest. If no backtest runs, start the next one. If another worker has
        the lease, stop the running backtest.
        """
        if not self.stores.backtests.lease(self._token, _LEASE_MS):
            self._holds_lease = False
            self._stop_process()
            return
        if not self._holds_lease:
            self._holds_lease = True
            self._take_over()
        if self._current is not None:
            self._watch(self._current)
        if self._current is None:
            self._begin()

    def close(self) -> None:
        """Stop the running backtest, and queue it again for the next worker."""
        current = self._current
        self._stop_process()
        if current is not None:
            try:
                self.stores.backtests.advance(current, ("running",), status="queued", progress=0.0)
            except (StoreUnavailable, UnknownBacktest):
                log.warning("backtest-left", id=current)

    def _take_over(self) -> None:
        for backtest in self.stores.backtests.all():
            if backtest.status != "running":
                continue
            if backtest.attempts < MOST_ATTEMPTS:
                self.stores.backtests.advance(backtest.id, ("running",), status="queued", progress=0.0)
            else:
                self._fail(backtest.id, f"its process was interrupted {backtest.attempts} times")

    def _begin(self) -> None:
        waiting = [backtest for backtest in self.stores.backtests.all() if backtest.status == "queued"]
        for backtest in reversed(waiting):
            if self._start(backtest):
                return

    def _start(self, backtest: Backtest) -> bool:
        fields = {
            "status": "running",
            "progress": 0.0,
            "attempts": backtest.attempts + 1,
            "started_us": self.clock.now_us(),
        }
        if self.stores.backtests.advance(backtest.id, ("queued",), **fields) is None:
            return False
        # house: allow environment: the child process inherits this process's environment
        environment = {**os.environ, f"{PREFIX}REDIS_URL": self.stores.url, f"{PREFIX}PARENT_PID": str(os.getpid())}
        self._process = subprocess.Popen([*self.command, backtest.id], stdin=subprocess.DEVNULL, env=environment)
        self._current = backtest.id
        log.info("backtest-started", id=backtest.id, attempt=backtest.attempts + 1)
        return True

    def _watch(self, current: str) -> None:
        assert self._process is not None, "what is current has a process"
        status = self._process.poll()
        if status is not None:
            self._process = self._current = None
            self._fail(current, _cause(status))  # has no effect if the process has stored its outcome
            return
        try:
            is_wanted = self.stores.backtests.get(current).status == "running"
        except UnknownBacktest:
            is_wanted = False
        if not is_wanted:
            self._stop_process()
            log.info("backtest-cancelled", id=current)

    def _fail(self, backtest_id: str, reason: str) -> None:
        fields = {"status": "failed", "finished_us": self.clock.now_us()}
        error = {"code": "backtest-interrupted", "detail": f"the backtest did not finish: {reason}"}
        try:
            if self.stores.backtests.advance(backtest_id, ("running",), **fields, error=error) is not None:
                log.warning("backtest-failed", id=backtest_id, reason=reason)
        except UnknownBacktest:
            log.info("backtest-removed", id=backtest_id)

    def _stop_process(self) -> None:
        process, self._process, self._current = self._process, None, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cause(status: int) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    return f"its process ended with status {status}"


def work(settings: Settings) -> None:
    """Run a worker until the process receives SIGTERM or SIGINT."""
    stop = Event()
    with open_stores(settings) as stores:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        Worker(stores, SystemClock()).run(stop, life_sign(settings.life_dir, "backtests"))
