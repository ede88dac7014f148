"""The Spark pipeline against the same plan with an operator that looks at nothing.

Both read the same log (a private Redis server), in the same session, from offset zero to its end, into fresh
checkpoints, taking turns. So the ratio is what decoding, matching, guarding, explaining and storing state cost on top
of Spark, source, shuffle and state store. The rows of the matching run are collected as the service would store them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.workload import EP1, Q1, Q2, order_constraints, orders
from constraints import to_document
from pipeline import (
    EventLogOptions,
    JobOptions,
    OutputRow,
    RunningQuery,
    SessionOptions,
    Sink,
    build_session,
    start_empty,
    start_query,
    warm_up,
)
from service.intake import Intake
from service.registration import Registration
from service.runtime import Stores, build_stores
from service.stores import connect
from service.testing import private_server, settings_for
from streams import Event, StreamDeclaration, SystemClock, render_plain
from workflows import OrderSettings

ORDERS = 10_000
ROUNDS = 3
EVENTS_PER_REQUEST = 500
SHARDS = 8
ENTRIES = 256  # of a shard in one micro-batch: a backfill wants large ones

Start = Callable[..., RunningQuery]


def main() -> None:
    """Print the ratio."""
    events = orders(ORDERS, settings=OrderSettings(reject=0.0, cancel=0.1))
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        folder = Path(name)
        with private_server(folder) as url, connect(url) as client:
            settings = settings_for(url, shards=SHARDS)
            stores = build_stores(client, url, settings)
            _fill(stores, Registration(stores, settings, SystemClock()), events)
            session = build_session(SessionOptions(data_folder=folder, master="local[2]"))
            warm_up(session)
            seconds: dict[str, list[float]] = {"matching": [], "empty": []}
            starts: dict[str, Start] = {"matching": start_query, "empty": start_empty}
            found: list[OutputRow] = []
            for number in range(ROUNDS + 1):
                for kind, start in starts.items():
                    options = JobOptions(
                        log=EventLogOptions(redis_url=url, shards=SHARDS, max_entries=ENTRIES),
                        checkpoint=folder / f"{kind}-{number}",
                        is_bounded=True,
                    )
                    rows: list[OutputRow] = []
                    begin = time.perf_counter()
                    start(session, options, collector(rows)).wait()
                    seconds[kind] += [time.perf_counter() - begin] if number else []
                    found = rows or found
            session.stop()
    kinds = Counter(str(row.kind) for row in found)
    print(f"Q1, Q2, EP1 with constraints, {len(events):,} events of {ORDERS:,} orders, local[2], {SHARDS} shards")
    print(f"  {kinds['alert']:,} alerts, {kinds['ending']:,} early endings, {ROUNDS} rounds after one to warm up")
    for kind, times in seconds.items():
        print(f"  {kind:10} {median(times):6.2f} s   {len(events) / median(times):10,.0f} events/s")
    print(f"  throughput of the pipeline: {median(seconds['empty']) / median(seconds['matching']):.2f} x the empty one")


def collector(rows: list[OutputRow]) -> Sink:
    """A sink that keeps what it is given."""

    def keep(batch: Sequence[OutputRow], _epoch_id: int) -> None:
        rows.extend(batch)

    return keep


def _fill(stores: Stores, registration: Registration, events: Sequence[Event]) -> None:
    constraint_set = order_constraints()
    registration.declare_stream(StreamDeclaration(name="orders", end_events=tuple(sorted(constraint_set.end_events))))
    registration.upload_constraints("orders", to_document(constraint_set))
    for text in (Q1, Q2, EP1):
        registration.register_pattern("orders", text)
    intake = Intake(stores.log, stores.registry, settings_for("redis://unused").limits, SystemClock())
    for begin in range(0, len(events), EVENTS_PER_REQUEST):
        intake.ingest("orders", [render_plain(event) for event in events[begin : begin + EVENTS_PER_REQUEST]])


if __name__ == "__main__":
    main()
