"""Micro-batches, snapshots and recovery while many traces are open.

First, many orders get their first events without an end, so that their traces and partial matches remain open. Then the
same whole orders arrive in requests, one micro-batch each, and the duration of each micro-batch in Spark is measured.
The median at 1,000,000 open traces is compared with the median at 10,000, with and without the workflow's constraints.
The query runs in a separate process, which is killed (SIGKILL, with its Java process) when all events are matched.
Recovery is the time from the start of the next process until the sink has the rows of the first micro-batch with new
events.

    scripts/bench pipeline_open_traces --most=1000000
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import IO, cast

import numpy as np
import orjson
import pyarrow as pa

from benchmarks.filled_log import FilledLog, append, filled_log, order_batches
from benchmarks.pipeline_chaos import children_of
from pipeline import EventLogOptions, JobOptions, SessionOptions, build_session, start_query, warm_up
from shards import OutputRow
from streams import EventBatch, key_hash
from streams.batch import SCHEMA

SHARDS = 8
REQUEST = 10_000
OPENING = ("ReceiveOrder", "CheckInventory")
BEGIN_US = 1_767_225_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measurements at one number of open traces.

    Attributes:
        batch_ms: The median duration of a micro-batch with whole orders, from sink to sink.
        state_bytes: The bytes of the states of all shards.
        split: The seconds that the shards reported for these micro-batches, by part.
        recovery_s: The time from the start of the new process to its first rows.
        session_s: The part of the recovery until Spark's session was ready and warm.
    """

    batch_ms: float
    state_bytes: int
    split: dict[str, float]
    recovery_s: float
    session_s: float


def main() -> None:
    """Print the figures and their ratios."""
    wanted = _arguments()
    if wanted.url:
        serve(wanted)
        return
    for is_guarded in (True, False):
        found = {open_: _measured(open_, wanted, is_guarded=is_guarded) for open_ in (wanted.least, wanted.most)}
        print("with constraints" if is_guarded else "without constraints")
        for open_, figures in found.items():
            split = ", ".join(f"{name} {value:.2f}" for name, value in figures.split.items())
            print(
                f"  {open_:9,} open: micro-batch {figures.batch_ms:,.0f} ms ({split}; seconds in all of "
                f"{wanted.arrivals}), states {figures.state_bytes:,} bytes, recovery {figures.recovery_s:.1f} s, of "
                f"which {figures.session_s:.1f} s until Spark was there",
                flush=True,
            )
        ratio = found[wanted.most].batch_ms / found[wanted.least].batch_ms
        print(f"  micro-batch at {wanted.most:,} open against {wanted.least:,}: {ratio:.2f} x", flush=True)


def opening_batches(traces: int) -> Iterator[EventBatch]:
    """Yield the first events of ``traces`` orders. For a few orders at a time, events are sorted by type."""
    for start in range(0, traces, REQUEST):
        keys = [f"open-{number}" for number in range(start, min(start + REQUEST, traces))]
        hashes = pa.array(np.array([key_hash(key) for key in keys], np.uint64))
        for place, name in enumerate(OPENING):
            times = np.arange(start, start + len(keys), dtype=np.int64) + BEGIN_US + place * REQUEST
            columns = [
                pa.array([f"{key}:{place}" for key in keys]),
                pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(keys), np.int32)), pa.array([name])),
                pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                pa.array(keys),
                hashes,
                pa.array([b'{"quantity":1}'] * len(keys), pa.binary()),
            ]
            yield EventBatch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def _measured(traces: int, wanted: Namespace, *, is_guarded: bool) -> Figures:
    arrivals = list(order_batches(wanted.arrivals * wanted.request, request=wanted.request))
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        folder = Path(name)
        with filled_log(folder, opening_batches(traces), shards=SHARDS, is_guarded=is_guarded) as log:
            with _Query(log, folder) as query:
                query.read_until(log.events)
                batches = [query.through(batch) for batch in arrivals[:-1]]
                _, last = batches[-1]
            begun = time.perf_counter()
            append(log.stores, arrivals[-1])
            with _Query(log, folder) as query:
                query.read("first rows", len(arrivals[-1]))
                recovery_s = time.perf_counter() - begun
                session_s = query.ready_s - query.begun
    steady = [told for _, told in batches[2:]]
    return Figures(
        batch_ms=1_000 * median(seconds for seconds, _ in batches[2:]),
        state_bytes=int(last["state_bytes"]),
        split={part: sum(told[part] for told in steady) for part in ("load_s", "match_s", "keep_s")},
        recovery_s=recovery_s,
        session_s=session_s,
    )


