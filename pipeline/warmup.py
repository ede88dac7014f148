"""Compiling the matcher's kernels before the first event comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from constraints import ConstraintSet, Exclusive, Monitor, Prior, Settings
from nfa import Matcher
from streams import Event, EventBatch

_PATTERNS = (
    "PATTERN warmup_shared EVENT SEQ(A a, B b) WITHIN 9 s",
    "PATTERN warmup_runs EVENT SEQ(A a, NEXT B b [v > a.v], NOT C) WITHIN 9 s RETURN b.v",
    "PATTERN warmup_ranked EVENT SEQ(A a, NEXT B b [v > a.v], NOT C) WITHIN 9 s LIMIT 9 EMIT TIMEOUTS",
)
_TRACES = (  # one ends, one outlives the window, one is open at the end
    (("A", 0), ("B", 1), ("X", 2), ("End", 3)),
    (("A", 4), ("B", 5), ("X", 20), ("Y", 21)),
    (("A", 22), ("B", 23), ("X", 24)),
)
_CONSTRAINTS = (Exclusive("B", "L"), Prior("A", "X"))
_LAST_US, _LONG_US = 25_000_000, 3_600_000_000
_SETTINGS = (Settings(), Settings(max_monitor_states=1))  # the second leaves nearly everything to bit tables


def warm_up(session: SparkSession) -> None:
    """Have Spark's Python workers compile the kernels into the shared cache and load them.

    First one worker, which fills the cache, then one per core. The first time this takes as long as the compiler does,
    some minutes.
    """
    for tasks in (1, session.sparkContext.defaultParallelism):
        session.range(0, tasks, numPartitions=tasks).mapInArrow(_match_once, "id LONG").collect()


def exercise() -> int:
    """Call every kernel that the pipeline needs: both engines, guards, time that passes, state saved and loaded.

    Returns:
        The number of matches, one per guard, trace and pattern.
    """
    return sum(_run(Monitor(ConstraintSet.of(_CONSTRAINTS, settings=settings))) for settings in _SETTINGS)


def _run(guard: Monitor) -> int:
    matcher = Matcher(end_events=("End",), idle_timeout_us=_LONG_US)
    for text in _PATTERNS:
        matcher.add_pattern(text)
    matcher.set_guard(1, guard)
    found = 0
    for number, trace in enumerate(_TRACES):
        events = [
            Event(id=f"{number}-{second}", type=name, time_us=second * 1_000_000, key=str(number), data={"v": second})
            for name, second in trace
        ]
        for part in (events[:2], events[2:]):
            found += matcher.process(EventBatch.from_events(part)).n_matches
            matcher = Matcher.load(matcher.dump(), {1: guard})
    matcher.remove_pattern("warmup_shared")  # a trace still holds something of it
    found += matcher.pass_time(_LAST_US).n_matches
    found += matcher.end_traces([str(number)], _LAST_US).n_matches
    return found + matcher.finish().n_matches


def _match_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        exercise()
        yield batch
