"""The pipeline's reports about itself: its heartbeat, or its current task while it has no heartbeat.

Spark may wait forever for its Java and Python processes. Therefore a phase of the start may have a time limit. If the
phase makes no progress for this time, the whole process ends, and the supervisor restarts it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from service.errors import StoreUnavailable
from service.process import FAILED
from service.stores import Heartbeat
from streams.compiling import CompileProgress

_REPORTED_EVERY_S = 1.0
_LONG_S = 3.0  # after this time without a heartbeat, the current task is reported
STUCK_S = 600.0
"""The limit of a phase that normally takes seconds, or minutes on a heavily overloaded machine."""


@dataclass(slots=True)
class StartReport:
    """Reports the pipeline's current task while it starts, and while a micro-batch takes long.

    ``life`` is called regularly while the pipeline starts, and with each heartbeat.
    """

    heartbeat: Heartbeat
    life: Callable[[], None] = lambda: None
    end: Callable[[int], object] = os._exit  # immediately, because the main thread may be in a call that never returns
    _phase: str = "starting"
    _limit_s: float | None = None
    _progress: float = 0.0  # time when the phase began or the last kernel was compiled
    _compiling: CompileProgress | None = None
    _beaten: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, phase: str, limit_s: float | None = None) -> None:
        """Report that a new phase of the start begins, such as "starting Spark".

        The process ends after ``limit_s`` without progress.
        """
        with self._lock:
            self._phase, self._limit_s, self._progress = phase, limit_s, time.monotonic()
            self._say()

    def compiling(self, progress: CompileProgress) -> None:
        """Report how many kernels are compiled. Until all are compiled, this report replaces the phase."""
        with self._lock:
            self._compiling = None if progress.is_complete else progress
            self._progress = time.monotonic()
            self._say()

    def beat(self, now_us: int) -> None:
        """Store the heartbeat. It means that the query runs and that no micro-batch is in progress."""
        self.heartbeat.beat(now_us)
        self.life()
        with self._lock:
            is_first, self._beaten = self._beaten is None, time.monotonic()
        if is_first:
            self.heartbeat.recovered()

    def repeat(self, over: threading.Event) -> None:
        """Repeat the report about once a second until ``over`` is set."""
        while not over.wait(_REPORTED_EVERY_S):
            with self._lock:
                self._say()
                self._end_if_stuck()

    def _say(self) -> None:
        doing = self._phase if self._compiling is None else self._compiling.text
        if self._beaten is None:
            self.life()
        else:
            silent_s = time.monotonic() - self._beaten
            if silent_s < _LONG_S:
                return
            doing = f"the events that wait have been matched for {silent_s:.0f} s"
        with suppress(StoreUnavailable):  # the next report replaces a lost one
            self.heartbeat.busy(doing)

    def _end_if_stuck(self) -> None:
        if self._limit_s is None or time.monotonic() < self._progress + self._limit_s:
            return
        reason = f"{self._phase} has taken more than {self._limit_s:.0f} s"
        structlog.get_logger(__name__).error("process-stuck", phase=self._phase, limit_s=self._limit_s)
        with suppress(StoreUnavailable):
            self.heartbeat.failed(reason)
        self.end(FAILED)
