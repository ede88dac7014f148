"""Cost per event of the shared-node engine with its trace table, compared with a kernel that only looks up the trace.

All measurements lead from columns in memory to match columns, on one core. They are the best of several runs in one
process, and the result is their ratios. Run ``python -m benchmarks.shared_engine_speed [name ...]``.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.workload import orders
from nfa.guards.tables import GuardLayout, GuardTables
from nfa.kernels.traces import NIL, UNGUARDED, Columns
from nfa.shared.engine import Findings, SharedEngine, SharedPattern, SharedTransition
from nfa.traces.table import TraceTable, Want

SPREAD = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


@dataclass
class Rig:
    """A trace table and an engine with several patterns."""

    patterns: Sequence[SharedPattern]
    types: int
    ends: Sequence[int] = ()
    tracks_all: bool = False

    def __post_init__(self) -> None:
        self.table, self.engine, self.guards = TraceTable(), SharedEngine(), GuardTables({})
        ranges = np.cumsum([0, *(pattern.states for pattern in self.patterns)]).astype(np.int32)
        self.engine.configure(self.patterns, [NIL] * len(self.patterns), state_range=ranges, types=self.types + 1)
        names = [str(code) for code in range(self.types)]
        layout = GuardLayout(types=names, views=[], state_range=ranges, negation_range=ranges[-1:], start=UNGUARDED)
        self.guards.compile(layout)
        wants = [
            Want(type_code=step.type_code, predicate=step.predicate, opens=step.source == 0)
            for pattern in self.patterns
            for step in pattern.transitions
        ]
        self.table.configure(types=self.types + 1, wants=wants, end_types=self.ends, tracks_all=self.tracks_all)
        self.events = 0

    def process(self, columns: Columns) -> Findings:
        clocks = self.table.clocks(columns.times)
        visits = self.table.advance(columns, self.guards)
        found = self.engine.process(
            visits,
            columns,
            clocks,
            self.guards.tables,
            first_sequence=self.events,
            released=self.table.released,
        )
        self.table.release_closed(self.guards)
        self.events += len(columns.types)
        return found


def chain(codes: Sequence[int], *, predicates: Sequence[int] = (), **options: object) -> SharedPattern:
    """Return a pattern: SEQ of one step per type code."""
    asked = predicates or [0] * len(codes)
    steps = [
        SharedTransition(
            type_code=code,
            source=place,
            target=place + 1,
            alias=place,
            predicate=asked[place],
            accepts=place + 1 == len(codes),
            goes_on=place + 1 < len(codes),
        )
        for place, code in enumerate(codes)
    ]
    size = len(codes) + 1
    pattern = SharedPattern(states=size, terms=[1] * size, depth=range(size), transitions=steps)
    return replace(pattern, **options)  # type: ignore[arg-type]


def shuffle(left: Sequence[int], right: Sequence[int], last: int, asked: dict[int, int]) -> SharedPattern:
    """Return the pattern SEQ(AND(SEQ(left), SEQ(right)), last)."""
    places = list(product(range(len(left) + 1), range(len(right) + 1)))
    steps = []
    for state, (i, j) in enumerate(places):
        if i < len(left):
            steps.append((left[i], state, places.index((i + 1, j)), i))
        if j < len(right):
            steps.append((right[j], state, places.index((i, j + 1)), len(left) + j))
    final = len(places)
    steps.append((last, final - 1, final, len(left) + len(right)))
    transitions = [
        SharedTransition(
            type_code=code,
            source=source,
            target=target,
            alias=alias,
            predicate=asked.get(code, 0),
            accepts=target == final,
            goes_on=target != final,
        )
        for code, source, target, alias in steps
    ]
    depth = [i + j for i, j in places] + [9]
    return SharedPattern(states=final + 1, terms=[1] * len(depth), depth=depth, transitions=transitions)


@njit(cache=True)
def look_up(index: NDArray[np.uint64], columns: Columns) -> int:
    """Find each event's trace and read its columns. This is the null kernel."""
    types, keys, times = columns.types, columns.keys, columns.times
    mask = np.uint64(index.shape[0] - 1)
    total = 0
    for row in range(types.shape[0]):
        key = keys[row]
        slot = (key >> np.uint64(32)) & mask
        while index[slot, 1] != np.uint64(0) and index[slot, 0] != key:
            slot = (slot + np.uint64(1)) & mask
        if index[slot, 1] == np.uint64(0):
            index[slot, 0] = key
            index[slot, 1] = np.uint64(1)
        total += types[row] + times[row]
    return total


