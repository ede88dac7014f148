"""The shared-node engine finds what a list of runs, each copied at every step, would find."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa.errors import StateFormatError
from nfa.guards.protocol import EventClass, MonitorState, OnViolation, Policy, Prune
from nfa.guards.tables import GuardLayout, GuardTables
from nfa.kernels.traces import DEVIANT, NIL, UNGUARDED, Columns
from nfa.shared.engine import SharedEngine, SharedPattern, SharedTransition
from nfa.traces.table import TraceTable, Want
from tests.builders.runs import matches_of

TYPES = 4  # codes of named types; one more is that of every other
END = 3
EVERY = 0x7FFFFFFF


@dataclass
class Guard:
    """An alternative of a state is dead once a type of its doom was seen; a type may forbid others."""

    doom: dict[int, list[dict[int, frozenset[str]]]]  # by pattern, state, bit of the alternative
    forbidden: dict[str, frozenset[str]]
    policy: Policy = field(default_factory=Policy)
    types: frozenset[str] = frozenset("012")
    symbols: tuple[()] = ()
    bits: None = None
    start: MonitorState = field(default_factory=MonitorState)

    def can_occur(self, state, atom):
        return True

    def step(self, state, event):
        if state.seen & self.forbidden.get(event.type, frozenset()):
            return None
        return MonitorState(seen=state.seen | ({event.type} & self.types))

    def live(self, state, number):
        return np.array(
            [
                sum(bit for bit, names in doom.items() if not state.seen & names) if doom else EVERY
                for doom in self.doom[number]
            ],
            np.uint32,
        )


@dataclass(frozen=True)
class View:
    query: int
    negations: tuple[()] = ()

    def live_terms(self, found):
        return found


@dataclass
class Twin:
    """One run per partial match."""

    patterns: dict[int, SharedPattern]
    guard: Guard | None
    runs: dict[tuple[int, int], list] = field(default_factory=dict)
    seen: dict[int, MonitorState | str] = field(default_factory=dict)  # or why it is not guarded
    matched: dict[tuple[int, int], int] = field(default_factory=dict)  # in shadow mode: whether it ended

    @property
    def prune(self):
        return self.guard.policy.prune if self.guard else Prune.OFF

    def live(self, seen, number):
        if self.guard is None or isinstance(seen, str) or self.prune is Prune.OFF:
            return [EVERY] * self.patterns[number].states
        return self.guard.live(seen, number).tolist()

    def alive(self, seen, number, key):
        """Alternatives that something held can still complete."""
        live = self.live(seen, number)
        found = live[0]
        for state, _, _ in self.runs.get((key, number), []):
            found |= live[state]
        return found | (self.matched.get((key, number), 0) if self.prune is Prune.QUERY else 0)

    def after(self, before, code):
        if self.guard is None or isinstance(before, str):
            return before
        after = self.guard.step(before, EventClass(type=str(code) if code < TYPES else ""))
        if after is not None:
            return after
        broken = {OnViolation.REPORT: "deviant", OnViolation.FAIL_TRACE: "failed", OnViolation.IGNORE: before}
        return broken[self.guard.policy.on_violation]

    def event(self, code, key, now, passed, sequence):
        before = self.seen.get(key, MonitorState())
        after = self.after(before, code)
        matches: list = []
        endings: list = []
        for number in sorted(self.patterns):
            if after == "failed":
                self.runs.pop((key, number), None)
                continue
            self.take(number, code, key, now, passed, sequence, after if after == "deviant" else before, after, matches)
        for number in sorted(self.patterns) if not isinstance(after, str) else []:
            ending = self.end(number, key, now, before, after)
            if ending is not None:
                endings.append((number, ending))
        self.seen[key] = after
        if code == END:
            self.seen.pop(key)
            for number in self.patterns:
                self.runs.pop((key, number), None)
                self.matched.pop((key, number), None)
        return matches, endings

    def take(self, number, code, key, now, passed, sequence, before, after, matches):
        pattern = self.patterns[number]
        alive = self.alive(before, number, key) if self.prune is Prune.QUERY else EVERY
        gate_before, gate_after = self.live(before, number), self.live(after, number)
        if self.prune is not Prune.STATE:
            gate_before = gate_after = [EVERY] * pattern.states
        old = self.runs.get((key, number), [])
        kept, new, found, done = [], [], set(), 0
        for state, bound, start in [*old, (0, (), None)]:
            has_taken = False
            is_open = start is None or not pattern.within_us or now - start < pattern.within_us
            for step in pattern.transitions:
                if step.type_code != code or step.source != state or not passed[step.predicate] or not is_open:
                    continue
                if state == 0 and not (gate_before[0] and alive):
                    continue
                has_taken = True
                grown = (*bound, (step.alias, sequence))
                if step.accepts:
                    found.add(grown) if pattern.may_repeat else matches.append((number, grown))
                    done |= pattern.terms[step.target]
                if step.goes_on and gate_after[step.target] and pattern.terms[step.target] & alive:
                    new.append((step.target, grown, now if start is None else start))
            if state != 0 and not (pattern.is_next and has_taken):
                kept.append((state, bound, start))
        matches += [(number, binding) for binding in found]
        if old and done and self.prune is Prune.QUERY and not isinstance(before, str):
            self.matched[key, number] = self.matched.get((key, number), 0) | done
        self.keep(key, number, kept + new)

    def keep(self, key, number, runs):
        self.runs[key, number] = runs
        if not runs:
            self.matched.pop((key, number), None)

    def end(self, number, key, now, before, after):
        pattern = self.patterns[number]
        was, now_live = self.live(before, number), self.live(after, number)
        runs = self.runs.get((key, number), [])
        open_runs = [run for run in runs if not pattern.within_us or now - run[2] < pattern.within_us]
        died = [
            old & ~new if self.prune is Prune.QUERY else old and not new for old, new in zip(was, now_live, strict=True)
        ]
        killed = [state for state in sorted({0, *(run[0] for run in open_runs)}) if died[state]]
        if not any(died):
            return None
        if self.prune is Prune.STATE:
            left = [run for run in open_runs if now_live[run[0]]]
            self.keep(key, number, [run for run in runs if now_live[run[0]]])
            has_future = left or now_live[0]
        else:
            self.runs[key, number] = open_runs
            alive = self.alive(after, number, key)
            if self.prune is Prune.QUERY:
                self.keep(key, number, [run for run in open_runs if pattern.terms[run[0]] & alive])
            has_future = alive or (self.prune is Prune.SHADOW and self.matched.get((key, number)))
            if self.prune is Prune.SHADOW and not has_future and open_runs:
                self.matched[key, number] = 1
        if not killed or has_future:
            return None
        return max(killed, key=lambda state: (pattern.depth[state], -state))

    @property
    def held(self):
        return sum(len({event for run in runs for _, event in run[1]}) for runs in self.runs.values())


class Harness:
    """Trace table and engine, driven as a matcher drives them."""

    def __init__(self, guard: Guard | None) -> None:
        self.guards = GuardTables({} if guard is None else {1: guard})
        self.traces, self.engine = TraceTable(), SharedEngine()
        self.guard, self.events = guard, 0
        self.numbers: list = []

    def configure(self, patterns: dict[int, SharedPattern]) -> None:
        names = list(patterns)
        sources = [self.numbers.index(name) if name in self.numbers else NIL for name in names]
        self.numbers, self.patterns = names, patterns
        state_range = np.cumsum([0, *(patterns[name].states for name in names)]).astype(np.int32)
        self.engine.configure(list(patterns.values()), sources, state_range=state_range, types=TYPES + 1)
        start = UNGUARDED if self.guard is None else self.guards.intern(1, MonitorState())
        self.start = start
        views: list = [View(name) for name in names]
        layout = GuardLayout(
            types=list("0123"),
            views=views,
            state_range=state_range,
            negation_range=np.full(len(names) + 1, state_range[-1], np.int32),
            start=start,
        )
        self.guards.compile(layout)
        steps = [step for pattern in patterns.values() for step in pattern.transitions]
        wants = [Want(type_code=step.type_code, predicate=step.predicate, opens=step.source == 0) for step in steps]
        self.traces.configure(types=TYPES + 1, wants=wants, end_types=[END], tracks_all=self.guard is not None)

    def process(self, columns: Columns):
        clocks, visits = self.traces.clocks(columns.times), self.traces.advance(columns, self.guards)
        found = self.engine.process(
            visits, columns, clocks, self.guards.tables, first_sequence=self.events, released=self.traces.released
        )
        matches = [
            (row + self.events, self.numbers[pattern], bound) for row, pattern, bound in matches_of(found.matches)
        ]
        firsts = np.cumsum([0, *(self.patterns[name].states for name in self.numbers)])
        endings = [
            (row + self.events, self.numbers[pattern], state - int(firsts[pattern]))
            for row, pattern, _, _, state in found.endings.tolist()
        ]
        dropped = [(row + self.events, self.numbers[pattern], count) for row, pattern, count in found.dropped.tolist()]
        self.traces.release_closed(self.guards)
        if self.traces.is_worth_sweeping:
            self.traces.forget_idle(self.engine.held_traces(self.traces.capacity), self.start)
        self.events += len(columns.types)
        return matches, endings, dropped

    def reload(self) -> None:
        """Dump everything and go on from the dump."""
        arrays, numbers = self.traces.dump_arrays()
        arrays = {name: array.copy() for name, array in (arrays | self.engine.dump_arrays(numbers)).items()}
        patterns, names = self.patterns, self.numbers
        self.traces, self.engine = TraceTable(), SharedEngine()
        self.traces.load_arrays(arrays, monitors=len(self.guards.states))
        self.numbers = []
        self.configure({name: patterns[name] for name in names})
        traces = len(arrays["trace_key"])
        self.engine.load_arrays(arrays, traces=traces, sequences=self.events)


def random_pattern(rng: random.Random) -> SharedPattern:
    """A few states in a random order, loops included."""
    within = rng.choice([0, 0, 3, 6])
    if rng.random() < 0.3:
        length = rng.randint(1, 4)
        steps = [
            SharedTransition(
                type_code=rng.randrange(TYPES),
                source=place,
                target=place + 1,
                alias=place,
                predicate=rng.choice([0, 0, 1, 2]),
                accepts=place == length - 1,
                goes_on=place < length - 1,
            )
            for place in range(length)
        ]
        return SharedPattern(
            states=length + 1,
            terms=[1] * (length + 1),
            depth=range(length + 1),
            transitions=steps,
            within_us=within,
            is_next=rng.random() < 0.7,
        )
    states = rng.randint(2, 5)
    accepting = {rng.randint(1, states - 1), *(state for state in range(1, states) if rng.random() < 0.2)}
    arcs = {(rng.randrange(states), rng.randint(1, states - 1), rng.randrange(TYPES)) for _ in range(rng.randint(2, 6))}
    arcs |= {(0, rng.randint(1, states - 1), rng.randrange(TYPES))}
    sources = {source for source, _, _ in arcs}
    steps = [
        SharedTransition(
            type_code=code,
            source=source,
            target=target,
            alias=rng.randrange(3),
            predicate=rng.choice([0, 0, 1, 2]),
            accepts=target in accepting,
            goes_on=target in sources,
        )
        for source, target, code in sorted(arcs)
    ]
    return SharedPattern(
        states=states,
        terms=[7, *(rng.choice([1, 2, 3, 4, 6]) for _ in range(states - 1))],
        depth=[0, *(rng.randint(1, 3) for _ in range(states - 1))],
        transitions=steps,
        within_us=within,
        may_repeat=rng.random() < 0.5,
    )


def random_guard(rng: random.Random, patterns: dict[int, SharedPattern]) -> Guard:
    def some(share: float) -> frozenset[str]:
        return frozenset(name for name in "012" if rng.random() < share)

    doom = {
        name: [{bit: some(0.15) for bit in (1, 2, 4) if terms & bit} for terms in pattern.terms]
        for name, pattern in patterns.items()
    }
    is_timed = any(pattern.within_us for pattern in patterns.values())
    modes = [Prune.STATE, Prune.STATE, Prune.SHADOW, Prune.OFF, *([] if is_timed else [Prune.QUERY] * 2)]
    policy = Policy(prune=rng.choice(modes), on_violation=rng.choice(list(OnViolation)))
    return Guard(doom, {name: some(0.1) for name in "012"}, policy)


def random_columns(rng: random.Random, count: int, start: int) -> Columns:
    times = start + np.cumsum([rng.choice([0, 0, 1, 1, 2]) for _ in range(count)]).astype(np.int64)
    passed = np.array([[True] * count, *([rng.random() < 0.6 for _ in range(count)] for _ in range(2))], np.bool_)
    types = np.array([rng.choice([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4]) for _ in range(count)], np.int32)
    keys = np.array([rng.choice([7, 1 << 33, 1 << 62]) for _ in range(count)], np.uint64)
    return Columns(types, types, keys, times, passed.reshape(3, count), np.zeros((0, count), np.int32))


def part_of(columns: Columns, start: int, end: int) -> Columns:
    return Columns(
        types=columns.types[start:end],
        classes=columns.classes[start:end],
        keys=columns.keys[start:end],
        times=columns.times[start:end],
        passed=np.ascontiguousarray(columns.passed[:, start:end]),
        cells=np.ascontiguousarray(columns.cells[:, start:end]),
    )


def expected(twin: Twin, columns: Columns, start: int):
    matches, endings = [], []
    for row in range(len(columns.types)):
        found, ended = twin.event(
            int(columns.types[row]),
            int(columns.keys[row]),
            int(columns.times[row]),
            columns.passed[:, row].tolist(),
            start + row,
        )
        matches += [(start + row, number, binding) for number, binding in found]
        endings += [(start + row, number, state) for number, state in ended]
    return matches, endings


def splits(rng: random.Random, count: int) -> list[tuple[int, int]]:
    borders = sorted({0, count, *(rng.randrange(count) for _ in range(rng.randint(0, 4)))})
    return list(pairwise(borders))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_the_engine_finds_what_copied_runs_find(seed: int) -> None:
    rng = random.Random(seed)
    patterns = {name: random_pattern(rng) for name in range(rng.randint(1, 4))}
    guard = random_guard(rng, patterns) if rng.random() < 0.6 else None
    twin, harness = Twin(dict(patterns), guard), Harness(guard)
    harness.configure(patterns)
    columns = random_columns(rng, rng.randint(1, 25), rng.choice([0, -10, 10**15]))
    for start, end in splits(rng, len(columns.types)):
        part = part_of(columns, start, end)
        matches, endings = expected(twin, part, start)
        found, ended, dropped = harness.process(part)
        assert sorted(found) == sorted(matches)
        assert sorted(ended) == sorted(endings)
        assert dropped == []
        if not any(pattern.within_us for pattern in patterns.values()):
            assert harness.engine.stats.held == twin.held
            assert len(set(harness.engine.held_sequences().tolist())) == len(
                {event for runs in twin.runs.values() for run in runs for _, event in run[1]}
            )
        if rng.random() < 0.4:
            harness.reload()
        if rng.random() < 0.3 and len(patterns) > 1:
            gone = rng.choice(list(patterns))
            del patterns[gone], twin.patterns[gone]
            twin.runs = {place: runs for place, runs in twin.runs.items() if place[1] != gone}
            fresh = 10 + seed % 7 + len(columns.types) + start
            patterns[fresh] = twin.patterns[fresh] = random_pattern(rng)
            if guard is not None:
                guard.doom[fresh] = random_guard(rng, {fresh: patterns[fresh]}).doom[fresh]
            order = rng.sample(list(patterns), len(patterns))
            patterns = {name: patterns[name] for name in order}
            harness.configure(patterns)


def chain(codes, **options) -> SharedPattern:
    steps = [
        SharedTransition(
            type_code=code,
            source=place,
            target=place + 1,
            alias=place,
            predicate=0,
            accepts=place + 1 == len(codes),
            goes_on=place + 1 < len(codes),
        )
        for place, code in enumerate(codes)
    ]
    size = len(codes) + 1
    return SharedPattern(states=size, terms=[1] * size, depth=range(size), transitions=steps, **options)


def kleene(**options) -> SharedPattern:
    """SEQ(0 a, 1+ b, 2 c)."""
    rows = [(0, 0, 1, 0), (1, 1, 2, 1), (1, 2, 2, 1), (2, 2, 3, 2)]
    steps = [
        SharedTransition(
            type_code=code,
            source=source,
            target=target,
            alias=alias,
            predicate=0,
            accepts=target == 3,
            goes_on=target < 3,
        )
        for code, source, target, alias in rows
    ]
    return SharedPattern(states=4, terms=[1] * 4, depth=[0, 1, 2, 3], transitions=steps, **options)


def columns_of(codes, times=None, keys=None) -> Columns:
    count, types = len(codes), np.array(codes, np.int32)
    return Columns(
        types=types,
        classes=types,
        keys=np.zeros(count, np.uint64) if keys is None else np.array(keys, np.uint64),
        times=np.arange(count, dtype=np.int64) if times is None else np.array(times, np.int64),
        passed=np.ones((3, count), np.bool_),
        cells=np.zeros((0, count), np.int32),
    )


def running(*patterns: SharedPattern) -> Harness:
    harness = Harness(None)
    harness.configure(dict(enumerate(patterns)))
    return harness


@pytest.mark.parametrize(("within", "next_too"), [(0, False), (10**6, False), (0, True)])
def test_matches_beyond_the_limit_are_counted(within: int, next_too: bool) -> None:
    harness = running(chain([0, 1, 2], limit=7, within_us=within, is_next=next_too))
    matches, _, dropped = harness.process(columns_of([0] * 5 + [1] * 4 + [2, 2]))
    total = 5 if next_too else 20
    assert len(matches) == min(7, total) * (1 if next_too else 2)
    assert dropped == ([] if next_too else [(9, 0, 13), (10, 0, 13)])
    assert harness.engine.stats.overflow == sum(count for _, _, count in dropped)


def test_what_is_counted_beyond_the_limit_leaves_out_what_expired() -> None:
    harness = running(chain([0, 1, 2], limit=2, within_us=10))
    _, _, dropped = harness.process(columns_of([0, 0, 0, 1, 1, 2], [0, 5, 6, 7, 8, 12]))
    assert dropped == [(5, 0, 2)]  # of the starts at 5 and 6, two B each


@pytest.mark.parametrize("within", [0, 10**6])
def test_a_loop_doubles_and_only_the_limit_is_written(within: int) -> None:
    harness = running(kleene(within_us=within, limit=100))
    matches, _, dropped = harness.process(columns_of([0] + [1] * 80 + [2]))
    assert len(matches) == len(set(matches)) == 100
    assert dropped == [(81, 0, 2**53 - 100)]
    assert harness.engine.stats.nodes == 160


def test_which_matches_are_kept_does_not_depend_on_batches() -> None:
    rng = random.Random(4)
    codes = [rng.randrange(3) for _ in range(60)]
    patterns = (kleene(limit=9), chain([0, 1, 2], limit=5, within_us=20))
    whole, _, lost = running(*patterns).process(columns_of(codes))
    harness = running(*patterns)
    found: list = []
    dropped: list = []
    for at in range(0, 60, 7):
        part = columns_of(codes[at : at + 7], range(at, min(at + 7, 60)))
        matches, _, more = harness.process(part)
        found += matches
        dropped += more
        harness.reload()
    assert found == whole
    assert dropped == lost


@pytest.mark.compiled
def test_long_loops_and_many_matches_grow_what_holds_them() -> None:
    harness = running(kleene(limit=3), chain([1, 1, 3], limit=10**6))
    matches, _, dropped = harness.process(columns_of([0] + [1] * 900 + [2, 3]))
    assert max(len(bound) for _, _, bound in matches) == 902
    assert sum(pattern == 1 for _, pattern, _ in matches) == 900 * 899 // 2
    assert [pattern for _, pattern, _ in dropped] == [0]


@pytest.mark.compiled
def test_more_matches_of_one_event_each_than_there_was_room_for() -> None:
    harness = running(chain([0]), chain([2]))
    matches, _, _ = harness.process(columns_of([2] + [0] * 300_000 + [2]))
    assert matches[:2] == [(0, 1, ((0, 0),)), (1, 0, ((0, 1),))]
    assert [row for row, _, _ in matches] == list(range(300_002))
    assert {pattern for _, pattern, _ in matches[1:-1]} == {0}


def test_expired_nodes_are_given_back() -> None:
    harness = running(chain([0, 1, 2], within_us=100))
    peak = 0
    for turn in range(7):
        times = np.arange(turn * 3_000, (turn + 1) * 3_000)
        harness.process(columns_of([0, 1, 4] * 1_000, times))
        peak = max(peak, harness.engine.stats.nodes)
    assert peak <= 1_100


def test_a_trace_that_ends_gives_everything_back() -> None:
    harness = running(kleene(), chain([0, 1, 1]), chain([1, 0, 2], is_next=True))
    harness.process(columns_of([0, 1, 1, 0, 1, 2, 1]))
    assert harness.engine.stats.held > 0
    assert harness.engine.stats.pairs == 3
    harness.process(columns_of([END]))
    stats = harness.engine.stats
    assert (stats.held, stats.nodes, stats.pairs, stats.state_bytes) == (0, 0, 0, 0)
    assert harness.traces.counters["open"] == 0


def test_patterns_that_do_not_listen_hold_nothing() -> None:
    harness = running(chain([0, 1]), *(chain([2, 3]) for _ in range(200)))
    harness.process(columns_of([0, 0, 1], keys=[1, 2, 3]))
    assert harness.engine.stats.pairs == 2
    assert harness.engine.stats.nodes == 2


def test_many_pairs_of_many_traces_are_found_again() -> None:
    rng = random.Random(2)
    patterns = [chain([rng.randrange(3), rng.randrange(3), rng.randrange(3)]) for _ in range(40)]
    harness, twin = running(*patterns), Twin(dict(enumerate(patterns)), None)
    columns = columns_of([rng.randrange(4) for _ in range(1_500)], keys=[rng.randrange(60) << 32 for _ in range(1_500)])
    matches, _ = expected(twin, columns, 0)
    assert sorted(harness.process(columns)[0]) == sorted(matches)
    assert harness.engine.stats.held == twin.held


def saved_state():
    harness = running(chain([0, 1, 2], within_us=50), kleene())
    harness.process(columns_of([0, 1, 0, 1, 1, 2, 0], keys=[1, 1, 2, 2, 1, 1, 3]))
    arrays, numbers = harness.traces.dump_arrays()
    return harness, harness.engine.dump_arrays(numbers), len(arrays["trace_key"])


def test_dumped_arrays_hold_no_free_room() -> None:
    harness, arrays, _ = saved_state()
    size = sum(array.nbytes for name, array in arrays.items() if name != "shared_counters")
    assert size <= 1.2 * harness.engine.stats.state_bytes


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_damaged_arrays_are_refused_or_harmless(seed: int) -> None:
    rng = random.Random(seed)
    harness, arrays, traces = saved_state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    name = rng.choice([name for name, array in arrays.items() if array.size])
    if rng.random() < 0.2:
        arrays[name] = arrays[name][:-1]
    else:
        place = rng.randrange(arrays[name].size)
        arrays[name][place] = rng.choice([-(2**31), -2, -1, 0, 1, 2, 5, 100, 2**31 - 1])
    try:
        harness.engine.load_arrays(arrays, traces=traces, sequences=7)
    except StateFormatError:
        return
    harness.events = 7
    found, _, _ = harness.process(columns_of([1, 2, 1, 2, 3], [7, 8, 9, 10, 11], keys=[1, 1, 2, 2, 1]))
    assert all(0 <= event <= sequence for sequence, _, bound in found for _, event in bound)


def test_a_pattern_with_too_many_aliases_is_not_taken() -> None:
    step = SharedTransition(type_code=0, source=0, target=1, alias=1 << 15, predicate=0, accepts=True, goes_on=False)
    pattern = SharedPattern(states=2, terms=[1, 1], depth=[0, 1], transitions=[step])
    with pytest.raises(ValueError, match="aliases"):
        running(pattern)


def test_a_deviating_trace_may_match_again() -> None:
    guard = Guard({0: [{1: frozenset("2")}] * 3}, {"1": frozenset("2")})
    harness = Harness(guard)
    harness.configure({0: chain([0, 1])})
    matches, endings, _ = harness.process(columns_of([0, 2, 0, 1, 0, 1]))
    assert endings == [(1, 0, 1)]
    assert matches == [(5, 0, ((0, 4), (1, 5)))]
    assert harness.traces.monitors().tolist() == [DEVIANT]
