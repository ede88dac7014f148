"""Compiles the kernels of the pipeline and of backtests before the first event comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.spark.workers import matcher_workers
from shards import EXERCISES
from streams.compiling import CompileProgress, compile_kernels, compile_missing, run_exercise


@contextmanager
def compiling_beside(exercises: Sequence[str], report: Callable[[CompileProgress], None]) -> Iterator[None]:
    """Compile the kernels of exercises while the block (usually the start of Spark) runs, and wait for both to end.

    ``report`` is called from another thread about once a second while kernels are compiled.
    """
    stop = Event()
    with ThreadPoolExecutor(1, "compiling") as thread:
        compiled = thread.submit(compile_kernels, exercises, report, stop=stop)
        try:
            yield
            compiled.result()
        finally:
            stop.set()


@cache
def load_kernels() -> None:
    """Load the kernels of the pipeline, unless this process or its parent has; missing ones are compiled."""
    compile_missing(EXERCISES)
    for exercise in EXERCISES:
        run_exercise(exercise)


def warm_up(session: SparkSession) -> None:
    """Let the Python workers that will match micro-batches load the kernels of the pipeline, one worker per core.

    On a cluster they compile the kernels first: the workers of one machine share the work, and keep the result.
    Continuous tasks run in other workers, which load the kernels as they begin.
    """
    tasks = session.sparkContext.defaultParallelism
    with matcher_workers(session.sparkContext):
        loaded = session.range(0, tasks, numPartitions=tasks).mapInArrow(_load, "id LONG")
    loaded.collect()


def _load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        load_kernels()
        yield batch
