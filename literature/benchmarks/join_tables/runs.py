"""Runs of the joins over generated items, with their state and work after each call."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from joins import Item, ItemColumns, JoinStats, Window, WindowJoin
from literature.baselines import HashWindowJoin, HashWindowStats
from literature.punctuations import OneOf, Pattern, constant
from literature.spilling import Configurator, SpillingJoin, SpillingRules, SpillingStats, Thresholds, default_rows
from tests.builders.joins import GeneratedStream, generated

CALL = 100
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
Shown = tuple[str, str, str, str]  # table, what, measured, expected


@dataclass(kw_only=True)
class SpillingRun:
    """Measurements of a spilling join.

    Attributes:
        stats: Counts at the end.
        state: (calls, 2) retained events of each input after each call.
        work: Key comparisons and scanned events up to each call.
        over_us: Time at which each key was propagated.
    """

    stats: SpillingStats
    state: NDArray[np.int64]
    work: NDArray[np.int64]
    over_us: dict[int, int]


@dataclass(frozen=True, kw_only=True)
class SpillingCase:
    """Settings of a spilling join; ``purge`` None: XJoin; ``is_tuned``: rules change thresholds and registry."""

    purge: int | None = 1
    buckets: int = 64
    placement: str = "modulo"
    propagation: str = "none"
    is_tuned: bool = False


def with_patterns(items: ItemColumns) -> tuple[ItemColumns, list[Pattern]]:
    """Items whose closings have places of patterns as keys, and the patterns."""
    is_closing = items.kinds == Item.CLOSING
    patterns: list[Pattern] = [constant(key) for key in items.keys[is_closing].view(np.int64).tolist()]
    keys = items.keys.copy()
    keys[is_closing] = np.arange(len(patterns), dtype=np.uint64)
    return replace(items, keys=keys), patterns


def run_spilling(items: ItemColumns, case: SpillingCase) -> SpillingRun:
    """Push items into PJoin with scans, or into XJoin."""
    is_aware = case.purge is not None
    rules = SpillingRules(
        buckets=case.buckets,
        purge="scan",
        placement=case.placement,  # type: ignore[arg-type]
        uses_punctuations=is_aware,
    )
    rows = default_rows(case.propagation, purges=is_aware)  # type: ignore[arg-type]
    state, work, over = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        thresholds = Thresholds(purge_punctuations=case.purge or 1)
        configurator = Configurator("none") if case.is_tuned else None
        join = SpillingJoin(
            Path(folder) / "spilled", rules=rules, thresholds=thresholds, rows=rows, configurator=configurator
        )
        for start in range(0, len(items), CALL):
            found = join.push(*with_patterns(items.slice(start, start + CALL)))
            state.append(join.held)
            stats = join.stats
            work.append(stats.comparisons + stats.scans)
            for said in found.propagated:
                if isinstance(said.pattern, OneOf):
                    over.update({int(key): said.time_us for key in said.pattern.values})
    return SpillingRun(stats=join.stats, state=np.array(state), work=np.array(work), over_us=over)


@dataclass(kw_only=True)
class WindowedRun:
    """Measurements of a windowed join.

    Attributes:
        join: The join at the end.
        state: Retained events after each call.
        results: Number of combinations.
        checksum: Checksum of all combinations, independent of their order.
        over_us: Time at which each key was reported as over.
        causes: Number of keys by cause.
    """

    join: WindowJoin | HashWindowJoin
    state: list[int] = field(default_factory=list)
    results: int = 0
    checksum: int = 0
    over_us: dict[int, int] = field(default_factory=dict)
    causes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))

    @property
    def aware(self) -> JoinStats:
        """Counts of PWJoin or MPWJoin."""
        assert isinstance(self.join, WindowJoin)
        return self.join.stats

    @property
    def plain(self) -> HashWindowStats:
        """Counts of WJoin or MWJoin."""
        assert isinstance(self.join, HashWindowJoin)
        return self.join.stats


def spread(items: ItemColumns) -> ItemColumns:
    """Items with hashed keys, as windowed joins expect them."""
    return replace(items, keys=items.keys * _SPREAD)


def windowed(windows: list[Window], buckets: int | None) -> WindowJoin | HashWindowJoin:
    """A PWJoin or MPWJoin; with buckets, a WJoin or MWJoin."""
    return WindowJoin(windows) if buckets is None else HashWindowJoin(windows, buckets=buckets)


def run_windowed(items: ItemColumns, windows: list[Window], buckets: int | None = None) -> WindowedRun:
    """Push items with integer keys into a windowed join."""
    run = WindowedRun(join=windowed(windows, buckets))
    back = np.uint64(pow(int(_SPREAD), -1, 1 << 64))
    weights = np.array([3, 5, 17, 257], np.uint64)[: len(windows)]
    hashed = spread(items)
    for start in range(0, len(items), CALL):
        found = run.join.push(hashed.slice(start, start + CALL))
        run.state.append(run.join.stats.stored)
        run.results += len(found.members)
        mixed = (found.members.view(np.uint64) * weights).sum(axis=1, dtype=np.uint64)
        run.checksum ^= int(np.bitwise_xor.reduce((mixed * _SPREAD) ^ (mixed >> np.uint64(7)), initial=0))
        keys = (found.closing_keys * back).view(np.int64).tolist()
        run.over_us.update(zip(keys, found.closing_times_us.tolist(), strict=True))
        run.causes += np.bincount(found.closing_causes, minlength=3)
    return run


def steady_seconds(items: ItemColumns, windows: list[Window], buckets: int | None) -> float:
    """Thread time for hashed items in seconds, without the first third, in which windows fill and arrays grow."""
    join, warm = windowed(windows, buckets), len(items) // 3
    seconds = 0.0
    for start in range(0, len(items), 1_000):
        part = items.slice(start, start + 1_000)
        begun = time.thread_time()
        join.push(part)
        if start >= warm:
            seconds += time.thread_time() - begun
    return seconds


def comparisons_of_look_ups(items: ItemColumns, windows: list[Window], every: int = 7) -> float:
    """The mean number of keys that a look-up of PWJoin compares, measured at each ``every``-th item."""
    join, hashed = WindowJoin(windows), spread(items)
    compared = measured = 0
    for start in range(0, len(items), every):
        now = np.array([hashed.times_us[start]])
        join.push(
            ItemColumns(
                kinds=np.array([Item.TIME], np.uint8),
                inputs=np.zeros(1, np.uint8),
                keys=np.zeros(1, np.uint64),
                times_us=now,
            )
        )
        compared += _probes(join._state.slots, int(hashed.keys[start]))
        measured += 1
        join.push(hashed.slice(start, start + every))
    return compared / measured


def _probes(slots: NDArray[np.uint64], key: int) -> int:
    mask = len(slots) - 1
    slot, count = (key >> 32) & mask, 0
    while slots[slot, 1]:
        count += 1
        if int(slots[slot, 0]) == key:
            break
        slot = (slot + 1) & mask
    return count


def two(seconds: float, seed: int, first: GeneratedStream, second: GeneratedStream | None = None) -> ItemColumns:
    """Items of two streams, which are alike unless ``second`` is given."""
    return generated([first, second or first], seconds, seed)
