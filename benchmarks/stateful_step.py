"""Spark's state operators compared with the step that keeps a shard's state in the Python worker.

Four plans take turns in one session. Each reads the same log (a private Redis server), with fresh checkpoints:

*   ``held``: the pipeline's own step, a shuffle-free ``mapInArrow`` with handed-over states and snapshots in a folder;
*   ``grouped``: ``applyInPandasWithState`` by shard, the state one binary column in RocksDB;
*   ``processor``: ``transformWithStateInPandas`` by shard, the state one ``ValueState`` in RocksDB;
*   ``nothing``: the plan of ``held`` with an operator that ignores its input.

For each plan, the output is the events per second of a bounded run, and the median duration of a micro-batch in Spark.
This is the evidence of ADR 15; recovery is in ``pipeline_open_traces``. ``processor`` is left out where protobuf is not
installed.

    scripts/bench stateful_step --events=100000
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.filled_log import FilledLog, filled_log, order_batches
from pipeline import EventLogOptions, JobOptions, LogQuery, SessionOptions, Sink, build_session, warm_up
from pipeline.held_shards import HeldOptions
from pipeline.sources import EventLogSource
from pipeline.sources.options import with_options
from pipeline.spark.pulse import Pulse
from pipeline.step import OUTPUT_DDL, match_shards, to_batch
from shards import OutputRow, ShardState, StoredEntry
from streams import position_order

STATE_DDL = "blob BINARY"


class ShardProcessor(StatefulProcessor):
    """A shard for ``transformWithStateInPandas``."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("blob", STATE_DDL)

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[Any], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Match the entries of one shard in one micro-batch."""
        saved = self._state.get() if self._state.exists() else None
        found, body = advanced(rows, None if saved is None else bytes(saved[0]))
        self._state.update((body,))
        yield found

    def close(self) -> None:
        pass


def advance_group(key: Any, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Yield a shard for ``applyInPandasWithState``."""
    found, body = advanced(frames, bytes(state.get[0]) if state.exists else None)
    state.update((body,))
    yield found


def advanced(frames: Iterable[pd.DataFrame], saved: bytes | None) -> tuple[pd.DataFrame, bytes]:
    """Return the rows of a shard's entries, and the state after them. A shuffle may have reordered the entries."""
    entries: list[StoredEntry] = []
    shard = -1
    for frame in frames:
        shard = int(frame["shard"].iloc[0]) if len(frame) else shard
        columns = (frame[name].tolist() for name in ("position", "kind", "stream", "route", "body"))
        entries += [
            StoredEntry(position=position, kind=kind, stream=stream, route=route, body=bytes(body))
            for position, kind, stream, route, body in zip(*columns, strict=True)
        ]
    entries.sort(key=lambda entry: position_order(entry.position))
    state = ShardState(shard) if saved is None else ShardState.load(saved)
    return to_batch(state.advance(entries)).to_pandas(), state.dump()


def grouped(entries: DataFrame, _options: HeldOptions) -> DataFrame:
    """Build the plan ``grouped``."""
    return entries.groupBy("shard").applyInPandasWithState(
        advance_group, OUTPUT_DDL, STATE_DDL, "append", GroupStateTimeout.NoTimeout
    )


def processor(entries: DataFrame, _options: HeldOptions) -> DataFrame:
    """Build the plan ``processor``."""
    return entries.groupBy("shard").transformWithStateInPandas(ShardProcessor(), OUTPUT_DDL, "append", "none")


def has_protobuf() -> bool:
    """Return whether ``transformWithStateInPandas`` can run. It needs protobuf, which PySpark does not install."""
    with suppress(ModuleNotFoundError):
        return find_spec("google.protobuf.descriptor") is not None
    return False


