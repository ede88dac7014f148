"""The pipeline's reports about itself: its heartbeat, and its current task while it has no heartbeat."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from service.errors import StoreUnavailable
from service.stores import Heartbeat
from streams.compiling import CompileProgress

_REPORTED_EVERY_S = 1.0
_LONG_S = 3.0  # without a heartbeat


@dataclass(slots=True)
class StartReport:
    """Reports what a pipeline is busy with while it starts, and while a micro-batch takes long."""

    heartbeat: Heartbeat
    _phase: str = "starting"
    _compiling: CompileProgress | None = None
    _beaten: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, phase: str) -> None:
        """Report that a phase begins, in words, such as "starting Spark"."""
        with self._lock:
            self._phase = phase
            self._say()

    def compiling(self, progress: CompileProgress) -> None:
        """Report that kernels are being compiled; replaces the phase until they are."""
        with self._lock:
            self._compiling = None if progress.is_complete else progress
            self._say()

    def beat(self, now_us: int) -> None:
        """Store the heartbeat: the query runs, and no micro-batch is in progress."""
        self.heartbeat.beat(now_us)
        with self._lock:
            is_first, self._beaten = self._beaten is None, time.monotonic()
        if is_first:
            self.heartbeat.recovered()

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Repeat the report about once a second while the block runs."""
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(_REPORTED_EVERY_S):
                with self._lock:
                    self._say()

        thread = threading.Thread(target=repeat, name="start-report", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _say(self) -> None:
        doing = self._phase if self._compiling is None else self._compiling.text
        if self._beaten is not None:
            silent_s = time.monotonic() - self._beaten
            if silent_s < _LONG_S:
                return
            doing = f"the events that wait have been matched for {silent_s:.0f} s"
        with suppress(StoreUnavailable):  # a lost report is followed by another
            self.heartbeat.busy(doing)
