"""Reads and writes of a spilling join, in events, with and without fences and announcements.

The first input has one event of each key, in no order, and ends. The second one has one event of each key, range by
range, and finishes each range after its events; the join has a tenth of the events in memory, and is idle five times in
each range.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from joins import Item, ItemColumns
from literature.benchmarks.join_tables.runs import Shown
from literature.punctuations import Anything, FinitePunctuation, Range, Scope
from literature.spilling import SpillingJoin, SpillingRules, Thresholds

_RANGE = 1_000
_STEP = 200
_SHIFT = 7_919  # odd and not 5, so that each key comes once


def _run(keys: int, block: int, announced: str) -> SpillingJoin:
    """Run the join; announcements are ``none``, ``true``, or ``false``, which name other ranges."""
    with tempfile.TemporaryDirectory() as folder:
        thresholds = Thresholds(memory_events=keys // 10, block_events=block)
        join = SpillingJoin(Path(folder), rules=SpillingRules(buckets=16), thresholds=thresholds)
        join.push(ItemColumns.of([(Item.EVENT, 0, key * _SHIFT % keys, 0) for key in range(keys)]))
        join.push(ItemColumns.of([(Item.CLOSING, 0, 0, 0)]), [Anything()])
        for low in range(0, keys, _RANGE):
            if announced != "none":
                said = low if announced == "true" else (low + keys // 2) % keys
                pattern = Range(low=said, high=said + _RANGE - 1)
                join.announce(1, FinitePunctuation(pattern=pattern, scope=Scope(events=_RANGE)), 1)
            for first in range(low, low + _RANGE, _STEP):
                join.push(ItemColumns.of([(Item.EVENT, 1, key, 1) for key in range(first, first + _STEP)]))
                join.idle(thresholds.activation_us)
            join.push(ItemColumns.of([(Item.CLOSING, 1, 0, 1)]), [Range(high=low + _RANGE - 1)])
        join.finish()
    return join


def tables(keys: int) -> Iterator[Shown]:
    """Reads and writes of each variant."""
    ways = {
        "whole buckets": (keys, "none"),
        "fences": (128, "none"),
        "fences, announced": (128, "true"),
        "fences, announced wrongly": (128, "false"),
    }
    for name, (block, announced) in ways.items():
        join = _run(keys, block, announced)
        stats, traffic = join.stats, join.traffic
        results = stats.memory_results + stats.disk_results
        assert results == keys
        each = f"{traffic.read_events / keys:.1f} / {traffic.written_events / keys:.1f}"
        yield "H", f"{name}: events read / written for a result", each, ""
        yield "H", f"{name}: results found at once", f"{100 * stats.memory_results / keys:.0f} %", ""
        if traffic.read_back:
            shown = f"{100 * traffic.hits / traffic.read_back:.0f} % / {traffic.stalls:,}"
            yield "H", f"{name}: read back in time and used / stalls", shown, ""
