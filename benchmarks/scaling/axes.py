"""Axes of the plots: patterns, open traces, windows, steps, constraints. All points run in one thread, on columns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.copies import repeated
from benchmarks.matcher_speed import workload_w
from benchmarks.scaling.flows import Flow, matches_seen, measured, stretches_of
from benchmarks.scaling.made import batch_of, uniform
from benchmarks.scaling.points import Point
from benchmarks.workload import EP1, Q1, Q2, decoded, order_constraints, orders
from constraints import ConstraintSet, Monitor
from nfa import Matcher, Tracked

_KEYS, _TYPES, _WIDE_TYPES = 1_000, 20, 300
_WINDOW = 10_000  # events that fit in 10 s


def patterns(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the number of patterns, over types that never, often or seldom occur."""
    counts = (1, 10, 100) if is_quick else (1, 3, 10, 30, 100, 300, 1_000)
    rounds, longest = (3, 50_000) if is_quick else (5, 200_000)
    narrow = uniform(2 * _WINDOW + rounds * longest, types=_TYPES, keys=_KEYS, seed=42)
    wide = uniform(2 * _WINDOW + rounds * longest, types=_WIDE_TYPES, keys=_KEYS, seed=42)
    rng = random.Random(42)
    for count in counts:
        flows = []
        for series, batch, texts, work in (
            ("one listens, the others' types never come", narrow, _idle(count), 1),
            (f"each listens to 3 of {_WIDE_TYPES} types", wide, _listening(count, _WIDE_TYPES, rng), count // 10),
            (f"each listens to 3 of {_TYPES} types", narrow, _listening(count, _TYPES, rng), count),
        ):
            rows = min(max(20_000, 15 * longest // max(work, 1)), longest)
            warm_up, stretches = stretches_of(batch, 2 * _WINDOW, rows, rounds)
            matcher = _with(texts)
            flows.append(Flow(series=series, at=count, matcher=matcher, warm_up=warm_up, stretches=stretches))
        yield from measured("patterns", flows, matches_seen)


def _idle(count: int) -> list[str]:
    others = [_pattern(f"idle{n}", [_TYPES + n % 60, _TYPES + 60, _TYPES + 61], "10 s") for n in range(count - 1)]
    return [_pattern("w", [0, 1, 2], "10 s"), *others]


def _listening(count: int, types: int, rng: random.Random) -> list[str]:
    return [_pattern(f"p{number}", rng.sample(range(types), 3), "10 s") for number in range(count)]


def _pattern(name: str, types: Sequence[int], within: str) -> str:
    steps = ", ".join(f"T{number} s{place}" for place, number in enumerate(types))
    return f"PATTERN {name} EVENT SEQ({steps}) WITHIN {within}"


def _with(texts: Sequence[str], tracks: Tracked = "bound") -> Matcher:
    matcher = Matcher(tracks=tracks)
    for text in texts:
        matcher.add_pattern(text)
    return matcher


def traces(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the number of open traces, with constant numbers of events per trace in stream and window."""
    counts = (1_000, 10_000, 100_000) if is_quick else (1_000, 10_000, 100_000, 1_000_000)
    rows, rounds = (50_000, 3) if is_quick else (250_000, 4)
    flows = []
    for count in counts:
        rng = np.random.default_rng(5)
        opening = batch_of(rng.integers(0, 2, count), rng.permutation(count), names=_TYPES)
        following = uniform(rows * rounds, types=_TYPES, keys=count, seed=6, first=count)
        for series, texts in (
            ("SEQ of three steps", [_pattern("w", [0, 1, 2], f"{2 * count} ms")]),
            ("no pattern: traces are looked up", []),
        ):
            _, stretches = stretches_of(following, 0, rows, rounds)
            matcher = _with(texts, "all")
            flows.append(Flow(series=series, at=count, matcher=matcher, warm_up=opening, stretches=stretches))
    yield from measured("traces", flows, lambda flow: f"{flow.matcher.stats.open_traces:,} open")


def windows(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the seconds of WITHIN, on workload W."""
    seconds = (1, 10, 60) if is_quick else (1, 3, 10, 30, 60, 100, 300)
    texts = [(float(within), f"SEQ(T0 a, T1 b, T2 c) WITHIN {within} s") for within in seconds]
    yield from _on_w("window", texts, is_quick=is_quick)


def lengths(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the steps of a SEQ within 60 s, on workload W."""
    steps = (2, 3, 4) if is_quick else range(2, 9)
    texts = [(float(count), f"SEQ({', '.join(f'T{n} s{n}' for n in range(count))}) WITHIN 60 s") for count in steps]
    yield from _on_w("length", texts, is_quick=is_quick)


def _on_w(plot: str, texts: Sequence[tuple[float, str]], *, is_quick: bool) -> Iterator[Point]:
    events, first, rows = (200_000, 80_000, 40_000) if is_quick else (1_000_000, 400_000, 100_000)
    warm_up, stretches = stretches_of(workload_w(events), first, rows, 6)
    flows = [
        Flow(
            series=series, at=at, matcher=_with([f"PATTERN w EVENT {text}{mode}"]), warm_up=warm_up, stretches=stretches
        )
        for series, mode in (("all matches", ""), ("next match", " SELECT NEXT"))
        for at, text in texts
    ]
    yield from measured(plot, flows, matches_seen)


def constraints(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the number of constraints, chosen from those that hold in the order workflow."""
    made = decoded(orders(1_000 if is_quick else 10_000), ["price", "totalPrice"])
    batch = repeated(made, 4 if is_quick else 5)
    warm_up, stretches = stretches_of(batch, len(made), len(made) // 2, 8)
    whole = order_constraints()
    flows = [
        Flow(
            series=name,
            at=len(chosen.constraints),
            matcher=_guarded(text, chosen),
            warm_up=warm_up,
            stretches=stretches,
        )
        for name, text in (("Q1", Q1), ("Q2", Q2), ("EP1", EP1))
        for chosen in (_some_of(whole, 0), _some_of(whole, 50), whole)
    ]
    yield from measured("constraints", flows, lambda flow: f"{flow.matcher.stats.peak_held:,} held at most")


def _some_of(whole: ConstraintSet, count: int) -> ConstraintSet:
    """Return a set with ``count`` of the constraints, spread over the whole set, and all end events."""
    step = len(whole.constraints) // count if count else 1
    return replace(whole, constraints=whole.constraints[::step][:count])


def _guarded(text: str, constraint_set: ConstraintSet) -> Matcher:
    is_guarded = bool(constraint_set.constraints)
    matcher = Matcher(end_events=constraint_set.end_events, tracks="all" if is_guarded else "bound")
    matcher.add_pattern(text)
    if is_guarded:
        matcher.set_guard(1, Monitor(constraint_set))
    return matcher
