"""The trace table maps rows to traces, and drops traces that are no longer needed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa.errors import StateFormatError
from nfa.guards.protocol import EventClass, MonitorState, Policy
from nfa.guards.tables import GuardLayout, GuardTables
from nfa.kernels.traces import DEVIANT, NIL, UNGUARDED, Columns
from nfa.traces.table import TraceTable, Want

TYPES = 4
END = 3


@dataclass
class Guard:
    """Remembers which of two types it saw; the second of them is a deviation, unless it comes at the same time."""

    types: frozenset[str] = frozenset("01")

    symbols: tuple[()] = ()
    bits: None = None
    policy: Policy = field(default_factory=Policy)
    start: MonitorState = field(default_factory=MonitorState)

    def step(self, state, event):
        after = state.seen | ({event.type} & self.types)
        return None if after != state.seen and state.seen and event.is_later else MonitorState(seen=after)

    def can_occur(self, state, atom):
        return True

    def live(self, state, query):
        return np.ones(0, np.bool_)


def guards(guard: Guard | None = None, *, is_simultaneous: bool = False) -> GuardTables:
    tables = GuardTables({} if guard is None else {1: guard})
    start = UNGUARDED if guard is None else tables.intern(1, MonitorState())
    none = np.zeros(1, np.int32)
    tables.compile(
        GuardLayout(
            types=list("0123"),
            views=[],
            state_range=none,
            negation_range=none,
            start=start,
            is_simultaneous=is_simultaneous,
        )
    )
    return tables


def columns(types, keys, times=None, passed=None) -> Columns:
    count = len(types)
    rows = np.ones((2, count), np.bool_)
    if passed is not None:
        rows[1] = passed
    return Columns(
        types=np.array(types, np.int32),
        classes=np.array(types, np.int32),
        keys=np.array(keys, np.uint64),
        times=np.arange(count, dtype=np.int64) if times is None else np.array(times, np.int64),
        passed=rows,
        cells=np.zeros((0, count), np.int32),
    )


def table(wants=((0, 0, True),), *, tracks_all: bool = False, is_simultaneous: bool = False) -> TraceTable:
    found = TraceTable(is_simultaneous=is_simultaneous)
    found.configure(
        types=TYPES + 1,
        wants=[Want(type_code=code, predicate=row, opens=opens) for code, row, opens in wants],
        end_types=[END],
        tracks_all=tracks_all,
    )
    return found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_rows_find_their_traces(seed: int) -> None:
    """Against a dictionary: batches, many keys that share a place in the index, dumps in between."""
    rng = random.Random(seed)
    guard = Guard() if rng.random() < 0.5 else None
    tied = rng.random() < 0.5
    tables, traces = guards(guard, is_simultaneous=tied), table(tracks_all=True, is_simultaneous=tied)
    keys = [rng.randrange(1, 40) << rng.choice([0, 32, 33]) for _ in range(rng.choice([3, 30, 600]))]
    known: dict[int, tuple[int, MonitorState | None, int]] = {}  # key: number, state, newest time
    now = 0
    for _ in range(rng.randint(1, 5)):
        count = rng.randint(0, 700)
        types = [rng.choice([0, 1, 2, 2, 2, 3, 4]) for _ in range(count)]
        batch = [rng.choice(keys) for _ in range(count)]
        times = (now + np.cumsum([rng.choice([-1, 0, 0, 1]) for _ in range(count)])).tolist()
        visits = traces.advance(columns(types, batch, times), tables)
        assert visits.rows.tolist() == list(range(count))
        deviations = 0
        for code, key, time, number, after, ends in zip(
            types, batch, times, visits.traces.tolist(), visits.after.tolist(), visits.ends.tolist(), strict=True
        ):
            held, state, newest = known.pop(key, (number, MonitorState(), time - 1))
            assert number == held
            assert number not in {other for other, _, _ in known.values()}
            following = state
            if guard is not None and state is not None:
                following = guard.step(state, EventClass(type=str(code), is_later=not tied or time > newest))
            deviations += following is None and state is not None
            assert tables.states[after] == (None if guard is None or following is None else (1, following))
            assert ends == (code == END)
            if not ends:
                known[key] = (number, following, max(newest, time))
            now = time
        assert len(visits.deviations()) == deviations
        traces.release_closed(tables)
        assert traces.counters["open"] == len(known)
        assert traces.numbers().tolist() == sorted(number for number, _, _ in known.values())
        if rng.random() < 0.3:
            arrays, numbers = traces.dump_arrays()
            traces = table(tracks_all=True, is_simultaneous=tied)
            traces.load_arrays(arrays, monitors=len(tables.states))
            known = {key: (int(numbers[number]), state, time) for key, (number, state, time) in known.items()}


def test_rows_that_nobody_wants_are_not_looked_up() -> None:
    traces = table([(0, 1, True), (1, 0, False), (2, 1, False)])
    types = [1, 0, 0, 1, 2, 2, 4, 3, 1, 3]
    passed = [True, False, True, True, False, True, True, True, True, True]
    visits = traces.advance(columns(types, [7] * 10, passed=passed), guards())
    assert visits.rows.tolist() == [2, 3, 5, 7]  # opened by the second 0, closed by the first 3
    assert visits.ends.tolist() == [False, False, False, True]
    traces.release_closed(guards())
    assert traces.counters["open"] == 0


def test_a_type_may_open_under_one_condition_and_not_under_another() -> None:
    traces = table([(0, 0, False), (0, 1, True)])
    visits = traces.advance(columns([0, 0, 0], [1, 2, 1], passed=[False, True, True]), guards())
    assert visits.rows.tolist() == [1, 2]


def test_numbers_of_closed_traces_are_kept_until_they_are_released() -> None:
    traces = table(tracks_all=True)
    visits = traces.advance(columns([0, 3, 0], [5, 5, 5]), guards())
    assert visits.traces.tolist() == [0, 0, 1]
    with pytest.raises(RuntimeError, match="release_closed"):
        traces.advance(columns([0], [6]), guards())
    traces.release_closed(guards())
    assert traces.advance(columns([0], [6]), guards()).traces.tolist() == [0]


def test_many_closed_traces_in_one_batch_find_room() -> None:
    traces = table(tracks_all=True)
    keys = np.repeat(np.arange(3_000, dtype=np.uint64) << np.uint64(32), 2)
    visits = traces.advance(columns([0, 3] * 3_000, keys), guards())
    assert visits.traces.tolist() == np.repeat(np.arange(3_000), 2).tolist()
    traces.release_closed(guards())
    assert traces.counters["open"] == 0
    assert traces.capacity >= 3_000


@pytest.mark.compiled
def test_a_trace_costs_at_most_64_bytes() -> None:
    traces = table(tracks_all=True)
    for first in range(0, 200_000, 20_000):
        keys = np.arange(first, first + 20_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        traces.advance(columns([0] * 20_000, keys), guards())
        traces.release_closed(guards())
        if first >= 20_000:
            state = traces._state
            used = state.slots.nbytes + state.free.nbytes + state.released.nbytes + state.newest.nbytes
            assert used <= 64 * traces.counters["open"]


@pytest.mark.compiled
def test_idle_traces_are_forgotten_where_a_new_one_would_be_the_same() -> None:
    traces = table()
    was_worth_it = traces.is_worth_sweeping
    traces.advance(columns([0] * 5_000, np.arange(5_000) << 32), guards())
    traces.release_closed(guards())
    assert (was_worth_it, traces.is_worth_sweeping) == (False, True)
    held = np.zeros(traces.capacity, np.bool_)
    held[[3, 4_000]] = True
    traces.forget_idle(held, UNGUARDED)
    assert traces.numbers().tolist() == [3, 4_000]
    assert not traces.is_worth_sweeping
    visits = traces.advance(columns([0, 0, 0], [3 << 32, 4_000 << 32, 9 << 32]), guards())
    assert visits.traces.tolist()[:2] == [3, 4_000]
    assert visits.traces.tolist()[2] not in (3, 4_000)


def test_traces_that_a_guard_knows_something_of_are_not_forgotten() -> None:
    tables, traces = guards(Guard()), table()
    visits = traces.advance(columns([0, 2], [1, 2]), tables)
    assert visits.rows.tolist() == [0]
    traces.forget_idle(np.zeros(traces.capacity, np.bool_), int(tables.tables.start[0]))
    assert traces.counters["open"] == 1


def test_order_and_guard_steps_are_counted() -> None:
    traces = table(tracks_all=True)
    tables = guards(Guard())
    visits = traces.advance(columns([0, 0, 1, 0], [1, 1, 1, 2], [5, 3, 6, 6]), tables)
    traces.release_closed(guards())
    assert traces.counters == {"open": 2, "deviations": 1, "guard_steps": 3, "ignored": 0, "out_of_order": 1}
    assert traces.newest_us == 6
    assert visits.after.tolist()[2] == DEVIANT
    traces.advance(columns([2], [1], [5]), tables)
    assert traces.counters["out_of_order"] == 2


def test_monitor_states_are_renumbered() -> None:
    traces, tables = table(tracks_all=True), guards(Guard())
    traces.advance(columns([0, 2, 1], [1, 2, 3]), tables)
    old = traces.monitors()
    numbers = np.arange(len(tables.states), dtype=np.int32)[::-1].copy()
    traces.renumber_monitors(numbers)
    assert traces.monitors().tolist() == numbers[old].tolist()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("trace_key", lambda array: array[[0, 0, 1]]),
        ("trace_key", lambda array: array.astype(np.int64)),
        ("trace_key", lambda array: array[:2]),
        ("trace_monitor", lambda array: array + 1),
        ("trace_monitor", lambda array: array - 2),
        ("trace_released", lambda array: array[1:]),
        ("trace_newest", lambda array: np.zeros(1, np.int64)),
        ("trace_counters", lambda array: array[1:]),
        ("trace_counters", lambda array: -array - 1),
    ],
)
def test_damaged_arrays_are_refused(name: str, damage) -> None:
    traces = table(tracks_all=True)
    traces.advance(columns([0, 0, 0], [1, 2, 3]), guards())
    arrays, _ = traces.dump_arrays()
    arrays[name] = damage(arrays[name])
    with pytest.raises(StateFormatError, match=r"trace_\w+|count"):
        table().load_arrays(arrays, monitors=2)


def test_missing_arrays_are_refused() -> None:
    with pytest.raises(StateFormatError, match="missing"):
        table().load_arrays({}, monitors=2)


def test_nothing_is_numbered_nothing() -> None:
    arrays, numbers = table().dump_arrays()
    assert set(numbers.tolist()) == {NIL}
    assert len(arrays["trace_key"]) == 0
