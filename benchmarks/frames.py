"""Speed of ``forestall.match`` over DataFrames: the share of matching, and the share of the conversion of frames.

In memory, the input is workload W (``benchmarks.matcher_speed``) as a frame of a million rows, and the result is the
frame of its matches. Text columns are categories, Arrow texts, or Python texts (the default of pandas), which are read
one by one. The comparison is the matcher alone over the same events as a batch, in turns; times are CPU time of all
threads. On Spark (``local[2]``), the input is the same events, partitioned and cached, and the result is the number of
matches. The comparison is an empty ``mapInArrow`` over the same partitions; times are wall-clock time. All figures are
medians of rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import forestall
from benchmarks.matcher_speed import EVENTS, EXPECTED, W, matches_in, unguarded, workload_w

ROUNDS = 5
PARTITIONS = 4


def table_of(events: int) -> pa.Table:
    """Return workload W as a table with the columns type, time, key and value. Rows have no ids."""
    batch = workload_w(events)
    columns = {name: batch.columns.column(name) for name in ("id", "type", "time", "key")}
    return pa.table({**columns, "value": batch.attributes["value",]})


def in_turns(
    calls: Mapping[str, Callable[[], int]], rounds: int, clock: Callable[[], float]
) -> tuple[dict[str, float], dict[str, int]]:
    """Return median seconds and matches of each call. A first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found: dict[str, int] = {}
    for number in range(rounds + 1):
        for name, call in calls.items():
            begin = clock()
            found[name] = call()
            if number:
                seconds[name].append(clock() - begin)
    return {name: median(taken) for name, taken in seconds.items()}, found


def in_memory(events: int, rounds: int) -> None:
    """Measure ``match`` over pandas frames."""
    table, batch = table_of(events), workload_w(events)
    bare = table.drop_columns(["id"])
    frames = {
        "pandas, categories": bare.to_pandas(categories=["type", "key"]),
        "pandas, Arrow's texts": bare.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas, Python's texts": bare.to_pandas(),
        "Arrow": bare,
        "pandas, with ids": table.to_pandas(categories=["type", "key"]),
    }
    calls: dict[str, Callable[[], int]] = {"matcher alone": lambda: matches_in(unguarded(W), batch)}
    for name, frame in frames.items():
        calls[name] = lambda frame=frame: len(forestall.match(frame, W).matches)  # type: ignore[misc]
    seconds, found = in_turns(calls, rounds, time.process_time)
    print(f"\nframe to frame of matches, {events:,} events")
    for name, taken in seconds.items():
        share = seconds["matcher alone"] / taken
        print(
            f"  {name:24} {events / taken / 1e6:6.1f} M events/s  {share:5.2f} of the matcher  {found[name]:,} matches"
        )
    if events == EVENTS and set(found.values()) != {EXPECTED["all"]}:
        raise SystemExit(f"other matches: {found}")


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the batches of a partition, but yield no row."""
    rows = sum(len(batch) for batch in batches)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


def on_spark(events: int, rounds: int) -> None:
    """Measure ``match`` on Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starts Java

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", str(PARTITIONS)).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.parquet"
        table = table_of(events)
        pq.write_table(table.set_column(1, "type", table.column("type").cast(pa.string())), path)
        frame = spark.read.parquet(str(path)).repartition(PARTITIONS, "key").cache()
        frame.count()
        partitioned: Any = frame.select("id", "type", "time", "key")
        calls: dict[str, Callable[[], int]] = {
            "empty mapInArrow": lambda: int(
                partitioned.mapInArrow(nothing, "rows bigint").agg({"rows": "sum"}).first()[0]
            ),
            "match": lambda: int(forestall.match(frame, W, outputs=["matches"]).matches.count()),
        }
        seconds, found = in_turns(calls, rounds, time.perf_counter)
    print(f"\nSpark local[2], {events:,} events in {PARTITIONS} partitions by key")
    for name, taken in seconds.items():
        share = seconds["empty mapInArrow"] / taken
        print(f"  {name:24} {events / taken / 1e6:6.2f} M events/s  {share:5.2f} of the empty one  {found[name]:,}")
    spark.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-spark", action="store_true")
    options = parser.parse_args()
    events, rounds = (100_000, 2) if options.quick else (EVENTS, ROUNDS)
    in_memory(events, rounds)
    if not options.without_spark:
        on_spark(events, rounds)


if __name__ == "__main__":
    main()
