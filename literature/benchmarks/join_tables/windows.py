"""W1 to W4 and M0 to M3: PWJoin and MPWJoin against WJoin and MWJoin, with windows.

Times are thread times once windows are full, the least of several alternating rounds. WJoin has a fixed number of
buckets, and the table of keys of PWJoin grows; so times are compared twice: with 64 buckets, and with the number of
PWJoin's slots.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins import Cause, Item, ItemColumns, Window, WindowJoin
from literature.benchmarks.join_tables.runs import (
    Shown,
    SpillingCase,
    WindowedRun,
    comparisons_of_look_ups,
    run_spilling,
    run_windowed,
    spread,
    steady_seconds,
    two,
)
from tests.builders.joins import GeneratedStream, generated

_SECOND = 1_000_000
_DROPPABLE = 0.533  # share of the events of three of four inputs, which is 40 % of all


def of_seconds(seconds: float, inputs: int = 2) -> list[Window]:
    """Windows of time for all inputs."""
    return [Window("time", int(seconds * _SECOND))] * inputs


def slots_of(run: WindowedRun) -> int:
    """The number of slots in PWJoin's table of keys."""
    assert isinstance(run.join, WindowJoin)
    return len(run.join._state.slots)


def time_ratios(items: ItemColumns, windows: list[Window], slots: int, rounds: int) -> str:
    """Ratios of PWJoin's time to WJoin's, with 64 buckets and with the number of slots."""
    hashed, cases = spread(items), {"aware": None, "64": 64, "slots": slots}
    least = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds + 1):  # the first one warms up
        for name, buckets in cases.items():
            least[name] = min(least[name], steady_seconds(hashed, windows, buckets))
    return f"{least['aware'] / least['64']:.2f}; {slots:,}: {least['aware'] / least['slots']:.2f}"


def state_and_work(seconds: float, rounds: int) -> Iterator[Shown]:
    """W1, W2: a punctuation every 100 events."""
    items = two(seconds, 1, GeneratedStream(spacing=100))
    states, expected = {}, {1: "760 / 1,000", 5: "1,040 / 5,000", 15: "1,040 / 15,100"}
    for span in (1, 5, 15):
        windows = of_seconds(span)
        aware, plain = run_windowed(items, windows), run_windowed(items, windows, 64)
        assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
        states[span] = np.mean(aware.state), np.mean(plain.state)
        yield "W1", f"PWJoin / WJoin held, {span} s", "{:,.0f} / {:,.0f}".format(*states[span]), expected[span]
        if span == 1:
            continue
        compared = plain.plain.comparisons / plain.plain.events
        mine = comparisons_of_look_ups(items, windows)
        shown = f"{mine:.2f} / {compared:.1f}: {compared / mine:.0f} times as many"
        yield "W2", f"comparisons an event, {span} s, 64 buckets", shown, "the ratio grows with the window"
        ratios = time_ratios(items, windows, slots_of(aware), rounds)
        yield "W2", f"time to WJoin's with 64 buckets, {span} s", ratios, "about 1; less with the large window"


def useless(seconds: float, rounds: int) -> Iterator[Shown]:
    """W3: punctuations of keys that never occur."""
    stream = GeneratedStream(spacing=30, is_useless=True, advance=30)
    items, windows = two(seconds, 1, stream), of_seconds(5)
    aware = run_windowed(items, windows)
    closings = int(np.count_nonzero(items.kinds == Item.CLOSING))
    more = aware.aware.lookups - aware.aware.events
    yield "W3", "look-ups for each useless punctuation", f"{more / closings:.2f}", "1"
    ratios = time_ratios(items, windows, slots_of(aware), rounds)
    yield "W3", "time to WJoin's with 64 buckets", ratios, "at most 1"


def lagging(seconds: float, seeds: int) -> Iterator[Shown]:
    """W4: the second stream's keys lag 1.3 s, more than the window of 1 s. Means of seeds."""
    found = np.mean([_lagging_run(seconds, seed) for seed in range(1, seeds + 1)], axis=0)
    over, over_unwindowed, assisted, earlier, dropped, held, held_plain = found.tolist()
    yield "W4", "keys over, PWJoin / PJoin", f"{over:,.0f} / {over_unwindowed:,.0f}", "1,005 / 975"
    yield "W4", "of PWJoin, assisted by the window", f"{100 * assisted / over:.0f} %", "100 %"
    yield "W4", "earlier than PJoin, mean", f"{earlier:.2f} s", "0.3 s"
    yield "W4", "events dropped", f"{100 * dropped:.0f} %", "40 %"
    yield "W4", "PWJoin / WJoin held", f"{held:,.0f} / {held_plain:,.0f}", "500 / 1,000"


def _lagging_run(seconds: float, seed: int) -> list[float]:
    spacing, gap = 30, 2_000.0
    behind = round(1.3e6 / (spacing * gap))
    streams = GeneratedStream(spacing=spacing), GeneratedStream(spacing=spacing, shift=-behind)
    items, windows = two(seconds, seed, *streams), of_seconds(1)
    aware, plain = run_windowed(items, windows), run_windowed(items, windows, 64)
    assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
    unwindowed = run_spilling(items, SpillingCase(propagation="push"))
    both = aware.over_us.keys() & unwindowed.over_us.keys()
    earlier = float(np.mean([unwindowed.over_us[key] - aware.over_us[key] for key in both])) / 1e6
    assisted, dropped = float(aware.causes[Cause.WINDOW_ASSISTED]), aware.aware.dropped / aware.aware.events
    held = float(np.mean(aware.state)), float(np.mean(plain.state))
    return [len(aware.over_us), len(unwindowed.over_us), assisted, earlier, dropped, *held]