class _Query:
    """The query in a separate process, which is killed at the end of the block."""

    def __init__(self, log: FilledLog, folder: Path) -> None:
        words = [sys.executable, "-P", "-m", "benchmarks.pipeline_open_traces", f"--url={log.url}"]
        self._log = log
        self.begun = time.perf_counter()
        self._process = subprocess.Popen([*words, f"--folder={folder}"], stdout=subprocess.PIPE, text=True)
        self._lines = cast("IO[str]", self._process.stdout)
        self.ready_s = 0.0

    def __enter__(self) -> _Query:
        if self._lines.readline() != "ready\n":
            raise RuntimeError("the query's process did not get ready")
        self.ready_s = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        machines = children_of(self._process.pid)
        workers = [pid for jvm in machines for daemon in children_of(jvm) for pid in (daemon, *children_of(daemon))]
        for pid in (self._process.pid, *machines, *workers):
            with suppress(ProcessLookupError):  # Java briefly starts other processes
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def through(self, batch: EventBatch) -> tuple[float, dict[str, float]]:
        """Append a request. Return the seconds until its rows arrived, and the report of its micro-batch."""
        begun = time.perf_counter()
        append(self._log.stores, batch)
        told = self.read("a request", len(batch))
        return time.perf_counter() - begun, told

    def read_until(self, events: int) -> None:
        """Wait until ``events`` events were matched."""
        matched = 0.0
        while matched < events:
            matched = max(matched, self._told()["events"])

    def read(self, what: str, events: int) -> dict[str, float]:
        """Return the report of the next micro-batch.

        ``what`` and ``events`` describe the request in the error.

        Raises:
            RuntimeError: The report is empty.
        """
        told = self._told()
        if not told:
            raise RuntimeError(f"no rows of {what} with {events} events")
        return told

    def _told(self) -> dict[str, float]:
        line = self._lines.readline()
        if not line:
            raise RuntimeError("the query's process ended")
        return cast("dict[str, float]", json.loads(line))


def serve(wanted: Namespace) -> None:
    """Run the query and print a line per micro-batch, until the process is killed."""
    folder = Path(wanted.folder)
    session = build_session(SessionOptions(data_folder=folder, master="local[2]"))
    warm_up(session.sparkContext)
    options = JobOptions(
        log=EventLogOptions(
            redis_url=wanted.url, shards=SHARDS, snapshots=str(folder / "snapshots"), max_entries=64, retain_entries=0
        ),
        checkpoint=folder / "checkpoint",
        handover=folder / "handover",
    )
    shards: dict[int, dict[str, float]] = {}

    def tell(rows: Sequence[OutputRow], _epoch_id: int) -> None:
        told = [orjson.loads(row.body) for row in rows if row.kind == "stats"]
        for one in told:
            events = sum(stream["events"] for stream in one["streams"].values())
            shards[one["shard"]] = {"state_bytes": one["state_bytes"], "events": events}
        sums = {part: sum(one[part] for one in told) for part in ("load_s", "match_s", "keep_s")}
        totals = {name: sum(one[name] for one in shards.values()) for name in ("state_bytes", "events")}
        print(json.dumps(sums | totals), flush=True)

    print("ready", flush=True)
    start_query(session, options, tell).wait()


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=200_000, help="open traces, against --least")
    parser.add_argument("--least", type=int, default=10_000)
    parser.add_argument("--arrivals", type=int, default=12, help="requests")
    parser.add_argument("--request", type=int, default=2_000, help="events of a request that arrives")
    for name in ("url", "folder"):
        parser.add_argument(f"--{name}", default="", help="given by this program to its query")
    return parser.parse_args()


if __name__ == "__main__":
    main()
