"""A guard's answers take effect at the event that causes them, and nothing else changes."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nfa import Atom, Ending, EventClass, Matcher, MonitorState, PatternState, Policy, Query, Symbol, parse_step
from nfa.guards.tables import GuardLayout, GuardTables
from nfa.kernels.traces import DEVIANT, NIL, UNGUARDED
from streams import Event, EventBatch
from tests.builders.patterns import run


@dataclass(frozen=True)
class Exclusion:
    """Of two types only one may come: the smallest useful guard."""

    first: str
    second: str
    policy: Policy = field(default_factory=Policy)
    symbols: tuple[Symbol, ...] = ()
    bits: None = None
    start: MonitorState = field(default_factory=MonitorState)

    @property
    def types(self) -> frozenset[str]:
        return frozenset({self.first, self.second, *(symbol.type for symbol in self.symbols)})

    def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
        names = {self.first, self.second}
        after = state.seen | ({event.type, *event.symbols} & names)
        return None if after == names else MonitorState(seen=after)

    def can_occur(self, state: MonitorState, atom: Atom) -> bool:
        return not self._impossible(state) & set(atom.types)

    def _impossible(self, state: MonitorState) -> set[str]:
        gone = {self.first: self.second, self.second: self.first}
        return {gone[name] for name in state.seen}

    def live(self, state: MonitorState, query: Query) -> NDArray[np.bool_]:
        impossible = self._impossible(state)
        return np.array([not self._missing(query, state) & impossible for state in query.states])

    def _missing(self, query: Query, state: PatternState) -> set[str]:
        atoms = query.terms[state.term].atoms
        return {atom.type for index, atom in enumerate(atoms) if index not in state.bound}


def trace(types: str, key: str = "k") -> list[Event]:
    return [Event(id=f"{name}{i}", type=name, time_us=i, key=key) for i, name in enumerate(types, 1)]


def guarded(*texts: str) -> Matcher:
    matcher = Matcher(end_events=("F",))
    for text in texts:
        matcher.add_pattern(text)
    matcher.set_guard(1, Exclusion("L", "U"))
    return matcher


def test_a_doomed_run_ends_at_the_event_that_dooms_it() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)")
    output = matcher.process(EventBatch.from_events(trace("AALA")))
    assert output.endings() == [
        Ending(
            pattern="p",
            version=1,
            key="k",
            event_id="L3",
            event_type="L",
            time_us=3,
            guard_version=1,
            before=MonitorState(),
            after=MonitorState(seen=frozenset("L")),
            event=EventClass(type="L"),
            state=PatternState(0, frozenset({0})),
        )
    ]
    assert matcher.stats.held == 0
    assert matcher.stats.peak_held == 2
    assert matcher.stats.nodes == 0


def test_a_bound_atom_is_safe() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(U u, A a)")
    matches, endings = run(matcher, [EventBatch.from_events(trace("UUAA"))])
    assert len(matches) == 4
    assert endings == []


def test_only_the_doomed_alternative_goes() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, OR(U u, B b))")
    matches, endings = run(matcher, [EventBatch.from_events(trace("ALB"))])
    assert [match.bindings["b"] for match in matches] == [("B3",)]
    assert endings == []


def test_an_event_that_is_out_of_reach_is_not_stored() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(OR(U u, A a), OR(B b, U v))", "PATTERN q EVENT SEQ(L x, U y)")
    matcher.process(EventBatch.from_events(trace("L")))
    assert matcher.stats.held == 0


def test_an_ended_pair_stays_ended_and_says_so_once() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)")
    _, endings = run(matcher, [EventBatch.from_events([event]) for event in trace("LALA")])
    assert [ending.event_id for ending in endings] == ["L1"]


def test_a_deviating_trace_is_reported_and_pruned_no_more() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)")
    first = matcher.process(EventBatch.from_events(trace("AL")))
    second = matcher.process(EventBatch.from_events(trace("ALUAU")[2:]))
    assert [ending.event_id for ending in first.endings()] == ["L2"]
    assert [(deviation.event_id, deviation.before) for deviation in second.deviations()] == [
        ("U3", MonitorState(seen=frozenset("L")))
    ]
    assert [match.bindings for match in second.matches()] == [{"a": ("A4",), "u": ("U5",)}]
    assert matcher.stats.deviations == 1


def test_open_traces_keep_their_guard_and_new_ones_follow_the_new() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)")
    matcher.process(EventBatch.from_events(trace("A", "old")))
    matcher.set_guard(2, Exclusion("M", "U"))
    assert matcher.guard_versions_in_use == {1, 2}
    later = [event for key in ("old", "new") for event in trace("ALM", key)]
    _, endings = run(matcher, [EventBatch.from_events(later)])
    assert [(ending.key, ending.event_id, ending.guard_version) for ending in endings] == [
        ("old", "L2", 1),
        ("new", "M3", 2),
    ]


def test_traces_that_were_open_before_the_first_guard_are_not_pruned() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, U u)")
    matcher.process(EventBatch.from_events(trace("Z")))
    matcher.set_guard(1, Exclusion("L", "U"))
    _, endings = run(matcher, [EventBatch.from_events(trace("ALU"))])
    assert endings == []
    assert matcher.stats.deviations == 0


def test_saved_state_names_what_was_seen_not_its_number() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)", "PATTERN q EVENT SEQ(A a, L b, B c)")
    matcher.process(EventBatch.from_events(trace("AL")))
    loaded = Matcher.load(matcher.dump(), {1: Exclusion("L", "U")})
    output = loaded.process(EventBatch.from_events(trace("ALBU")[2:]))
    assert [match.pattern for match in output.matches()] == ["q"]
    assert [deviation.before for deviation in output.deviations()] == [MonitorState(seen=frozenset("L"))]


def test_guards_are_asked_once_per_state_and_type() -> None:
    matcher = guarded("PATTERN p EVENT SEQ(A a, U u)")
    for key in ("k1", "k2", "k3"):
        matcher.process(EventBatch.from_events(trace("ALLAF", key)))
    stats = matcher.stats
    assert stats.guard_builds == 5  # A, L from nothing; L, A, F after L
    assert stats.guard_steps == 3  # the first L of each trace: nothing else moves the monitor


def layout(start: int) -> GuardLayout:
    none = np.zeros(1, np.int32)
    return GuardLayout(types=["L", "U"], views=[], state_range=none, negation_range=none, start=start)


def test_rows_are_built_when_they_are_asked_for_and_outlive_growth() -> None:
    tables = GuardTables({version: Exclusion("L", "U") for version in range(100)})
    start = tables.intern(0, MonitorState())
    tables.compile(layout(start))
    assert tables.tables.next[start].tolist() == [NIL] * 4  # the last is room
    tables.build(start, 0)
    after = int(tables.tables.next[start, 0])
    assert tables.states[after] == (0, MonitorState(seen=frozenset("L")))
    for version in range(1, 100):
        tables.build(tables.intern(version, MonitorState()), 1)
    assert tables.tables.next[start].tolist() == [after, NIL, NIL, NIL]
    assert tables.intern(0, MonitorState(seen=frozenset("L"))) == after
    tables.build(after, 1)
    assert tables.tables.next[after, 1] == DEVIANT
    assert tables.builds == 101


def test_above_the_cap_traces_go_on_unguarded() -> None:
    tables = GuardTables({1: Exclusion("L", "U", Policy(max_monitor_states=1))})
    start = tables.intern(1, MonitorState())
    tables.compile(layout(start))
    tables.build(start, 0)
    assert tables.tables.next[start, 0] == UNGUARDED
    assert tables.tables.next[DEVIANT].tolist() == [DEVIANT] * 4
    assert tables.refused == 1


def test_types_that_nobody_names_are_asked_about_too() -> None:
    class Closed(Exclusion):
        def step(self, state: MonitorState, event: EventClass) -> MonitorState | None:
            return None if "L" in state.seen else super().step(state, event)

    for texts in (["PATTERN p EVENT A"], ["PATTERN p EVENT A", "PATTERN q EVENT Z"]):
        matcher = Matcher()
        for text in texts:
            matcher.add_pattern(text)
        matcher.set_guard(1, Closed("L", "U"))
        output = matcher.process(EventBatch.from_events(trace("LZ")))
        assert [deviation.event_id for deviation in output.deviations()] == ["Z2"]


def test_guards_that_no_trace_follows_are_forgotten() -> None:
    matcher = Matcher(end_events=("F",))
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, U u)")
    guards = [Exclusion("L", "U"), Exclusion("M", "U"), Exclusion("N", "U")]
    known = [weakref.ref(guard) for guard in guards]
    matcher.set_guard(1, guards[0])
    matcher.process(EventBatch.from_events(trace("AL")))
    matcher.set_guard(2, guards[1])
    assert matcher.guard_versions_in_use == {1, 2}
    matcher.process(EventBatch.from_events(trace("F")))
    matcher.set_guard(3, guards[2])
    matcher.process(EventBatch.from_events(trace("A", "k2")))
    assert matcher.guard_versions_in_use == {3}
    guards.clear()
    gc.collect()
    assert [guard() is None for guard in known] == [True, True, False]


def test_events_of_one_type_are_told_apart_by_symbols() -> None:
    dear = Symbol(parse_step("Q [v > 9]"))
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, U u)")
    matcher.set_guard(1, Exclusion("U", dear.name, symbols=(dear,)))
    events = [
        Event(id=f"{key}{number}", type=name, time_us=number, key=key, data={"v": value})
        for key, value in (("cheap", 9), ("dear", 10))
        for number, name in enumerate("AQU")
    ]
    output = matcher.process(EventBatch.from_events(events))
    assert [match.key for match in output.matches()] == ["cheap"]
    assert [(ending.event_id, ending.event) for ending in output.endings()] == [
        ("dear1", EventClass(type="Q", symbols=frozenset({"Q [v > 9]"})))
    ]
    assert [deviation.event_id for deviation in output.deviations()] == ["dear2"]
