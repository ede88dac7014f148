"""Cost of a join with re-keyed inputs: the events move to other shards through the sink and the log.

    scripts/bench join_rekeyed [--events=200000] [--rounds=3] [--before=PYTHON]

Input: two streams of orders and payments. Each event has its own key, and the join key is the order in the events'
data; half of the orders are paid. The events are posted as in a backfill, in entries of several thousand events.
*service* covers all steps of the pipeline except Spark: shards read their entries, match them and return rows in
columns as for Spark; the sink stores results in a private Redis server, and appends events that move to another shard.
*one process* is the same project in ``forestall run``, with four shards in memory. Seconds are CPU seconds of the
process that matches and stores, without the server.

``--before`` is the interpreter of another checkout, for example of the release before: it runs the same input in turn,
in a process of its own, and the figures are ratios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.sources.log_reader import EventLogReader, log_ends
from pipeline.sources.log_reading import connect, read_entries
from pipeline.step import from_table, to_batch
from service import AlertSink, Stores
from service.processes import timekeeper
from service.processes.cluster import job_options
from service.processes.timekeeper import Timekeeper
from service.registering.operators import OperatorLibrary
from service.settings import Settings
from service.stores import Submission
from service.stores import connect as connect_stores
from shards import InlineShards, RowBlock
from shards.kinds.joins import JoinKind, merged_stream
from streams import EventBatch, OperatorOn, StreamDeclaration, StreamOn, SystemClock
from tests.builders.service import private_server, settings_for

_SHARDS, _REQUEST, _TAKEN = 4, 20_000, 8
_STREAMS = ("orders", "payments")
_DOCUMENT: Mapping[str, Any] = {
    "name": "paid",
    "inputs": [
        {"stream": "orders", "as": "o", "key": "data.order", "closed_by": "unique"},
        {"stream": "payments", "as": "p", "key": "data.order", "closed_by": "unique"},
    ],
    "window": "1 h",
    "return": {"order": "id(o)", "customer": "o.customer", "amount": "p.amount"},
}
_LIMITS = {"max_backlog_events": 10**9, "max_log_bytes": 10**12}


def batches(events: int) -> Iterator[tuple[str, EventBatch]]:
    """Yield the requests of both streams in turn."""
    rows = events // len(_STREAMS)
    for first in range(0, rows, _REQUEST):
        numbers = range(first, min(first + _REQUEST, rows))
        for stream in _STREAMS:
            orders = [f"o{number}" if stream == "orders" or number % 2 else f"x{number}" for number in numbers]
            data = [
                orjson.dumps({"order": order, "customer": f"c{number % 500}", "amount": number / 8, "note": "as usual"})
                for number, order in zip(numbers, orders, strict=True)
            ]
            ids = [f"{stream}-{number}" for number in numbers]
            times_us = 1_767_225_600_000_000 + np.array(numbers, np.int64) * 1_000
            yield stream, EventBatch.from_columns(ids, [stream] * len(ids), times_us, ids, data)


def in_service(events: int, folder: Path) -> tuple[float, Mapping[str, float], bytes]:
    """Return the CPU seconds, their parts, and a digest of the events in the join's stream."""
    with private_server(folder) as url, connect_stores(url) as client:
        settings = settings_for(url, shards=_SHARDS, limits=_LIMITS, data_dir=folder / "data")
        service = _Service(Stores(client, url, settings), settings)
        for stream, batch in batches(events):
            service.post(stream, batch)
        begin = time.process_time()
        quiet = 0
        while quiet < 4:
            Timekeeper(service.stores).look()
            quiet = 0 if service.step() else quiet + 1
        seconds = time.process_time() - begin
        service.server.close()
        return seconds, service.parts, service.digest()


