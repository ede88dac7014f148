"""Cost of an event in memory and in kernels on workload W in columns, from a bare copy to the whole matcher."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import shared_engine_speed as kernels
from benchmarks.limits.stages import Stage
from benchmarks.matcher_speed import ROWS, W, matches_in, unguarded, workload_w
from benchmarks.rounds import best_of
from nfa import Matcher
from nfa.kernels.traces import Columns

EVENT_BYTES = 4 + 8 + 8  # type, hashed key, time
_LARGE = 256 * 2**20  # larger than any cache
_ROUNDS = 9


def bandwidth() -> dict[str, float]:
    """Return the bytes/s of one thread by operation. A copy counts the bytes read and the bytes written."""
    source, target = np.ones(_LARGE // 8, np.int64), np.zeros(_LARGE // 8, np.int64)

    def copy() -> int:
        np.copyto(target, source)
        return 0

    times = best_of({"copy": copy, "sum": lambda: int(source.sum())}, _ROUNDS)
    return {"copy": 2 * _LARGE / times["copy"].seconds, "sum": _LARGE / times["sum"].seconds}


def stages(events: int) -> list[Stage]:
    """Return the stages from memory to matches. Each stage includes the work of the stages before."""
    speed, batch, columns = bandwidth(), workload_w(events), kernels.workload_w(events)
    times = best_of(
        {
            "null kernel: find the trace": _null(columns),
            "trace table, where a pattern looks": partial(_trace_table, columns, tracks_all=False),
            "trace table, every event": partial(_trace_table, columns, tracks_all=True),
            "kernels, next match": partial(_kernels, columns, is_next=True),
            "kernels, all matches": partial(_kernels, columns, is_next=False),
            "matcher without a pattern, every event": lambda: matches_in(Matcher(), batch),
            "matcher, next match": lambda: matches_in(unguarded(W + " SELECT NEXT"), batch),
            "matcher, all matches": lambda: matches_in(unguarded(W), batch),
        },
        _ROUNDS,
    )
    found = [
        Stage("read the columns at the speed of a sum", EVENT_BYTES / speed["sum"] * events, events),
        Stage("copy the columns", 2 * EVENT_BYTES / speed["copy"] * events, events),
    ]
    return found + [Stage(name, timed.seconds, events) for name, timed in times.items()]


def _null(columns: Columns) -> Callable[[], int]:
    index = np.zeros((2048, 2), np.uint64)
    return lambda: int(kernels.look_up(index, columns))


def _parts(columns: Columns) -> list[Columns]:
    count = len(columns.types)
    return [kernels.part_of(columns, start, min(start + ROWS, count)) for start in range(0, count, ROWS)]


def _rig(*, is_next: bool, tracks_all: bool = False) -> kernels.Rig:
    pattern = kernels.chain([0, 1, 2], within_us=60_000_000, is_next=is_next)
    return kernels.Rig([pattern], 20, tracks_all=tracks_all)


def _trace_table(columns: Columns, *, tracks_all: bool) -> int:
    rig = _rig(is_next=False, tracks_all=tracks_all)
    for part in _parts(columns):
        rig.table.advance(part, rig.guards)
        rig.table.release_closed(rig.guards)
    return len(columns.types)


def _kernels(columns: Columns, *, is_next: bool) -> int:
    rig = _rig(is_next=is_next)
    return sum(len(rig.process(part).matches) for part in _parts(columns))
