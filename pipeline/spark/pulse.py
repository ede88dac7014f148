"""The heartbeat of a streaming query."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

Heartbeat = Callable[[], None]


class Pulse(StreamingQueryListener):
    """A listener that sends the heartbeat of a query: after each micro-batch, and about once a second without entries.

    Spark calls the listener in the thread that runs the query. So while this thread waits, there is no heartbeat.
    ``committed`` receives Spark's JSON about each micro-batch.
    """

    def __init__(self, heartbeat: Heartbeat, committed: Callable[[str], None] | None = None) -> None:
        self._heartbeat = heartbeat
        self._committed = committed

    def pass_on(self, jprogress: Any) -> None:
        """Give Spark's report of a micro-batch to ``committed``, as a text that one call to the JVM fetches."""
        if self._committed is not None:
            self._committed(str(jprogress.json()))

    @cached_property
    def _jlistener(self) -> Any:
        """The listener for Spark. PySpark's own one copies each event to Python, which takes 80 ms per micro-batch."""
        return SparkContext._jvm.PythonStreamingQueryListenerWrapper(_Receiver(self))  # type: ignore[union-attr]

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        self._heartbeat()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        self._heartbeat()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        pass


class _Receiver(JStreamingQueryListener):
    def onQueryStarted(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        pulse: Any = self.pylistener
        pulse.onQueryProgress(jevent)
        pulse.pass_on(jevent.progress())

    def onQueryIdle(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        self.pylistener.onQueryIdle(jevent)

    def onQueryTerminated(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        pass