def ignore_shards(entries: DataFrame, _options: HeldOptions) -> DataFrame:
    """Ignore all input, in the plan of ``match_shards``. The speed of this plan is an upper bound."""

    def look_away(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    return entries.mapInArrow(look_away, OUTPUT_DDL)


Plan = Callable[[DataFrame, HeldOptions], DataFrame]
PLANS: Mapping[str, Plan] = {
    "held": match_shards,
    "grouped": grouped,
    **({"processor": processor} if has_protobuf() else {}),
    "nothing": ignore_shards,
}


def main() -> None:
    """Print a line for each plan and round."""
    wanted = _arguments()
    batches = order_batches(wanted.events, request=wanted.request)
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        folder = Path(name)
        with filled_log(folder, batches, shards=wanted.shards) as log:
            session = build_session(SessionOptions(data_folder=folder, master=wanted.master))
            session.conf.set("spark.sql.shuffle.partitions", "2")
            warm_up(session.sparkContext)
            try:
                _compare(session, log, folder, wanted)
            finally:
                session.stop()


def _compare(session: SparkSession, log: FilledLog, folder: Path, wanted: Namespace) -> None:
    print(
        f"{log.events:,} events in requests of {wanted.request}, {wanted.entries} entries of a shard in a micro-batch",
        flush=True,
    )
    if "processor" not in PLANS:
        print("  processor left out: it needs the package protobuf, which is not installed")
    found: dict[str, list[float]] = {plan: [] for plan in PLANS}
    for number in range(wanted.rounds):
        for plan in PLANS:
            query, seconds, alerts = _run(session, log, folder / f"{plan}-{number}", plan, wanted)
            times = _batch_ms(query)
            found[plan].append(seconds)
            print(
                f"  {plan:10} {log.events / seconds:10,.0f} events/s, {len(times)} micro-batches of "
                f"{median(times):,.0f} ms, {alerts:,} alerts",
                flush=True,
            )
    best = {plan: min(times) for plan, times in found.items()}
    ratios = ", ".join(f"{plan} {best['held'] / seconds:.2f} x" for plan, seconds in best.items())
    print(f"  throughput against the held one, best of {wanted.rounds}: {ratios}")


def _run(
    session: SparkSession, log: FilledLog, folder: Path, plan: str, wanted: Namespace
) -> tuple[LogQuery, float, int]:
    """Run a plan over the whole log. Return the query, its seconds, and the number of alerts."""
    options = JobOptions(
        log=EventLogOptions(
            redis_url=log.url,
            shards=wanted.shards,
            snapshots=str(folder / "snapshots"),
            max_entries=wanted.entries,
            retain_entries=10**9,
        ),
        checkpoint=folder / "checkpoint",
        handover=folder / "handover",
        is_bounded=True,
    )
    log.stores.client.delete(*(f"forestall:snapshots:{shard}" for shard in range(wanted.shards)))
    alerts: list[int] = []
    sink = partial(_count, alerts)
    begun = time.perf_counter()
    query = start_plan(session, options, PLANS[plan], sink)
    query.wait()
    return query, time.perf_counter() - begun, sum(alerts)


def start_plan(session: SparkSession, options: JobOptions, plan: Plan, sink: Sink) -> LogQuery:
    """Start a query with a given plan in place of ``match_shards``. The query needs its own checkpoint."""
    session.dataSource.register(with_options(EventLogSource, options.log))
    entries = session.readStream.format(EventLogSource.name()).load()
    query = LogQuery(session, sink, Pulse(lambda: None))
    query.start(plan(entries, options.held), options.checkpoint, interval_s=0.0, is_bounded=options.is_bounded)
    return query


def _count(alerts: list[int], rows: Sequence[OutputRow], _epoch_id: int) -> None:
    alerts.append(sum(row.kind == "alert" for row in rows))


def _batch_ms(query: LogQuery) -> list[float]:
    return [one["durationMs"]["triggerExecution"] for one in query.recent_progress() if one["numInputRows"]]


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--request", type=int, default=500, help="events of a request")
    parser.add_argument("--entries", type=int, default=8, help="of a shard in a micro-batch")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