class _Service:
    """The log, the shards and the sink."""

    def __init__(self, stores: Stores, settings: Settings) -> None:
        self.stores = stores
        for name in _STREAMS:
            stores.registry.declare_stream(StreamDeclaration(name=name))
        OperatorLibrary(stores, SystemClock()).put("join", _DOCUMENT)
        options = job_options(settings, stores.log.layout.read(), stores.url, tasks=1)
        self._log = replace(options.log, snapshot_bytes=1 << 40)
        self.server, self._sink = connect(self._log), AlertSink(stores, SystemClock())
        self._held = HeldShards(HeldOptions(log=self._log, handover=None))
        self._at, self._epoch = dict(EventLogReader(self._log).initialOffset()), 0
        self.parts = dict.fromkeys(("match", "rows", "sink"), 0.0)
        self._found: list[bytes] = []

    def post(self, stream: str, batch: EventBatch) -> None:
        """Append a request as the API does, without reading JSON."""
        empty = Submission(
            stream=stream, batch=batch, dead_letters=(), answer={}, fingerprint="", token=uuid.uuid4().hex
        )
        self.stores.log.append_events(empty)

    def step(self) -> bool:
        """Run one micro-batch. Return whether there were entries to match."""
        ends, found = log_ends(self._log), []
        marks = [time.process_time()]
        for shard, after in self._at.items():
            if ends[shard] != after:
                entries = next(iter(read_entries(self.server, int(shard), after, ends[shard])))[:_TAKEN]
                found.append(to_batch(self._held.advance(int(shard), after, entries)))
                self._at[shard] = entries[-1].position
        if not found:
            return False
        marks.append(time.process_time())
        rows = from_table(pa.Table.from_batches(found))
        marks.append(time.process_time())
        self._sink(rows, self._epoch)
        marks.append(time.process_time())
        for name, spent in zip(self.parts, np.diff(marks).tolist(), strict=True):
            self.parts[name] += spent
        self._found += [row.body for row in rows if row.kind == "derived" and b'"merged":' not in row.body]
        self._epoch += 1
        return True

    def digest(self) -> bytes:
        """Return a digest of the results that does not depend on their order."""
        return sha256(b"".join([b"%d" % len(self._found), *sorted(self._found)])).digest()


def in_process(events: int) -> tuple[float, Mapping[str, float], bytes]:
    """Run the same input as ``in_service`` by shards in this process."""
    kind, declared = JoinKind(), {name: StreamDeclaration(name=name) for name in _STREAMS}
    join, shards, rows = kind.read(_DOCUMENT, declared.__getitem__), InlineShards(_SHARDS), list[RowBlock]()
    derived = [StreamDeclaration(name=name, derived=True) for name in ("paid", merged_stream("paid"))]
    for declaration in (*declared.values(), *derived):
        shards.append_record(declaration.name, StreamOn(declaration))
    for part in (join, *kind.parts(join, declared.__getitem__)):
        shards.append_record(part.inputs[0].stream, OperatorOn(replace(part, version=1), "fresh"))
    given = list(batches(events))
    begin = time.process_time()
    for number, (stream, batch) in enumerate(given, start=1):
        shards.feed(stream, batch)
        if not number % len(_STREAMS):
            rows += shards.settle()
    rows += shards.finish()
    found = [row.body for block in rows if block.found.kind.name == "derived" for row in block]
    seconds = time.process_time() - begin
    found = sorted(body for body in found if b'"merged":' not in body)
    return seconds, {}, sha256(b"".join([b"%d" % len(found), *found])).digest()


def worker() -> None:
    """For each line of input, a number of events, run one round and print a line with its figures."""
    timekeeper._QUIET_US = 0
    for line in sys.stdin:
        found = {}
        with TemporaryDirectory() as folder:
            for name, (seconds, parts, digest) in (
                ("service", in_service(int(line), Path(folder))),
                ("one process", in_process(int(line))),
            ):
                found[name] = {"seconds": seconds, **parts, "digest": digest.hex()}
        print(orjson.dumps(found).decode(), flush=True)


class _Worker:
    """A process of one checkout."""

    def __init__(self, python: str) -> None:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
        command = [python, str(Path(__file__).resolve()), "--worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def round(self, events: int) -> Mapping[str, Mapping[str, Any]]:
        """Run a round and return its figures."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        given.write(f"{events}\n")
        given.flush()
        while not (line := taken.readline()).startswith("{"):
            if not line:
                raise SystemExit("a worker has ended")
        found: Mapping[str, Mapping[str, Any]] = orjson.loads(line)
        return found

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Print the best CPU seconds of each way to run the join, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000, help="of both streams")
    parser.add_argument("--rounds", type=int, default=3, help="that count; one more comes first")
    parser.add_argument("--before", default="", help="Python of another checkout")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.worker:
        worker()
        return
    pythons = {"before": wanted.before, "after": sys.executable} if wanted.before else {"after": sys.executable}
    workers = {name: _Worker(python) for name, python in pythons.items()}
    rounds = []
    for number in range(wanted.rounds + 1):
        made = {name: one.round(wanted.events if number else wanted.events // 10) for name, one in workers.items()}
        if len({(way, found["digest"]) for one in made.values() for way, found in one.items()}) > len(made["after"]):
            raise SystemExit("the two find different events")
        rounds.append(made)
    for one in workers.values():
        one.end()
    for way in rounds[0]["after"]:
        names = [name for name in rounds[0]["after"][way] if name != "digest"]
        for part in names:
            best = {name: min(made[name][way][part] for made in rounds[1:]) for name in workers}
            ratio = f"  ratio {best['before'] / best['after']:.2f}" if "before" in best else ""
            figures = "  ".join(f"{name} {seconds:7.2f} s" for name, seconds in best.items())
            print(f"{way:12} {part:8}  {figures}  ({wanted.events / best['after']:,.0f} events/s){ratio}")


if __name__ == "__main__":
    main()
