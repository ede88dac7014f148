"""What a running query does when the Python process of its source has died; queries of Spark are in other tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.spark.running_query import RunningQuery


class QueryEnded(Exception):
    pass


class Query(RunningQuery[Any]):
    """A query whose runs end with the given errors; None: the run processes all input."""

    def __init__(self, ends: Iterator[Exception | None]) -> None:
        super().__init__(cast(SparkSession, None), list, lambda *_: None)
        self.runs = 1
        self._query = cast(StreamingQuery, Run(next(ends)))

        def begin() -> StreamingQuery:
            self.runs += 1
            return cast(StreamingQuery, Run(next(ends)))

        self._begin = begin

    def _fail(self, error: Exception) -> NoReturn:
        raise QueryEnded from error


class Run:
    """One run, with the names of Spark."""

    def __init__(self, end: Exception | None) -> None:
        self.end = end

    def awaitTermination(self) -> None:  # noqa: N802
        if self.end is not None:
            raise self.end

    processAllAvailable = awaitTermination  # noqa: N815


def lost() -> PySparkException:
    error = PySparkException("terminated with exception: Python worker failed to connect back")
    vars(error)["_stackTrace"] = "java.net.SocketTimeoutException\n\tat PythonStreamingSourceRunner.init"
    return error


def test_input_is_drained_by_the_next_run_where_the_process_of_the_source_dies() -> None:
    query = Query(iter([lost(), lost(), None]))
    query.drain()
    assert query.runs == 3


@pytest.mark.parametrize("ends", [[PySparkException("a task failed")], [lost() for _ in range(20)]])
def test_other_failures_and_a_process_that_dies_again_and_again_end_it(ends: list[Exception]) -> None:
    query = Query(iter(ends))
    with pytest.raises(QueryEnded):
        query.drain()
    assert query.runs == min(len(ends), 7)
