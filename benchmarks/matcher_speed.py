"""Speed of the whole matcher on workload W and on orders, from columns in memory to match columns, on one core.

W has 1,000,000 events, one a millisecond, with 1,000 keys and 20 types. The benchmark checks that ``SEQ(T0, T1, T2)``
on one key within 60 s has 215,366 matches with ALL MATCHES, and 38,821 with NEXT. The order queries are Q1, Q2 and EP1,
with and without the workflow's constraints. Each run is compared with the *null* run, which only looks up the trace of
every event (twice the minimum work of any stateful matcher). Figures are medians of thread time over rounds that take
turns.

The cost of the run engine, which has a run per partial match instead of shared nodes, is measured with the same query
and a condition between steps that is always true.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.workload import EP1, Q1, Q2, decoded, order_constraints, orders
from constraints import Monitor
from nfa import Matcher
from streams import EventBatch, kernel_digest, key_hash
from streams.batch import SCHEMA

EVENTS, KEYS, TYPES = 1_000_000, 1_000, 20
ORDERS = 50_000
ROUNDS = 5
ROWS = 262_144
W = "PATTERN w EVENT SEQ(T0 a, T1 b, T2 c) WITHIN 60 s"
W_RUNS = "PATTERN w EVENT SEQ(T0 a, T1 b [value >= a.value OR value < a.value], T2 c) WITHIN 60 s"
EXPECTED = {"all": 215_366, "next": 38_821}


def workload_w(count: int = EVENTS) -> EventBatch:
    """Return workload W as one batch, with the attribute ``value`` as a column."""
    rng = random.Random(42)
    keys, types, values = [], [], []
    for _ in range(count):
        keys.append(rng.randrange(KEYS))
        types.append(rng.randrange(TYPES))
        values.append(rng.randrange(10_000) / 100)
    names = [f"k{number}" for number in range(KEYS)]
    hashes = np.array([key_hash(name) for name in names], np.uint64)
    times = np.arange(count, dtype=np.int64) * 1_000 + 1_700_000_000_000_000
    dictionary = pa.DictionaryArray.from_arrays(pa.array(types, pa.int32()), pa.array([f"T{n}" for n in range(TYPES)]))
    columns = pa.RecordBatch.from_arrays(
        [
            pa.array([f"e{number}" for number in range(count)]),
            dictionary,
            pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            pa.array([names[key] for key in keys]),
            pa.array(hashes[keys]),
            pa.array([b"{}"] * count, pa.binary()),
        ],
        schema=SCHEMA,
    )
    return EventBatch(columns, {("value",): pa.array(values, pa.float64())})


def matches_in(matcher: Matcher, batch: EventBatch) -> int:
    """Return the number of matches of a fresh matcher. The events are passed in batches of ``ROWS``."""
    parts = (batch.slice(start, min(ROWS, len(batch) - start)) for start in range(0, len(batch), ROWS))
    return sum(matcher.process(part).n_matches for part in parts)


def unguarded(text: str, end_events: Collection[str] = ()) -> Matcher:
    """Return a matcher of one pattern without constraints."""
    matcher = Matcher(end_events=end_events, tracks="bound")
    matcher.add_pattern(text)
    return matcher


def taking_turns(
    matchers: dict[str, Callable[[], Matcher]], batch: EventBatch
) -> tuple[dict[str, float], dict[str, int]]:
    """Return median seconds and matches of each matcher. The matcher's tables are built before the clock starts."""
    found: dict[str, int] = {}
    seconds: dict[str, list[float]] = {name: [] for name in matchers}
    for number in range(ROUNDS + 1):
        for name, make in matchers.items():
            matcher = make()
            matcher.process(batch.slice(0, 0))
            begin = time.thread_time()
            found[name] = matches_in(matcher, batch)
            if number:
                seconds[name].append(time.thread_time() - begin)
    return {name: median(taken) for name, taken in seconds.items()}, found


def report(title: str, batch: EventBatch, matchers: dict[str, Callable[[], Matcher]]) -> dict[str, int]:
    """Print events/s and the ratio to the null run. Return the number of matches of each matcher."""
    seconds, found = taking_turns(matchers, batch)
    print(f"\n{title}, {len(batch):,} events")
    for name, taken in seconds.items():
        ratio = taken / seconds["null"]
        print(f"  {name:24} {len(batch) / taken / 1e6:8.1f} M events/s   {ratio:5.2f} x null   {found[name]:,} matches")
    return found


def measure_w() -> None:
    """Measure workload W."""
    found = report(
        "W",
        workload_w(),
        {
            "all": lambda: unguarded(W),
            "next": lambda: unguarded(W + " SELECT NEXT"),
            "all, run engine": lambda: unguarded(W_RUNS),
            "next, run engine": lambda: unguarded(W_RUNS + " SELECT NEXT"),
            "null": Matcher,
        },
    )
    for name, wanted in EXPECTED.items():
        if found[name] != wanted:
            raise SystemExit(f"W {name}: {found[name]:,} matches instead of {wanted:,}")


def measure_orders() -> None:
    """Measure Q1, Q2 and EP1, with and without constraints."""
    batch = decoded(orders(ORDERS, concurrent=10_000), ["price", "totalPrice"])
    constraint_set = order_constraints()
    monitor, ends = Monitor(constraint_set), constraint_set.end_events

    def guarded(text: str) -> Matcher:
        matcher = Matcher(end_events=ends)
        matcher.add_pattern(text)
        matcher.set_guard(1, monitor)
        return matcher

    matchers: dict[str, Callable[[], Matcher]] = {}
    for name, text in (("Q1", Q1), ("Q2", Q2), ("EP1", EP1)):
        matchers[name] = lambda text=text: unguarded(text, ends)  # type: ignore[misc]
        matchers[f"{name}, 533 constraints"] = lambda text=text: guarded(text)  # type: ignore[misc]
    matchers["null"] = lambda: Matcher(end_events=ends)
    report("orders, 10,000 at a time", batch, matchers)


def main() -> None:
    """Print all measurements."""
    print(f"kernels {kernel_digest()}, medians of {ROUNDS} rounds")
    measure_w()
    measure_orders()


if __name__ == "__main__":
    main()