def null_time(columns: Columns, keys: int) -> float:
    """Return the seconds of the null kernel if all traces are known."""
    index = np.zeros((1 << (4 * keys // 3).bit_length(), 2), np.uint64)
    look_up(index, columns)
    return best(lambda: look_up(index, columns))


def best(run: Callable[[], object], times: int = 5) -> float:
    """Return the shortest of several runs, in thread seconds, because other processes may use the core."""
    took = []
    for _ in range(times):
        start = time.thread_time()
        run()
        took.append(time.thread_time() - start)
    return min(took)


def mixed(numbers: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return the hashes of key numbers."""
    spread = numbers.astype(np.uint64) * np.uint64(SPREAD)
    spread ^= spread >> np.uint64(31)
    return spread * np.uint64(0xBF58476D1CE4E5B9)


def columns_of(
    types: NDArray[np.integer], keys: NDArray[np.integer], times: NDArray[np.integer], passed: Sequence[object] = ()
) -> Columns:
    """Return a batch of columns. Predicate row 0 is true everywhere."""
    rows = [np.ones(len(types), np.bool_), *(np.asarray(row, np.bool_) for row in passed)]
    codes = types.astype(np.int32)
    return Columns(
        types=codes,
        classes=codes,
        keys=mixed(keys),
        times=times.astype(np.int64),
        passed=np.array(rows, np.bool_),
        cells=np.zeros((0, len(codes)), np.int32),
    )


def workload_w(count: int = 1_000_000, keys: int = 1_000) -> Columns:
    """Return workload W of the comparison with other engines, as columns."""
    rng = random.Random(42)
    rows = []
    for _ in range(count):
        key, code = rng.randrange(keys), rng.randrange(20)
        rng.randrange(10_000)
        rows.append((code, key))
    table = np.array(rows)
    return columns_of(table[:, 0], table[:, 1], np.arange(count) * 1_000)


def measure_w() -> None:
    """Measure workload W."""
    columns = workload_w()
    bare = null_time(columns, 1_000)
    for name, is_next, known in (("ALL", False, 215_366), ("NEXT", True, 38_821)):
        found = 0

        def once(is_next: bool = is_next) -> None:
            nonlocal found
            rig = Rig([chain([0, 1, 2], within_us=60_000_000, is_next=is_next)], 20)
            found = len(rig.process(columns).matches)

        once()
        took = best(once, 9)
        mark = "" if found == known else f" (WRONG: {known})"
        rate = len(columns.types) / took / 1e6
        print(f"W {name}: {found} matches{mark}, {rate:.1f} M events/s, {took / bare:.1f} x null")
        rig = Rig([chain([0, 1, 2], within_us=60_000_000, is_next=is_next)], 20)
        traced = best(lambda rig=rig: (rig.table.advance(columns, rig.guards), rig.table.release_closed(rig.guards)))  # type: ignore[misc]
        print(f"  of this the trace table {traced / took:.0%}")


def order_columns(count: int = 4_000_000) -> tuple[Columns, dict[str, int], Columns]:
    """Return 20,000 orders of the workflow, 10,000 open at a time, repeated with other keys."""
    events = orders(20_000, concurrent=10_000)
    names = sorted({event.type for event in events})
    codes = {name: code for code, name in enumerate(names)}
    types = np.array([codes[event.type] for event in events])
    numbers = {key: number for number, key in enumerate({event.key for event in events})}
    keys = np.array([numbers[event.key] for event in events])
    prices = [np.array([(event.data.get(name) or 0) > 200 for event in events]) for name in ("price", "totalPrice")]
    repeats = -(-count // len(events))
    n = len(events)
    columns = columns_of(
        np.tile(types, repeats)[:count],
        (np.tile(keys, repeats) + np.repeat(np.arange(repeats) * len(numbers), n))[:count],
        np.arange(count),
        [np.tile(row, repeats)[:count] for row in prices],
    )
    null = columns_of(columns.types, np.tile(keys, repeats)[:count], columns.times)
    return columns, codes, null


def measure_orders() -> None:
    """Measure Q1, Q2 and EP1 on orders, without a guard."""
    columns, codes, null = order_columns()
    bare = null_time(null, 20_000)
    n = len(columns.types)
    print(f"orders: {n} events, null kernel {n / bare / 1e6:.0f} M events/s")
    o, q, u, i = (codes[name] for name in ("OrderFromSupplier", "GenerateQuote", "UseRemoteStock", "GenerateInvoice"))
    ends = [codes[name] for name in ("FinishOrder", "CancelOrder", "RejectOrder") if name in codes]
    patterns = {
        "Q1": chain([codes["CheckInventory"], u, i], predicates=[0, 0, 1]),
        "Q2": shuffle([o, q], [u, i], codes["FinishOrder"], {q: 1}),
        "EP1": shuffle([o, q], [u, i], codes.get("CancelOrder", len(codes)), {q: 2}),
    }
    for name, pattern in patterns.items():
        for tracks_all in (False, True):
            found = 0

            def once(pattern: SharedPattern = pattern, tracks_all: bool = tracks_all) -> None:
                nonlocal found
                rig = Rig([pattern], len(codes) + 1, ends, tracks_all)
                found = 0
                for start in range(0, n, 1 << 20):
                    found += len(rig.process(part_of(columns, start, start + (1 << 20))).matches)

            once()
            took = best(once, 3)
            kind = "all traces tracked" if tracks_all else "as needed"
            rate = n / took / 1e6
            print(f"  {name} ({kind}): {rate:.1f} M events/s, {took / bare:.2f} x null, {found} matches")


def part_of(columns: Columns, start: int, end: int) -> Columns:
    """Return the rows of a batch from ``start`` to ``end``."""
    return Columns(
        types=columns.types[start:end],
        classes=columns.classes[start:end],
        keys=columns.keys[start:end],
        times=columns.times[start:end],
        passed=np.ascontiguousarray(columns.passed[:, start:end]),
        cells=np.ascontiguousarray(columns.cells[:, start:end]),
    )


def measure_idle() -> None:
    """Measure many patterns: first with no relevant event, then with events that are relevant to about ten of them."""
    columns = workload_w()

    def took(patterns: Sequence[SharedPattern], types: int = 20) -> float:
        def once() -> None:
            rig.process(columns)

        rig = Rig(patterns, types)
        once()
        return best(once)

    one = chain([0, 1, 2], within_us=60_000_000)
    single, many = took([one]), took([one, *(chain([20 + k % 60, 21, 22]) for k in range(1_000))], 80)
    print(f"1,000 idle patterns beside one: {many / single:.2f} x")
    nothing, idle = took([chain([20, 21, 22])], 80), took([chain([20 + k % 60, 21, 22]) for k in range(1_000)], 80)
    print(f"1,000 idle patterns, none listens: {idle / nothing:.2f} x one idle pattern")
    rng = random.Random(1)
    # 1,000 patterns over 300 types, 3 types each: an event concerns about 10
    wide = columns_of(
        np.array([rng.randrange(300) for _ in range(300_000)]), np.arange(300_000) % 1_000, np.arange(300_000) * 1_000
    )

    def took_wide(count: int) -> float:
        patterns = [chain(rng.sample(range(300), 3), within_us=10_000_000) for _ in range(count)]
        rig = Rig(patterns, 300)
        rig.process(wide)
        return best(lambda: rig.process(wide), 3)

    ten, thousand = took_wide(10), took_wide(1_000)
    rate = 0.3 / thousand
    print(f"1,000 patterns, 10 per event: {rate:.2f} M events/s, {thousand / ten:.1f} x 10 patterns (0.1 per event)")


def measure_open_traces() -> None:
    """Measure different numbers of open traces. The number of events per trace and window stays the same."""
    rng = np.random.default_rng(5)
    took: dict[tuple[int, str], float] = {}
    n = 2_000_000
    mixes = {"one of ten listened": [0.033, 0.033, 0.034, 0.9], "all listened": [0.3, 0.4, 0.3, 0.0]}
    for keys in (10_000, 1_000_000):
        for name, weights in mixes.items():
            rig = Rig([chain([0, 1, 2], within_us=2 * keys)], 3, (), True)
            rig.process(columns_of(rng.integers(0, 2, keys), rng.permutation(keys), np.arange(keys)))
            spent = []
            for turn in range(3):
                types, which = rng.choice(4, n, p=weights), rng.integers(0, keys, n)
                columns = columns_of(types, which, np.arange(keys + turn * n, keys + (turn + 1) * n))
                spent.append(best(lambda rig=rig, columns=columns: rig.process(columns), 1))  # type: ignore[misc]
            took[keys, name] = min(spent)
            bare, stats = null_time(columns, keys), rig.engine.stats
            print(
                f"{keys} traces, {name}: {took[keys, name] / n * 1e9:.1f} ns/event, null {bare / n * 1e9:.1f} ns; "
                f"engine {stats.state_bytes / stats.held:.0f} B/held, "
                f"{stats.held} held, {stats.matches / n / 3:.2f} matches/event"
            )
    for name in mixes:
        print(f"{name}: 1,000,000 open traces {took[1_000_000, name] / took[10_000, name]:.2f} x of 10,000")


def measure_one_trace() -> None:
    """Measure SEQ(A, B, C) in one trace with n events A, n events B and several events C.

    The cost per event should be constant before the first C, and proportional to the matches after it.
    """
    for within in (0, 10**9, 100):
        for n in (10, 100, 1_000, 10_000):
            turns = max(1, 10_000 // n)  # number of traces, so that the number of measured events stays the same
            build = columns_of(
                np.tile(np.repeat([0, 1], n), turns), np.repeat(np.arange(turns), 2 * n), np.arange(2 * n * turns)
            )
            rig = Rig([chain([0, 1, 2], within_us=within)], 3)
            rig.process(build)
            fresh = [Rig([chain([0, 1, 2], within_us=within)], 3) for _ in range(3)]
            before = best(lambda fresh=fresh, build=build: fresh.pop().process(build), 3)  # type: ignore[misc]
            last = columns_of(np.full(20, 2), np.full(20, turns - 1), np.full(20, 2 * n * turns))
            found = rig.process(last)
            took = best(lambda rig=rig, last=last: rig.process(last), 5)  # type: ignore[misc]
            print(
                f"n={n}, within {within}: {before / (2 * n * turns) * 1e9:.0f} ns/event before acceptance, "
                f"{took / max(len(found.matches), 1) * 1e9:.1f} ns/match, {len(found.matches)} matches, "
                f"{found.dropped[:, 2].sum()} dropped, {rig.engine.stats.nodes} nodes"
            )


def measure_dump() -> None:
    """Measure saving and loading a shard."""
    rng = np.random.default_rng(5)
    for within in (0, 10**12):
        rig = Rig([chain([0, 1, 2], within_us=within)], 3)
        n = 2_000_000
        rig.process(columns_of(rng.integers(0, 2, n), rng.integers(0, 200_000, n), np.arange(n)))
        live = rig.engine.stats.state_bytes
        arrays, numbers = rig.table.dump_arrays()
        saved = rig.engine.dump_arrays(numbers)
        size = sum(array.nbytes for array in saved.values())
        dump = best(lambda rig=rig, numbers=numbers: rig.engine.dump_arrays(numbers), 3)  # type: ignore[misc]
        table = best(rig.table.dump_arrays, 3)
        fresh = Rig([chain([0, 1, 2], within_us=within)], 3)
        traces = len(arrays["trace_key"])

        def load_once(
            fresh: Rig = fresh, saved: dict[str, NDArray[Any]] = saved, traces: int = traces, n: int = n
        ) -> None:
            fresh.engine.load_arrays(saved, traces=traces, sequences=n)

        load = best(load_once, 3)
        print(
            f"dump {size / dump / 1e6:.0f} MB/s, load {size / load / 1e6:.0f} MB/s, {size / 1e6:.0f} MB, "
            f"{size / live:.2f} x live, traces' dump {table * 1e3:.0f} ms"
        )


MEASURES = {
    "w": measure_w,
    "orders": measure_orders,
    "idle": measure_idle,
    "traces": measure_open_traces,
    "one": measure_one_trace,
    "dump": measure_dump,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or list(MEASURES):
        MEASURES[name]()
