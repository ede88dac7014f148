"""Loading of the states of all shards before the first micro-batch: a service is ready once it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import QueryFailed
from pipeline.held_shards import HeldOptions, held_shards
from pipeline.spark.account import summary_of
from pipeline.spark.workers import matcher_workers


def load_states(session: SparkSession, options: HeldOptions) -> None:
    """Let the processes that will match find the state of each shard; the options are those of the following query.

    ``QueryFailed`` has the reason if a state cannot be loaded.
    """
    tasks = max(1, min(options.log.tasks, options.log.shards))
    shards = session.range(0, options.log.shards, numPartitions=tasks)
    with matcher_workers(session.sparkContext):
        loaded = shards.mapInArrow(partial(_load, options=options), "id LONG")
    try:
        loaded.collect()
    except PySparkException as error:
        raise QueryFailed(f"the states of the shards cannot be loaded: {summary_of(error)}") from error


def _load(batches: Iterable[pa.RecordBatch], options: HeldOptions) -> Iterator[pa.RecordBatch]:
    held = held_shards(options)
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            held.load(shard)
        yield batch
