"""Traces of automata."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from constraints import ProcessAutomaton
from workflows import AutomatonWalk, SimulationSettings, simulate


@st.composite
def automata(draw: st.DrawFn) -> ProcessAutomaton:
    """From each state an accepting one can be reached: each has a move to a later one, or is accepting."""
    size = draw(st.integers(1, 7))
    letters = "abc"[: draw(st.integers(1, 3))]
    moves: list[dict[str, int]] = []
    accepting = {size - 1} | draw(st.sets(st.integers(0, size - 1)))
    for state in range(size):
        row = draw(st.dictionaries(st.sampled_from(letters), st.integers(0, size - 1)))
        if state not in accepting:
            row[draw(st.sampled_from(letters))] = draw(st.integers(state + 1, size - 1))
        moves.append(row)
    return ProcessAutomaton.of(letters, moves, accepting)


def slow_steps_to_go(automaton: ProcessAutomaton, state: int) -> int:
    """Breadth first, forwards."""
    layer, steps = {state}, 0
    while not any(automaton.accepting[each] for each in layer):
        layer = {int(after) for each in layer for after in automaton.table[each] if after >= 0}
        steps += 1
    return steps


@given(automata(), st.integers(0, 2**32), st.integers(0, 20))
def test_every_walk_is_a_complete_trace_and_ends(automaton: ProcessAutomaton, seed: int, most: int) -> None:
    walk, rng = AutomatonWalk(automaton, most), Random(seed)
    for _ in range(10):
        word = [activity.name for activity in walk.sample_trace(rng)]
        assert automaton.accepts(word)
        assert len(word) <= most + len(automaton)


@given(automata())
def test_the_way_out_is_as_short_as_can_be(automaton: ProcessAutomaton) -> None:
    expected = [slow_steps_to_go(automaton, state) for state in range(len(automaton))]
    assert automaton.distances(automaton.accepting).tolist() == expected


def test_a_walk_is_uniform_over_events_and_stopping() -> None:
    automaton = ProcessAutomaton.of("ab", [{"a": 1, "b": 1}, {"a": 1}], [1])
    walk, rng = AutomatonWalk(automaton), Random(3)
    words = ["".join(activity.name for activity in walk.sample_trace(rng)) for _ in range(4_000)]
    assert 0.45 < sum(word[0] == "a" for word in words) / 4_000 < 0.55
    assert 0.45 < sum(len(word) == 1 for word in words) / 4_000 < 0.55
    assert max(map(len, words)) > 8


def test_a_stream_of_an_automaton_holds_its_traces() -> None:
    automaton = ProcessAutomaton.of("abc", [{"a": 1}, {"b": 0, "c": 2}, {}], [2])
    settings = SimulationSettings(traces=50, concurrent=7)
    events = list(simulate(automaton, settings, 3))
    keys = {event.key for event in events}
    assert len(keys) == 50
    assert all(automaton.accepts(event.type for event in events if event.key == key) for key in keys)
    assert events == list(simulate(automaton, settings, 3))
    assert events != list(simulate(automaton, settings, 4))


def test_an_empty_trace_alone_gives_no_events() -> None:
    assert list(simulate(ProcessAutomaton.of((), [{}], [0]), SimulationSettings(traces=5), 1)) == []