def without_punctuations(seconds: float, rounds: int) -> Iterator[Shown]:
    """M0: no punctuations; some keys and events of each input."""
    for inputs in (2, 4):
        stream = GeneratedStream(gap_us=1_000.0 * inputs, active=2_000, spacing=0, advance=2)
        items, windows = generated([stream] * inputs, seconds, 1), of_seconds(5, inputs)
        aware = run_windowed(items, windows)
        ratios = time_ratios(items, windows, slots_of(aware), rounds)
        keys = aware.aware.keys
        yield "M0", f"time to WJoin's with 64 buckets, {inputs} inputs", ratios, "at most 1.05"
        yield "M0", f"keys known at the end, {inputs} inputs", f"{keys:,}", "bounded by the window"


def many_inputs(seconds: float, rounds: int) -> Iterator[Shown]:
    """M1, M2: four inputs; an event matches ten or two events of each other input."""
    cases = {
        "M1": (GeneratedStream(gap_us=10_000.0, active=50, spacing=10), "slightly below 1"),
        "M2": (GeneratedStream(gap_us=10_000.0, active=250, spacing=10, advance=2), "much below 1"),
    }
    for name, (stream, expected) in cases.items():
        items, windows = generated([stream] * 4, seconds if name == "M2" else min(seconds, 30), 1), of_seconds(10, 4)
        aware = run_windowed(items, windows)
        plain = run_windowed(items, windows, slots_of(aware))
        assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
        mine, theirs = aware.aware, plain.plain
        closings = int(np.count_nonzero(items.kinds == Item.CLOSING))
        each = f"{(mine.lookups - closings) / mine.events:.2f} / {theirs.lookups / theirs.events:.2f}"
        yield name, "look-ups an event, MPWJoin / MWJoin", each, "1 / up to 4"
        yield (
            name,
            "results an event",
            f"{mine.results / mine.events:.1f}",
            "up to 1,000" if name == "M1" else "up to 8",
        )
        ratios = time_ratios(items, windows, slots_of(aware), rounds)
        yield name, "time to MWJoin's with 64 buckets", ratios, expected


def droppable_items(seconds: float, seed: int) -> ItemColumns:
    """Four streams of 100 events a second; the first closes keys, the others often have keys closed 10 s ago."""
    punctuated = generated([GeneratedStream(gap_us=10_000.0, active=50, spacing=10)], seconds, seed)
    closed_at = punctuated.times_us[punctuated.kinds == Item.CLOSING]
    chance = np.random.default_rng(seed + 1)
    parts = [punctuated]
    for number in (1, 2, 3):
        times = np.cumsum(chance.exponential(10_000.0, int(seconds * 150))).astype(np.int64)
        times = times[times < seconds * _SECOND]
        lowest = np.searchsorted(closed_at, times, side="right")
        old = np.searchsorted(closed_at, times - 10 * _SECOND, side="right")
        keys = lowest + chance.integers(0, 50, len(times))
        is_old = (chance.random(len(times)) < _DROPPABLE) & (old > 0)
        keys[is_old] = (chance.random(len(times)) * old).astype(np.int64)[is_old]
        parts.append(
            ItemColumns(
                kinds=np.full(len(times), Item.EVENT, np.uint8),
                inputs=np.full(len(times), number, np.uint8),
                keys=keys.astype(np.int64).view(np.uint64),
                times_us=times,
            )
        )
    names = ("kinds", "inputs", "keys", "times_us")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.argsort(joined["times_us"], kind="stable")
    return ItemColumns(**{name: np.ascontiguousarray(column[order]) for name, column in joined.items()})


def droppable(seconds: float, rounds: int) -> Iterator[Shown]:
    """M3: one of four inputs has punctuations; two fifths of the input can be dropped."""
    items, windows = droppable_items(seconds, 1), of_seconds(10, 4)
    aware = run_windowed(items, windows)
    plain = run_windowed(items, windows, slots_of(aware))
    lost = plain.results - aware.results
    is_equal = aware.checksum == plain.checksum
    yield "M3", "results an event", f"{plain.results / plain.plain.events:.1f}", ""
    yield "M3", "results lost", f"{lost}, the same: {is_equal}", "0"
    dropped = aware.aware.dropped / aware.aware.events
    yield "M3", "events dropped", f"{100 * dropped:.0f} %", "40 % are droppable"
    half = len(aware.state) // 2
    saved = 1 - np.mean(aware.state[half:]) / np.mean(plain.state[half:])
    yield "M3", "held less than MWJoin, second half", f"{100 * saved:.0f} %", "at least 30 %"
    ratios = time_ratios(items, windows, slots_of(aware), rounds)
    yield "M3", "time to MWJoin's with 64 buckets", ratios, "much below 1"


def tables(seconds: float, seeds: int, rounds: int) -> Iterator[Shown]:
    """All tables of W and M."""
    yield from state_and_work(seconds, rounds)
    yield from useless(seconds, rounds)
    yield from lagging(seconds, seeds)
    yield from without_punctuations(seconds, rounds)
    yield from many_inputs(seconds, rounds)
    yield from droppable(seconds, rounds)
