"""Running streaming queries: waiting, stopping and state, common to matching and feeds."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.spark.account import lost_source
from pipeline.spark.pulse import Pulse

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.query import StreamingQuery

_Row = TypeVar("_Row")

# Sleep in Python, not in a call to the JVM: after a signal interrupts such a call, the next one gets its answer.
_POLL_S = 0.2
# Restarts of a query whose source died, within the time below; beyond, the whole process must restart. A busy machine
# that needs longer than Spark's 10 s to start a process does not reach the number.
_MOST_RESTARTS = 6
_RESTARTS_WITHIN_S = 60.0

log = structlog.get_logger(__name__)


class RunningQuery(ABC, Generic[_Row]):
    """A streaming query from a source to a sink that runs on the driver. Subclasses define the errors for failures.

    ``read_rows`` converts a collected micro-batch to rows. The sink is called with the rows and the number of each
    micro-batch, and after a crash again with the same rows and number. If the sink ended the query by an exception,
    ``sink_error`` has the exception.
    """

    def __init__(
        self,
        session: SparkSession,
        read_rows: Callable[[pa.Table], Sequence[_Row]],
        sink: Callable[[Sequence[_Row], int], None],
        pulse: Pulse | None = None,
    ) -> None:
        self._session = session
        self._read_rows = read_rows
        self._sink = sink
        self._pulse = pulse
        self._query: StreamingQuery | None = None
        self._begin: Callable[[], StreamingQuery] | None = None
        self._restarts: list[float] = []
        self._is_stop_requested = False
        self.sink_error: Exception | None = None

    @property
    def is_active(self) -> bool:
        try:
            return self._query is not None and self._query.isActive
        except (Py4JError, OSError):
            return False

    def recent_progress(self) -> list[Mapping[str, Any]]:
        """Return Spark's reports of the latest micro-batches, as plain JSON, oldest first."""
        with self.failures():
            reports: list[Any] = self._started().recentProgress
        return [report if isinstance(report, Mapping) else json.loads(report.json) for report in reports]

    def start(self, frame: DataFrame, checkpoint: Path, *, interval_s: float, is_bounded: bool) -> None:
        """Start the query. Call this method once. The checkpoint is a folder of offsets and commits, on the driver."""
        pace = f"{round(interval_s * 1_000)} milliseconds"
        trigger = {"availableNow": True} if is_bounded else {"processingTime": pace}
        if self._pulse is not None:
            self._session.streams.addListener(self._pulse)
        writer = frame.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint))
        self._begin = writer.trigger(**trigger).foreachBatch(self._store).start
        with self.failures():
            self._query = self._begin()

    def wait(self, timeout_s: float | None = None, look: Callable[[], None] = lambda: None) -> bool:
        """Wait until the query ends or ``request_stop`` is called. Return False if ``timeout_s`` have passed before.

        ``look`` is called regularly. The method raises if the query failed or Spark's process is gone.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while deadline is None or time.monotonic() < deadline:
            if self._is_stop_requested:
                self.stop()
                return True
            with self.failures():
                if not self._started().isActive and not self._restart_if_lost():
                    return True
            look()
            time.sleep(_POLL_S)
        return False

    def request_stop(self) -> None:
        """Have ``wait`` stop the query and return. Signal handlers may call only this method."""
        self._is_stop_requested = True

    def drain(self) -> None:
        """Wait until all input that is available now has reached the sink.

        Errors are those of ``wait``. If a process of the source dies, the query is restarted.
        """
        with self.failures():
            while not self._drain_once():
                pass

    def stop(self) -> None:
        """Stop the query, even within a micro-batch. The next query repeats a micro-batch that was not committed."""
        with self.failures():
            self._started().stop()
            self._unlisten()

    @abstractmethod
    def _fail(self, error: Exception) -> NoReturn:
        """Raise the subclass's error for a failure of the query. Its cause may be ``sink_error``.

        If ``error`` is not a ``PySparkException``, Spark's process has ended.
        """

    def _store(self, batch: DataFrame, epoch_id: int) -> None:
        rows = self._read_rows(batch.toArrow())
        try:
            self._sink(rows, epoch_id)
        # house: allow broad-except: whatever it is, it is remembered and raised again
        except Exception as error:
            self.sink_error = error
            raise

    def _drain_once(self) -> bool:
        """Process all input that is available now.

        Return False if the query had to be restarted, so that input is left.
        """
        try:
            self._started().processAllAvailable()
        except PySparkException:
            return not self._restart_if_lost()
        return True

    def _restart_if_lost(self) -> bool:
        """Restart an ended query if only a Python process of its source died, for example for lack of memory.

        Return whether the query was restarted. If it failed for another reason, raise its error.
        """
        try:
            self._started().awaitTermination()
        except PySparkException as error:
            now = time.monotonic()
            self._restarts = [at for at in self._restarts if now < at + _RESTARTS_WITHIN_S]
            begin, is_hopeless = self._begin, len(self._restarts) == _MOST_RESTARTS
            if begin is None or is_hopeless or self.sink_error is not None or not lost_source(error):
                self._unlisten()
                raise
        else:
            self._unlisten()
            return False
        self._restarts.append(now)
        log.warning("source-process-died", restarts=len(self._restarts))
        self._query = begin()
        return True

    def _started(self) -> StreamingQuery:
        if self._query is None:
            raise RuntimeError("the query was not started")
        return self._query

    def _unlisten(self) -> None:
        if self._pulse is not None:
            self._session.streams.removeListener(self._pulse)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise errors of Spark in the block as the subclass's error."""
        try:
            yield
        except (PySparkException, Py4JError, OSError) as error:
            self._fail(error)
