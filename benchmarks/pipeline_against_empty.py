"""The Spark pipeline in a backfill, compared with the same plan with an operator that ignores its input.

Both plans take turns in the same session. Each reads the same log (a private Redis server) from offset zero to its end,
with a fresh checkpoint. So the ratio shows the cost of decoding, matching, guarding, explaining and keeping state, in
addition to Spark and the source. The rows of the matching run are collected as the service would store them. Snapshots
and handovers are written to a folder.

    scripts/bench pipeline_against_empty --events=4000000
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from pyspark.sql import SparkSession

from benchmarks.filled_log import FilledLog, filled_log, order_batches
from benchmarks.stateful_step import ignore_shards, start_plan
from pipeline import EventLogOptions, JobOptions, LogQuery, SessionOptions, Sink, build_session, start_query, warm_up
from shards import OutputRow


def start_empty(session: SparkSession, options: JobOptions, sink: Sink) -> LogQuery:
    """Start the same plan without matching, to measure Spark's own cost."""
    return start_plan(session, options, ignore_shards, sink)


STARTS = {"matching": start_query, "empty": start_empty}
SPENT = ("load_s", "match_s", "keep_s")


class Collector:
    """A sink that counts rows by kind, and adds up the times that the shards report."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.rows: list[OutputRow] = []

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        for row in rows:
            self.kinds[row.kind] += 1
            if row.kind == "stats":
                told = orjson.loads(row.body)
                for name in SPENT:
                    self.spent[name] += told[name]
            else:
                self.rows.append(row)


def main() -> None:
    """Print the ratio, and how the time was spent."""
    wanted = _arguments()
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        folder = Path(name)
        batches = order_batches(wanted.events, request=wanted.request)
        with filled_log(folder, batches, shards=wanted.shards) as log:
            session = build_session(SessionOptions(data_folder=folder, master="local[2]"))
            warm_up(session.sparkContext)
            try:
                _compare(session, log, folder, wanted)
            finally:
                session.stop()


def _compare(session: SparkSession, log: FilledLog, folder: Path, wanted: Namespace) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in STARTS}
    print(
        f"Q1, Q2, EP1 with constraints, {log.events:,} events in requests of {wanted.request:,}, local[2], "
        f"{wanted.shards} shards; {wanted.rounds} rounds after a bounded one to warm up",
        flush=True,
    )
    for number in range(wanted.rounds + 1):
        for kind in STARTS:
            collector = Collector()
            took, batches = _run(session, log, folder / f"{kind}-{number}", kind, collector, wanted)
            if number:
                seconds[kind].append(took)
                print(f"  {kind:10} {took:6.2f} s   {log.events / took:10,.0f} events/s", flush=True)
            if number == wanted.rounds:
                _tell(collector, batches)
    ratio = median(seconds["empty"]) / median(seconds["matching"])
    print(f"  throughput of the pipeline: {ratio:.2f} x the empty one")


def _run(
    session: SparkSession, log: FilledLog, folder: Path, kind: str, collector: Collector, wanted: Namespace
) -> tuple[float, list[Mapping[str, Any]]]:
    """Return the seconds of a run over the whole log, and Spark's progress reports of its last micro-batches."""
    log.stores.client.delete(*(f"forestall:snapshots:{shard}" for shard in range(wanted.shards)))
    options = JobOptions(
        log=EventLogOptions(
            redis_url=log.url,
            shards=wanted.shards,
            snapshots=str(folder / "snapshots"),
            max_entries=wanted.entries,
            max_bytes=wanted.bytes,
            retain_entries=10**9,
        ),
        checkpoint=folder / "checkpoint",
        handover=folder / "handover",
        is_bounded=True,
    )
    begun = time.perf_counter()
    query = STARTS[kind](session, options, collector)
    query.wait()
    took = time.perf_counter() - begun
    return took, [one for one in query.recent_progress() if one["numInputRows"]]


def _tell(collector: Collector, batches: list[Mapping[str, Any]]) -> None:
    durations: Counter[str] = Counter()
    for batch in batches:
        durations.update(batch["durationMs"])
    parts = ", ".join(f"{name} {ms / len(batches):,.0f}" for name, ms in durations.most_common())
    print(f"    {len(batches)} micro-batches of ms: {parts}")
    if collector.spent:
        print("    in all workers: " + ", ".join(f"{name} {value:.2f}" for name, value in collector.spent.items()))
        print("    rows: " + ", ".join(f"{count:,} {kind}" for kind, count in collector.kinds.most_common()))


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--request", type=int, default=10_000, help="events of a request")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--entries", type=int, default=64, help="of a shard in a micro-batch")
    parser.add_argument("--bytes", type=int, default=4_000_000, help="of a shard in a micro-batch")
    return parser.parse_args()


if __name__ == "__main__":
    main()
