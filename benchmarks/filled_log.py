"""A private event log filled with orders, as after a backfill: large requests, each with one entry per shard."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workload import EP1, Q1, Q2, order_constraints, orders
from constraints import to_document
from service.registering.registration import Registration
from service.runtime import Stores
from service.stores import Submission, connect
from streams import EventBatch, StreamDeclaration, SystemClock, key_hash
from tests.builders.registering import register_pattern
from tests.builders.service import private_server, settings_for
from workflows import OrderSettings

STREAM = "orders"
_MADE_ORDERS = 10_000  # generation takes longer than matching, so further orders are renamed copies


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledLog:
    """A log with control records and events.

    Attributes:
        url: The URL of the Redis server.
        stores: The stores on the server.
        events: The number of events in the log.
    """

    url: str
    stores: Stores
    events: int


@contextmanager
def filled_log(
    folder: Path,
    batches: Iterable[EventBatch],
    *,
    shards: int,
    patterns: Sequence[str] = (Q1, Q2, EP1),
    is_guarded: bool = True,
) -> Iterator[FilledLog]:
    """Run a private server in ``folder`` whose log has the batches, each appended as one request.

    Args:
        folder: The folder for the server's files.
        batches: The events to append.
        shards: The number of shards of the log.
        patterns: The texts of the patterns to register.
        is_guarded: Whether the order workflow's constraints are uploaded.
    """
    with private_server(folder) as url, connect(url) as client:
        settings = settings_for(url, shards=shards, limits={"max_backlog_events": 10**9, "max_log_bytes": 10**12})
        stores = Stores(client, url, settings)
        declare(stores, Registration(stores, settings, SystemClock()), patterns, is_guarded=is_guarded)
        count = sum(append(stores, batch) for batch in batches)
        yield FilledLog(url=url, stores=stores, events=count)


def declare(stores: Stores, registration: Registration, patterns: Sequence[str], *, is_guarded: bool) -> None:
    """Declare the stream of orders, register the patterns, and if ``is_guarded`` upload the constraints."""
    constraint_set = order_constraints()
    registration.declare_stream(StreamDeclaration(name=STREAM, end_events=tuple(sorted(constraint_set.end_events))))
    if is_guarded:
        registration.constraint_sets.upload(STREAM, to_document(constraint_set))
    for text in patterns:
        register_pattern(registration, STREAM, text)


def append(stores: Stores, batch: EventBatch) -> int:
    """Append a batch without the JSON parsing of the HTTP API. Return the number of events."""
    submission = Submission(
        stream=STREAM, batch=batch, dead_letters=(), answer={}, fingerprint="", token=uuid.uuid4().hex
    )
    stores.log.append_events(submission)
    return len(batch)


def order_batches(events: int, *, request: int, settings: OrderSettings | None = None) -> Iterator[EventBatch]:
    """Yield about ``events`` events of orders, 1,000 orders open at a time. Each batch is one request.

    Args:
        events: The number of events, at which the copies of the generated events are cut.
        request: The number of events of a batch.
        settings: The settings of the workflow. By default, one order in ten is cancelled.
    """
    chosen = OrderSettings(reject=0.0, cancel=0.1) if settings is None else settings
    made = EventBatch.from_events(orders(min(_MADE_ORDERS, max(1, events // 18)), settings=chosen))
    left, copy = events, 0
    while left > 0:
        part = renamed(made, copy).slice(0, min(left, len(made)))
        yield from (part.slice(start, min(request, len(part) - start)) for start in range(0, len(part), request))
        left, copy = left - len(part), copy + 1


def renamed(batch: EventBatch, copy: int) -> EventBatch:
    """Return the same events with other orders and later times."""
    if copy == 0:
        return batch
    columns = {name: batch.columns.column(name) for name in batch.columns.schema.names}
    prefix, times = pa.scalar(f"{copy}-"), batch.time_us
    keys = columns["key"].dictionary_encode()
    names = pc.binary_join_element_wise(prefix, keys.dictionary, "")
    hashes = np.array([key_hash(name) for name in names.to_pylist()], np.uint64)
    places = keys.indices.to_numpy()
    span_us = int(times.max() - times.min()) + 1
    columns |= {
        "id": pc.binary_join_element_wise(prefix, columns["id"], ""),
        "time": pa.array(times + copy * span_us).cast(columns["time"].type),
        "key": names.take(keys.indices),
        "key_hash": pa.array(hashes[places]),
    }
    return EventBatch(pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.columns.schema))
