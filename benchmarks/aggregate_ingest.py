"""Speed and memory of a sliding count and sum over many groups: events per second of one core, bytes per held event.

*rows*: an object for each event, as windows that cannot be columns take them in. *columns*: what the kernel takes in.
*with reading*: from batches, as a shard takes them in. A condition is examined after each change. Best times of rounds
that take turns, thread time; each engine counts its derived events, which are as many. Memory is that of the window and
its groups.

    scripts/bench aggregate_ingest --events=1000000 --groups=100000
"""

from __future__ import annotations

import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from aggregates import AggregateRun, EventRows, SlidingRun, read_aggregate
from benchmarks.rounds import best_of
from shards.kinds.aggregates.reading import EventReader, condition_and_bounds
from streams import EventBatch, StreamDeclaration

_BATCH = 10_000
_ROWS = 10  # one part of the events in this number is enough for rows
_DOCUMENT = {"of": "sales", "by": ["key"], "values": {"n": "count()", "total": "sum(v)"}, "having": "n >= 8"}
_COLUMNS = 8 + 4 + 8  # bytes of an event's time, group and value


def batches_of(events: int, groups: int) -> list[EventBatch]:
    """Events 100 us apart, each of a group drawn at random, with a column of whole numbers."""
    chance = np.random.default_rng(7)
    keys = chance.integers(0, groups, events)
    names = pa.array([f"k{number}" for number in range(groups)])
    types = pa.array(["A"] * _BATCH).dictionary_encode()
    found = []
    for first in range(0, events, _BATCH):
        some = keys[first : first + _BATCH]
        numbers, size = np.arange(first, first + len(some)), len(some)
        ids, data = pa.array([f"e{number}" for number in numbers.tolist()]), pa.array([b"{}"] * size, pa.binary())
        batch = EventBatch.of_columns(ids, types[:size], numbers * 100, names.take(pa.array(some)), data)
        found.append(EventBatch(batch.columns, {("v",): pa.array(numbers % 97)}))
    return found


def main() -> None:
    """Print the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    events = 20_000 if asked.quick else asked.events
    body, declaration = read_aggregate({**_DOCUMENT, "window": "10 s"}), StreamDeclaration(name="sales")
    (holds, bounds), reader = condition_and_bounds(body), EventReader.of(body)
    batches = batches_of(events, asked.groups)
    few = batches[: max(1, len(batches) // _ROWS)]
    rows, columns = [reader.rows(one, declaration) for one in few], [reader.columns(one) for one in batches]

    def of_rows(given: list[EventRows]) -> int:
        run = AggregateRun(body, holds)
        return sum(len(run.process(one)) for one in given)

    def of_columns() -> int:
        run = SlidingRun(body, holds, bounds)
        return sum(len(run.process(one)) for one in columns)

    def of_batches() -> int:
        run = SlidingRun(body, holds, bounds)
        return sum(len(run.process(reader.columns(one))) for one in batches)

    timed = {
        "rows": lambda: of_rows(rows),
        "rows with reading": lambda: of_rows([reader.rows(one, declaration) for one in few]),
        "columns": of_columns,
        "columns with reading": of_batches,
    }
    counts = dict(zip(timed, (sum(map(len, few)), sum(map(len, few)), events, events), strict=True))
    for name, best in best_of(timed, asked.rounds).items():
        print(f"{name:20} {counts[name] / best.seconds:12,.0f} events/s, {best.result:,} derived")
    long = read_aggregate({**_DOCUMENT, "window": "1 h"})
    for groups in (1_000, asked.groups):
        batches = batches_of(events, groups)
        print(f"columns              {memory_of(SlidingRun(long, holds, bounds), reader.columns, batches)}")
    read = partial(reader.rows, declaration=declaration)
    print(f"rows                 {memory_of(AggregateRun(long, holds), read, few)}")


def memory_of(run: Any, read: Callable[[EventBatch], Any], batches: Iterable[EventBatch]) -> str:
    """Bytes of a run for each event that it holds."""
    tracemalloc.start()
    for one in batches:
        run.process(read(one))
    size, measures = tracemalloc.get_traced_memory()[0], run.measures()
    tracemalloc.stop()
    each = size / measures["held"]
    held = f"{measures['held']:,} held, {measures['groups']:,} groups"
    return f"{each:8,.1f} bytes per held event, {each / _COLUMNS:6.2f} times its columns ({held})"


if __name__ == "__main__":
    main()
