"""The measurements of the guard: fixed counts, and ratios of two runs that take turns in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from benchmarks.copies import repeated
from benchmarks.guard.records import Measured, Ratio
from benchmarks.lines import write_lines
from benchmarks.matcher_speed import EXPECTED, W, matches_in, unguarded, workload_w
from benchmarks.rounds import Timed, best_of
from benchmarks.workload import EP1, Q1, Q2, decoded, order_constraints, orders
from constraints import ConstraintSet, Monitor
from nfa import Matcher, Tracked, parse_pattern
from service.runs.stream_run import run_patterns
from streams import EventBatch
from streams.readers import read_batch, read_events
from tests.references.patterns.outcome import reference_matches
from tests.references.runs import match_documents
from workflows import OrderSettings

_ORDERS, _COPIES, _FEW_ORDERS = 10_000, 5, 4_000
_LINES, _TOLD = 20_000, 200_000
_ROUNDS, _SOME_ROUNDS, _FEW_ROUNDS = 15, 7, 3
_SETTINGS = OrderSettings(reject=0.0, cancel=0.1)  # EP1 needs cancelled orders
_PATTERNS = {"Q1": Q1, "Q2": Q2, "EP1": EP1}

Part = Callable[[], Measured]


def parts() -> Iterator[tuple[str, Part]]:
    """Yield the measurements in their order, each with a name that is shown while it runs."""
    yield "workload W", _workload_w
    yield "orders, with and without constraints", _orders
    yield "kernel and reference", _reference
    yield "reading and writing JSON", _json


def joined(found: Sequence[Measured]) -> Measured:
    """Merge the measurements of all parts."""
    return Measured(
        counts={name: count for part in found for name, count in part.counts.items()},
        ratios={name: ratio for part in found for name, ratio in part.ratios.items()},
    )


def _speeds(times: dict[str, Timed], yardstick: str) -> dict[str, Ratio]:
    """Return the speed of each run, relative to the speed of a reference run."""
    against = times[yardstick].seconds
    return {
        f"{name}, speed to {yardstick}": Ratio(against / timed.seconds, more_is_better=True)
        for name, timed in times.items()
        if name != yardstick
    }


def _workload_w() -> Measured:
    batch = workload_w()
    times = best_of(
        {
            "W, all": lambda: matches_in(unguarded(W), batch),
            "W, next": lambda: matches_in(unguarded(W + " SELECT NEXT"), batch),
            "null": lambda: matches_in(Matcher(), batch),
        },
        _ROUNDS,
    )
    counts = {f"W, {name}, matches": times[f"W, {name}"].result for name in EXPECTED}
    return Measured(counts=counts, ratios=_speeds(times, "null"))


def _orders() -> Measured:
    made = decoded(orders(_ORDERS, settings=_SETTINGS), ["price", "totalPrice"])
    batch = repeated(made, _COPIES)  # enough events to make the set-up of the matcher negligible
    constraint_set = order_constraints()
    monitor = Monitor(constraint_set)
    runs: dict[str, Callable[[], int]] = {
        "null": lambda: matches_in(Matcher(end_events=constraint_set.end_events), batch)
    }
    for name, text in _PATTERNS.items():
        runs[name] = lambda text=text: matches_in(unguarded(text, constraint_set.end_events), batch)  # type: ignore[misc]
        runs[f"{name}, {len(constraint_set.constraints)} constraints"] = lambda text=text: matches_in(  # type: ignore[misc]
            _matcher(text, constraint_set, monitor), batch
        )
    times = best_of(runs, _SOME_ROUNDS)
    counts = {f"{name}, matches": timed.result for name, timed in times.items() if name != "null"}
    held = _held(made.slice(0, len(made) // 2), constraint_set, monitor)
    return joined([Measured(counts=counts, ratios=_speeds(times, "null")), held])


def _matcher(text: str, constraint_set: ConstraintSet, monitor: Monitor | None, tracks: Tracked = "all") -> Matcher:
    matcher = Matcher(end_events=constraint_set.end_events, tracks=tracks)
    matcher.add_pattern(text)
    if monitor is not None:
        matcher.set_guard(1, monitor)
    return matcher


def _held(batch: EventBatch, constraint_set: ConstraintSet, monitor: Monitor) -> Measured:
    """Return the size of the state in the middle of a stream, as counts, which have no noise."""
    counts: dict[str, int] = {}
    ratios: dict[str, Ratio] = {}
    for name, text in _PATTERNS.items():
        plain, guarded = _matcher(text, constraint_set, None), _matcher(text, constraint_set, monitor)
        listing = _matcher(text, constraint_set, None, "listed")
        for matcher in (plain, guarded, listing):
            matches_in(matcher, batch)
        before, after = plain.stats, guarded.stats
        counts |= {
            f"{name}, open traces": before.open_traces,
            f"{name}, peak held": before.peak_held,
            f"{name}, peak held with constraints": after.peak_held,
            f"{name}, ended by constraints": after.endings,
        }
        ratios |= {
            f"{name}, peak held, without to with constraints": Ratio(
                before.peak_held / after.peak_held, more_is_better=True
            ),
            f"{name}, bytes of state, without to with constraints": Ratio(before.state_bytes / after.state_bytes, True),
            f"{name}, bytes of state to an open trace": Ratio(before.state_bytes / before.open_traces, False),
            f"{name}, bytes of a dump to an open trace": Ratio(len(plain.dump()) / before.open_traces, False),
            f"{name}, bytes of state to a listed trace": Ratio(listing.stats.state_bytes / before.open_traces, False),
            f"{name}, bytes of a dump to a listed trace": Ratio(len(listing.dump()) / before.open_traces, False),
        }
    return Measured(counts=counts, ratios=ratios)


def _reference() -> Measured:
    events = orders(_FEW_ORDERS)
    batch, pattern, ends = decoded(events, ["price"]), parse_pattern(Q1), order_constraints().end_events
    times = best_of(
        {
            "matcher": lambda: matches_in(unguarded(Q1, ends), batch),
            "reference": lambda: len(reference_matches([pattern], events, ends)),
        },
        _FEW_ROUNDS,
    )
    fast, slow = times["matcher"], times["reference"]
    return Measured(
        counts={"Q1, few orders, matches": fast.result, "Q1, few orders, matches of the reference": slow.result},
        ratios={"Q1, speed to reference": Ratio(slow.seconds / fast.seconds, more_is_better=True)},
    )


def _json() -> Measured:
    batch = workload_w(_TOLD)
    report = run_patterns([parse_pattern(W)], batch)
    with TemporaryDirectory(prefix="forestall-guard-") as name:
        path = Path(name) / "w.jsonl"
        write_lines(batch.slice(0, _LINES), path)
        reading = best_of(
            {
                "read_batch": lambda: len(read_batch(path)),
                "line by line": lambda: len(EventBatch.from_events(read_events(path))),
            },
            _SOME_ROUNDS,
        )
    writing = best_of(
        {
            "to_json": lambda: len(report.to_json()),
            "values": lambda: len(orjson.dumps({**orjson.loads(report.to_json()), "matches": match_documents(report)})),
        },
        _SOME_ROUNDS,
    )
    return Measured(
        counts={
            "events read by columns": reading["read_batch"].result,
            "events read line by line": reading["line by line"].result,
            "matches written": len(report.matches),
            "bytes written by columns": writing["to_json"].result,
            "bytes written by values": writing["values"].result,
        },
        ratios=_speeds(reading, "line by line") | _speeds(writing, "values"),
    )
