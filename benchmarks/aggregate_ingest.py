"""Speed and memory of a count and a sum over many groups: events per second of one core, bytes per event in the window.

*columns* measures an aggregate whose input is already in columns. *with reading* starts from batches, as in a shard. A
condition is evaluated after each change, or at the end of each fixed window. Each function is measured in a sliding
window and in fixed windows. Times are thread time, the best of rounds that take turns. Memory is that of the window and
its groups. It is also measured with the index of questions (``ask``), and with earlier values that a condition reads
(``before``).

    scripts/bench aggregate_ingest --events=1000000 --groups=100000
"""

from __future__ import annotations

import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from aggregates import AggregateRun, EventColumns, read_aggregate
from benchmarks.rounds import best_of
from shards.kinds.aggregates import AggregateKind
from shards.kinds.aggregates.host import RunningAggregate
from shards.kinds.aggregates.reading import EventReader, condition_and_bounds
from streams import EventBatch, StreamDeclaration

_BATCH = 10_000
_DOCUMENT = {"of": "sales", "by": ["key"], "values": {"n": "count()", "total": "sum(v)"}, "having": "n >= 8"}
_WINDOWS: dict[str, Any] = {
    "sliding": "10 s",
    "last": {"last": 10},
    "tumbling": {"tumbling": "10 s"},
    "hopping": {"hopping": "10 s", "every": "5 s"},
    "session": {"session": "10 s"},
    "transaction": "transaction",
}
_VALUES = ("stddev(v)", "distinct(v)", "quantile(v, 0.9)", "first(v)", "last(v)", "max(v)", "distinct(key)", "max(key)")
_COLUMNS = 8 + 4 + 8  # bytes of an event's time, group and value
_HELD: dict[str, tuple[dict[str, Any], int]] = {
    "window": ({}, _COLUMNS),
    "with ask": ({"ask": {"by": ["v"]}}, _COLUMNS + 4),
    "with before": ({"having": "n > 2 * before(n, 1 h)"}, _COLUMNS),
}
_HELD |= {
    text: ({"values": {"n": "count()", "x": text}}, _COLUMNS)
    for text in ("avg(v)", "stddev(v)", "sum(v / 7)", "first(v)", "max(v)", "quantile(v, 0.9)", "distinct(v)")
}


def batches_of(events: int, groups: int) -> list[EventBatch]:
    """Return events 100 us apart, with random groups and a column of whole numbers."""
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
    declaration = StreamDeclaration(name="sales")
    reader = EventReader.of(read_aggregate({**_DOCUMENT, "window": "10 s"}))
    batches = batches_of(events, asked.groups)
    columns = [reader.columns(one, declaration) for one in batches]

    def run_of(window: Any) -> AggregateRun:
        body = read_aggregate({**_DOCUMENT, "window": window})
        return AggregateRun(body, *condition_and_bounds(body))

    def of_columns(window: Any, given: Sequence[EventColumns]) -> int:
        run = run_of(window)
        return sum(len(run.process(one)) for one in given)

    def timed(window: Any) -> Callable[[], int]:
        return lambda: of_columns(window, columns)

    functions = {name: timed(window) for name, window in _WINDOWS.items()}
    functions["sliding with reading"] = lambda: of_columns(
        "10 s", [reader.columns(one, declaration) for one in batches]
    )
    for name, best in best_of(functions, asked.rounds).items():
        print(f"{name:20} {events / best.seconds:12,.0f} events/s, {best.result:,} derived")
    for text in _VALUES:
        measure_value(text, batches[: max(1, len(batches) // 5)], asked.rounds)
    for groups in (1_000, asked.groups):
        batches = batches_of(events, groups)
        for name, (more, size) in _HELD.items():
            print(f"{name:16} {memory_of(more, size, batches)}")


def measure_value(text: str, batches: Sequence[EventBatch], rounds: int) -> None:
    """Print the events per second of a function, in a sliding window of 10 s and in fixed windows of 10 s."""
    declaration = StreamDeclaration(name="sales")
    body = read_aggregate({"of": "sales", "by": ["key"], "values": {"n": "count()", "x": text}, "window": "10 s"})
    columns = [EventReader.of(body).columns(one, declaration) for one in batches]

    def taken(window: Any) -> int:
        one = read_aggregate({**_DOCUMENT, "values": {"n": "count()", "x": text}, "window": window})
        run = AggregateRun(one, *condition_and_bounds(one))
        return sum(len(run.process(some)) for some in columns)

    functions = {name: partial(taken, _WINDOWS[name]) for name in ("sliding", "tumbling")}
    for name, best in best_of(functions, rounds).items():
        print(f"{text:18} {name:10} {sum(map(len, columns)) / best.seconds:12,.0f} events/s, {best.result:,} derived")


def memory_of(more: Mapping[str, Any], columns: int, batches: Iterable[EventBatch]) -> str:
    """Return the bytes of an aggregate in a shard per event in its window.

    ``columns`` are the bytes of an event's columns.
    """
    declaration = StreamDeclaration(name="sales")
    document = {"name": "held", **_DOCUMENT, "window": "1 h", **more}
    aggregate = RunningAggregate(AggregateKind().read(document, lambda _: declaration), declaration)
    tracemalloc.start()
    for one in batches:
        aggregate.process(one)
    size, measures = tracemalloc.get_traced_memory()[0], aggregate.measures()
    tracemalloc.stop()
    each = size / measures["held"]
    held = f"{measures['held']:,} held, {measures['groups']:,} groups"
    return f"{each:8,.1f} bytes per held event, {each / columns:6.2f} times its columns ({held})"


if __name__ == "__main__":
    main()
