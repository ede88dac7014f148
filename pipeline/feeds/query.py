"""The streaming query of a feed, from its source to the sink on the driver, with a checkpoint of its own.

The sink is called with the number of the micro-batch and its rows. After a crash, it is called again with the same
number and rows. The sink must store its progress together with the rows that it keeps. Then every row is stored once,
because Spark writes the offsets of a micro-batch before its rows are read, and the sources yield the same rows for the
same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import QueryFailed
from pipeline.feeds.folder import FolderOptions, FolderSource
from pipeline.feeds.kafka import KafkaOptions, KafkaSource
from pipeline.feeds.rows import FeedRow, from_table
from pipeline.sources.options import with_options
from pipeline.spark.account import summary_of
from pipeline.spark.running_query import RunningQuery
from streams import ForestallError

FeedSink: TypeAlias = Callable[[Sequence[FeedRow], int], None]

_CHECKPOINT = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Options of a feed's query.

    Attributes:
        state: The feed's own folder, which contains Spark's checkpoint.
        interval_s: Least time between the starts of two micro-batches.
        is_bounded: Whether to stop after the input that is available at the start.
    """

    source: FolderOptions | KafkaOptions
    state: Path
    interval_s: float = 1.0
    is_bounded: bool = False


class FeedQuery(RunningQuery[FeedRow]):
    """A running feed, created by ``start_feed``.

    If the sink raises a ``ForestallError``, ``wait`` raises the same error.
    """

    def __init__(self, session: SparkSession, sink: FeedSink) -> None:
        super().__init__(session, from_table, sink)

    def wait(self, timeout_s: float | None = None, look: Callable[[], None] = lambda: None) -> bool:
        """Wait for the end as ``RunningQuery.wait`` does, but ignore failures after ``request_stop``."""
        try:
            return super().wait(timeout_s, look)
        except ForestallError:
            if self._is_stop_requested:
                return True
            raise

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(self.sink_error, ForestallError):
            raise self.sink_error from error
        if not isinstance(error, PySparkException):
            raise QueryFailed(
                "the feed failed: Spark's process is gone; after a restart it continues where it stopped"
            ) from error
        raise QueryFailed(f"the feed failed: {summary_of(error)}") from error


def start_feed(session: SparkSession, options: FeedOptions, sink: FeedSink) -> FeedQuery:
    """Start the query of a feed and return at once.

    The sink is called with the rows and the number of each micro-batch. After a crash, it is called again with the same
    rows and number.
    """
    kind = FolderSource if isinstance(options.source, FolderOptions) else KafkaSource
    session.dataSource.register(with_options(kind, options.source))
    frame = session.readStream.format(kind.name()).load()
    query = FeedQuery(session, sink)
    query.start(frame, options.state / _CHECKPOINT, interval_s=options.interval_s, is_bounded=options.is_bounded)
    return query
