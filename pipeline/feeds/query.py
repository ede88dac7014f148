"""The streaming query of a feed: its source -> the sink, on the driver, with a checkpoint of its own.

The sink is called with the number of the micro-batch and its rows, and again with the same number and the same rows
after a crash; it must remember, together with what it keeps, how far it is. Then every row is taken once: Spark writes
the offsets of a micro-batch before its rows are read, and the sources yield the same rows for the same offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import QueryFailed
from pipeline.feeds.folder import FolderOptions, FolderSource
from pipeline.feeds.kafka import KafkaOptions, KafkaSource
from pipeline.feeds.rows import FeedRow, from_table
from streams import ForestallError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FeedSink: TypeAlias = Callable[[Sequence[FeedRow], int], None]

_POLL_S = 0.2
_CHECKPOINT = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """What a feed's query needs.

    Attributes:
        source: What it reads.
        state: The feed's own folder; Spark's checkpoint is in it.
        interval_s: Least time between the starts of two micro-batches.
        is_bounded: End after what is there at the start.
    """

    source: FolderOptions | KafkaOptions
    state: Path
    interval_s: float = 1.0
    is_bounded: bool = False


class FeedQuery:
    """A feed that runs; made by ``start_feed``.

    Attributes:
        sink_error: What the sink raised, if that ended the query.
    """

    def __init__(self, sink: FeedSink) -> None:
        self._sink = sink
        self._query: StreamingQuery | None = None
        self._is_stop_requested = False
        self.sink_error: Exception | None = None

    def start(self, frame: DataFrame, options: FeedOptions) -> None:
        """Begin; called once, by ``start_feed``."""
        trigger = (
            {"availableNow": True}
            if options.is_bounded
            else {"processingTime": f"{round(options.interval_s * 1_000)} milliseconds"}
        )
        writer = frame.writeStream.outputMode("append").option("checkpointLocation", str(options.state / _CHECKPOINT))
        try:
            self._query = writer.trigger(**trigger).foreachBatch(self._store).start()
        except (PySparkException, Py4JError, OSError) as error:
            raise self._failure(error) from error

    def request_stop(self) -> None:
        """Let ``wait`` stop the query and return; the one thing that a signal handler may safely do."""
        self._is_stop_requested = True

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait for the end, by itself or by ``request_stop``.

        Args:
            look: Called now and then.

        Raises:
            ForestallError: What the sink or the source raised.
            QueryFailed: The query ended by another error, or Spark's process is gone.
        """
        assert self._query is not None
        try:
            while self._query.isActive:
                if self._is_stop_requested:
                    self._query.stop()
                    return
                look()
                time.sleep(_POLL_S)
            self._query.awaitTermination()
        except (PySparkException, Py4JError, OSError) as error:
            if self._is_stop_requested:
                return
            raise self._failure(error) from error

    def _store(self, batch: DataFrame, epoch_id: int) -> None:
        rows = from_table(batch.toArrow())
        try:
            self._sink(rows, epoch_id)
        # house: allow broad-except: whatever it is, it is remembered and raised again
        except Exception as error:
            self.sink_error = error
            raise

    def _failure(self, error: Exception) -> ForestallError:
        if isinstance(self.sink_error, ForestallError):
            return self.sink_error
        if not isinstance(error, PySparkException):
            return QueryFailed("the feed failed: Spark's process is gone; a restart goes on where it stopped")
        return QueryFailed(f"the feed failed: {summary_of(error)}")


def summary_of(error: Exception) -> str:
    """What happened, without the stacks: the last line that names an error of this project, or else the last line."""
    told = str(error).split("JVM stacktrace:")[0].split("=== Streaming Query ===")[0]
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line[0].isspace()]
    own = [line for line in lines if line.startswith("pipeline.errors.")]
    if own:
        return own[-1].partition(": ")[2]
    return lines[-1] if lines else type(error).__name__


def start_feed(session: SparkSession, options: FeedOptions, sink: FeedSink) -> FeedQuery:
    """Start feeding; returns at once.

    Args:
        session: From ``build_session``.
        options: Source, checkpoint, pace.
        sink: Called on the driver, see the module.

    Raises:
        QueryFailed: The query cannot start.
    """
    kind = FolderSource if isinstance(options.source, FolderOptions) else KafkaSource
    session.dataSource.register(kind)
    frame = session.readStream.format(kind.name()).options(**options.source.to_mapping()).load()
    query = FeedQuery(sink)
    query.start(frame, options)
    return query
