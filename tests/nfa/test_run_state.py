"""Saved and moved state of the run engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.errors import StateFormatError
from nfa.language.parsing import parse_pattern
from nfa.runs.engine import RunEngine
from streams import Event, Ties
from tests.builders.patterns import patterns, traces
from tests.builders.runs import RunHarness

BOUNDED = settings(max_examples=120, deadline=None)
both_ties: st.SearchStrategy[Ties] = st.sampled_from(["log", "simultaneous"])


def automaton(text: str, name: str = "p") -> PatternAutomaton:
    return build_automaton(parse_pattern(f"PATTERN {name} EVENT {text}"))


def harness(automata: Sequence[PatternAutomaton], ties: Ties = "log") -> RunHarness:
    made = RunHarness(ties=ties)
    made.configure(automata)
    return made


@st.composite
def streams_of_two(draw: st.DrawFn) -> list[Event]:
    """Events of two traces, in the order of time."""
    events = [event for key in "kl" for event in draw(traces(max_size=5, key=key))]
    ordered = sorted(events, key=lambda event: event.time_us)
    return [Event(id=f"e{n}", type=e.type, time_us=e.time_us, key=e.key, data=e.data) for n, e in enumerate(ordered)]


@BOUNDED
@given(several=st.lists(patterns(), min_size=1, max_size=2), events=streams_of_two(), ties=both_ties, data=st.data())
def test_saving_and_loading_in_between_changes_nothing(several, events, ties, data):
    automata = [build_automaton(pattern) for pattern in several]
    plain, reloaded = harness(automata, ties), harness(automata, ties)
    borders = sorted(data.draw(st.sets(st.integers(0, len(events)), max_size=3)) | {len(events)})
    first = 0
    for last in borders:
        plain.feed(events[first:last])
        reloaded.feed(events[first:last])
        reloaded.reload()
        first = last
    assert (reloaded.engine.held, reloaded.engine.runs) == (plain.engine.held, plain.engine.runs)
    assert reloaded.engine.peak_held >= reloaded.engine.held
    assert sorted(reloaded.engine.held_sequences()) == sorted(plain.engine.held_sequences())
    plain.finish()
    reloaded.finish()
    for key in "kl":  # traces get new numbers, so their order is not compared
        for name in ("matches", "timeouts"):
            found, wanted = ([told for told in getattr(one, name) if told[1] == key] for one in (reloaded, plain))
            assert found == wanted
    assert reloaded.lost == plain.lost
    assert (reloaded.engine.held, reloaded.engine.runs) == (0, 0)


@BOUNDED
@given(one=patterns(name="p"), other=patterns(name="q"), events=streams_of_two(), ties=both_ties, data=st.data())
def test_other_patterns_come_and_go_without_a_trace(one, other, events, ties, data):
    stays, goes = build_automaton(one), build_automaton(other)
    alone, moved = harness([stays], ties), harness([stays], ties)
    first = 0
    for last in sorted(data.draw(st.sets(st.integers(0, len(events)), max_size=3)) | {len(events)}):
        moved.configure(data.draw(st.sampled_from([[stays], [goes, stays], [stays, goes]])))
        alone.feed(events[first:last])
        moved.feed(events[first:last])
        first = last
    moved.configure([stays])
    assert (moved.engine.held, moved.engine.runs) == (alone.engine.held, alone.engine.runs)
    alone.finish()
    moved.finish()
    assert [told for told in moved.matches if told[0] == "p"] == alone.matches
    assert [told for told in moved.timeouts if told[0] == "p"] == alone.timeouts


def saved() -> tuple[list[PatternAutomaton], dict[str, np.ndarray]]:
    automata = [
        automaton("SEQ(A a, B b [v = a.v], C c, NOT D n) WITHIN 99 us EMIT TIMEOUTS"),
        automaton("SEQ(NOT D n, A a, B+ b, C c) WITHIN 99 us", "q"),
    ]
    made = harness(automata)
    kinds = "DABBC"
    made.feed([Event(id=f"e{n}", type=kinds[n % 5], time_us=n, key="kl"[n % 2], data={"v": "x"}) for n in range(12)])
    return automata, made.dump()


def load(automata: Sequence[PatternAutomaton], arrays: dict[str, np.ndarray]) -> RunEngine:
    fresh = harness(automata)
    fresh.engine.load_arrays(arrays, traces=2, sequences=12)
    return fresh.engine


def test_every_array_has_one_dimension_and_fits_again():
    automata, arrays = saved()
    assert {array.ndim for array in arrays.values()} == {1}
    engine = load(automata, arrays)
    again = engine.dump_arrays(np.arange(2, dtype=np.int32))
    assert {name: array.tolist() for name, array in again.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }


def test_a_missing_or_short_array_is_refused():
    automata, arrays = saved()
    assert "run_peak" in arrays
    for name, whole in arrays.items():  # named here, as saving needs kernels, which collecting does not compile
        others = {other: array for other, array in arrays.items() if other != name}
        damaged = [{**others, name: whole.astype(np.float32)}]
        if name not in ("run_pair_work", "run_accounts", "run_worked"):  # older releases did not write them
            damaged.append(others)
        if name != "run_peak":
            damaged.append({**others, name: whole[:-1]})
        for found in damaged:
            with pytest.raises(StateFormatError):
                load(automata, found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_node_parent", 10_000),
        ("run_node_event", -1),
        ("run_node_event", 10_000),
        ("run_node_step", 10_000),
        ("run_node_step", 0),
        ("run_event_sequence", 12),
        ("run_event_kinds", 5),
        ("run_run_node", -1),
        ("run_run_node", 0),
        ("run_run_kind", 7),
        ("run_run_how", 4),
        ("run_pair_told", 3),
        ("run_run_finish", 3),
        ("run_pair_trace", 2),
        ("run_pair_trace", 0),
        ("run_pair_pattern", 2),
        ("run_pair_count", 1),
    ],
)
def test_a_link_that_leads_nowhere_is_refused(name, value):
    automata, arrays = saved()
    arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(StateFormatError, match="saved state"):
        load(automata, arrays)


@BOUNDED
@given(data=st.data())
def test_damaged_state_is_refused_or_does_no_harm(data):
    automata, arrays = saved()
    name = data.draw(st.sampled_from([name for name in sorted(arrays) if len(arrays[name])]))
    place = data.draw(st.integers(0, len(arrays[name]) - 1))
    kind = arrays[name].dtype
    value = data.draw(st.booleans() if kind == np.bool_ else st.integers(0, 127))
    damaged = arrays[name].copy()
    damaged[place] = value
    fresh = harness(automata)
    try:
        fresh.engine.load_arrays({**arrays, name: damaged}, traces=2, sequences=12)
    except StateFormatError:
        return
    fresh.engine.finish(str)
    assert (fresh.engine.held, fresh.engine.runs) == (0, 0)
