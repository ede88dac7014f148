"""What the pipeline says of itself before its query runs: what it is busy with, and how far that is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from service.errors import StoreUnavailable
from service.stores import Heartbeat
from streams.compiling import CompileProgress

_SAID_EVERY_S = 1.0


@dataclass(slots=True)
class StartReport:
    """What a starting pipeline is busy with.

    Attributes:
        heartbeat: Where it says so.
    """

    heartbeat: Heartbeat
    _phase: str = "starting"
    _compiling: CompileProgress | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, phase: str) -> None:
        """Something else begins.

        Args:
            phase: In words, such as "starting Spark".
        """
        with self._lock:
            self._phase = phase
            self._say()

    def compiling(self, progress: CompileProgress) -> None:
        """Kernels are being compiled, which is said in place of what goes on beside it."""
        with self._lock:
            self._compiling = None if progress.is_complete else progress
            self._say()

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Say it about once a second while the block runs."""
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(_SAID_EVERY_S):
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
        with suppress(StoreUnavailable):  # a report that is lost is followed by another
            self.heartbeat.starting(self._phase if self._compiling is None else self._compiling.text)
