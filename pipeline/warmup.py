"""Compilation of the kernels of the pipeline and of backtests, before the first event arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Event

from pyspark import SparkContext

from pipeline.spark.workers import matcher_workers
from shards import EXERCISES
from streams.compiling import CompileProgress, compile_kernels, compile_missing, run_exercise


@contextmanager
def compiling_beside(exercises: Sequence[str], report: Callable[[CompileProgress], None]) -> Iterator[None]:
    """Compile kernels while the block runs, and wait for both. The block usually starts Spark.

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
    """Load the kernels of the pipeline in this process, and compile missing ones. Repeated calls do nothing."""
    compile_missing(EXERCISES)
    for exercise in EXERCISES:
        run_exercise(exercise)


def warm_up(context: SparkContext) -> None:
    """Load the kernels of the pipeline in the Python workers that will match, one worker per core.

    On a cluster the workers first compile the kernels. The workers of one machine share the work, and the result is
    cached. Continuous tasks on one machine do not need this, because they load the kernels when they begin.
    """
    tasks = context.defaultParallelism
    with matcher_workers(context):
        context.parallelize(range(tasks), tasks).mapPartitions(_load).collect()


def _load(rows: Iterable[int]) -> Iterator[int]:
    load_kernels()
    yield from rows
