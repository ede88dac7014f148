"""Speed of the join kernel on columns in memory, one thread: two inputs on one key, with 100,000 keys open at a time.

Each key has one event of each input, the second 100,000 keys after the first. In *closed*, both inputs finish the key
with their event, so both events are removed at once (PWJoin). In *window*, no key is finished, and events leave by
their window (WJoin). The reference is a brute-force join over a part of the same items. Figures are medians of thread
time over rounds that take turns.

    scripts/bench join_speed --keys=500000 --rounds=5
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from statistics import median

import numpy as np

from joins import Item, ItemColumns, Window, WindowJoin
from tests.references.joins import ReferenceJoin

_OPEN = 100_000
_CALL = 10_000
_PART = 400


def items_of(keys: int, open_keys: int, *, closes: bool) -> ItemColumns:
    """Return the events of both inputs, a microsecond apart.

    If ``closes``, each event is followed by the closing of its key.
    """
    first = np.arange(1, keys + 1, dtype=np.uint64)
    second = np.concatenate([np.zeros(open_keys, np.uint64), first[: keys - open_keys]])
    both = np.column_stack([first, second]).ravel()  # key 0 means no key
    inputs = np.tile(np.array([0, 1], np.uint8), keys)
    rows = np.flatnonzero(both)
    hashed = both[rows] * np.uint64(0x9E3779B97F4A7C15)
    times = rows.astype(np.int64)
    if not closes:
        return ItemColumns(
            kinds=np.full(len(rows), Item.EVENT, np.uint8), inputs=inputs[rows], keys=hashed, times_us=times
        )
    kinds = np.tile(np.array([Item.EVENT, Item.CLOSING], np.uint8), len(rows))
    return ItemColumns(
        kinds=kinds, inputs=np.repeat(inputs[rows], 2), keys=np.repeat(hashed, 2), times_us=np.repeat(times, 2)
    )


def played(items: ItemColumns, windows: tuple[Window, Window]) -> tuple[float, int, int]:
    """Run the kernel. Return the seconds, the results, and the maximum number of known keys after a call."""
    join, results, most = WindowJoin(windows), 0, 0
    seconds = 0.0
    for start in range(0, len(items), _CALL):
        part = items.slice(start, start + _CALL)
        begun = time.thread_time()
        found = join.push(part)
        seconds += time.thread_time() - begun
        results += len(found.members)
        most = max(most, join.stats.keys)
    return seconds, results, most


def events_in(items: ItemColumns) -> int:
    """Return the number of events among items."""
    return int(np.count_nonzero(items.kinds == Item.EVENT))


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    cases = {
        "closed": (items_of(wanted.keys, _OPEN, closes=True), (Window(), Window())),
        "closed, with windows": (items_of(wanted.keys, _OPEN, closes=True), (Window("time", 4 * _OPEN),) * 2),
        "window": (items_of(wanted.keys, _OPEN, closes=False), (Window("time", 2 * _OPEN + 2),) * 2),
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    facts: dict[str, tuple[int, int]] = {}
    for number in range(wanted.rounds + 1):
        for name, (items, windows) in cases.items():
            seconds, results, most = played(items, windows)
            facts[name] = results, most
            if number:
                taken[name].append(seconds)
    print(f"{wanted.keys:,} keys, {_OPEN:,} of them open at a time, {wanted.rounds} rounds, {_CALL:,} items a call")
    print("| | events/s | results | keys known at most |\n|---|---|---|---|")
    for name, (items, _) in cases.items():
        results, most = facts[name]
        print(f"| {name} | {events_in(items) / median(taken[name]) / 1e6:.2f} M | {results:,} | {most:,} |")
    _compare_with_the_reference()


def _compare_with_the_reference() -> None:
    items, windows = items_of(_PART, _PART // 10, closes=True), (Window(), Window())
    rows = list(zip(items.kinds, items.inputs, items.keys, items.times_us, strict=True))
    reference = ReferenceJoin(windows)
    begun = time.thread_time()
    for kind, number, key, time_us in rows:
        reference.push(Item(int(kind)), int(number), int(key), int(time_us))
    slow = time.thread_time() - begun
    join = WindowJoin(windows)
    begun = time.thread_time()
    found = join.push(items)
    fast = time.thread_time() - begun
    if sorted(map(tuple, found.members.tolist())) != sorted(members for _, members in reference.results):
        raise SystemExit("the kernel and the reference differ")
    print(f"reference, {_PART:,} keys: {slow / fast:,.0f} times as long")


if __name__ == "__main__":
    main()
