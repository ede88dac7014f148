"""A workload whose matches other engines have counted."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nfa.guards.tables import GuardLayout, GuardTables
from nfa.kernels.traces import NIL, UNGUARDED, Columns
from nfa.shared.engine import SharedEngine, SharedPattern, SharedTransition
from nfa.traces.table import TraceTable, Want

TYPES = 4


def workload(count: int) -> Columns:
    """The workload of the comparison with other engines, one event per millisecond."""
    rng = random.Random(42)
    keys, types = [], []
    for _ in range(count):
        keys.append(rng.randrange(1_000))
        types.append(rng.randrange(20))
        rng.randrange(10_000)
    spread = np.array(keys, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.array([min(TYPES, code) for code in types], np.int32)
    return Columns(
        types=codes,
        classes=codes,
        keys=spread,
        times=np.arange(count, dtype=np.int64) * 1_000,
        passed=np.ones((3, count), np.bool_),
        cells=np.zeros((0, count), np.int32),
    )


@pytest.mark.compiled
@pytest.mark.parametrize(("is_next", "known"), [(False, 215_366), (True, 38_821)])
def test_the_workload_has_the_matches_that_other_engines_find(is_next: bool, known: int) -> None:
    columns = workload(1_000_000)
    engine, traces, guards = SharedEngine(), TraceTable(), GuardTables({})
    pattern = SharedPattern(
        states=4,
        terms=[1] * 4,
        depth=range(4),
        transitions=[
            SharedTransition(
                type_code=place,
                source=place,
                target=place + 1,
                alias=place,
                predicate=0,
                accepts=place == 2,
                goes_on=place < 2,
            )
            for place in range(3)
        ],
        within_us=60_000_000,
        is_next=is_next,
    )
    ranges = np.array([0, 4], np.int32)
    engine.configure([pattern], [NIL], state_range=ranges, types=TYPES + 1)
    guards.compile(
        GuardLayout(types=list("0123"), views=[], state_range=ranges, negation_range=ranges[1:], start=UNGUARDED)
    )
    wants = [Want(type_code=code, predicate=0, opens=code == 0) for code in range(3)]
    traces.configure(types=TYPES + 1, wants=wants, end_types=[], tracks_all=False)
    clocks = traces.clocks(columns.times)
    visits = traces.advance(columns, guards)
    found = engine.process(visits, columns, clocks, guards.tables, first_sequence=0, released=traces.released)
    assert len(found.matches) == known
    assert len(found.matches.sequences) == 3 * known
    assert traces.counters["open"] == 1_000
