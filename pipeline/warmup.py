"""Compiling the matcher's kernels before the first event comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from nfa import Matcher
from streams import Event, EventBatch


def warm_up(session: SparkSession) -> None:
    """Have Spark's Python workers compile the kernels into the shared cache and load them.

    First one worker, which fills the cache, then one per core. The first time this takes as long as the compiler does,
    some twenty seconds.
    """
    for tasks in (1, session.sparkContext.defaultParallelism):
        session.range(0, tasks, numPartitions=tasks).mapInArrow(_match_once, "id LONG").collect()


def _match_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    events = [Event(id=name, type=name, time_us=0, key="key") for name in ("A", "B")]
    for batch in batches:
        matcher = Matcher(end_events=("B",))
        matcher.add_pattern("PATTERN warmup EVENT SEQ(A a, B b)")
        matcher.process(EventBatch.from_events(events))
        yield batch
