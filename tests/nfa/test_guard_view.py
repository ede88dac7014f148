"""Answers about pattern states as answers about the states of an automaton."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nfa import PatternState, Query, build_query, parse_pattern
from nfa.automata.guard_view import GuardView, guard_view
from nfa.automata.pattern_automaton import build_automaton
from nfa.registered import RunningPattern, registered


def pattern(event: str) -> RunningPattern:
    return registered(f"PATTERN p EVENT {event}", 1)


def answers(query: Query, is_live: Callable[[PatternState], bool]) -> NDArray[np.bool_]:
    return np.array([is_live(state) for state in query.states], np.bool_)


def accepting(one: RunningPattern) -> list[int]:
    return [state for state, accepts in enumerate(one.automaton.accepting) if accepts]


def test_a_state_lives_with_any_of_its_alternatives() -> None:
    one = pattern("SEQ(OR(A a, B b), C c)")
    live = one.view.live(answers(one.query, lambda state: state.term == 1))
    bound = {
        frozenset(found.term for found in states): bool(alive)
        for states, alive in zip(one.view.pattern_states, live, strict=True)
    }
    assert bound == {frozenset({0, 1}): True, frozenset({0}): False, frozenset({1}): True, frozenset(): True}


def test_nothing_rules_out_a_complete_match() -> None:
    one = pattern("SEQ(A a, B b)")
    live = one.view.live(answers(one.query, lambda state: False))
    assert [state for state, alive in enumerate(live) if alive] == accepting(one)


def test_a_pending_match_is_the_complete_state_of_a_trailing_term() -> None:
    one = pattern("SEQ(A a, B b, NOT X)")
    (pending,) = accepting(one)
    full = PatternState(0, frozenset({0, 1}))
    assert one.view.pattern_states[pending] == (full,)
    assert not one.view.is_free[pending]
    assert not one.view.live(answers(one.query, lambda state: state != full))[pending]
    assert one.view.live(answers(one.query, lambda state: state == full)).tolist() == [
        state == pending for state in range(len(one.automaton.states))
    ]


@pytest.mark.parametrize(
    "event",
    ["SEQ(A a, NOT X) WITHIN 3 s", "SEQ(A a, NOT X [v = 1])", "SEQ(A a, NOT X, B? b)", "SEQ(A a, WITHIN 2 s NOT X)"],
)
def test_a_match_that_waits_for_more_than_the_end_of_the_trace_is_free(event: str) -> None:
    one = pattern(event)
    assert all(one.view.is_free[state] for state in accepting(one))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("SEQ(A a, NOT X, B b)", []),
        ("SEQ(NOT X, A a)", []),
        ("SEQ(A a, NOT X, NOT Y [v = 1], WITHIN 2 s NOT Z)", ["X", "Y [v = 1]", "Z"]),
        ("SEQ(A a, NOT X) WITHIN 3 s", ["X"]),
        ("OR(SEQ(A a, NOT X), SEQ(B b, NOT X))", ["X"]),
        ("SEQ(A a, NOT X, B? b, NOT _)", ["X", "_"]),
    ],
)
def test_negations_are_the_steps_that_must_not_follow(event: str, expected: list[str]) -> None:
    one = pattern(event)
    assert [atom.type + (" [v = 1]" if atom.condition else "") for atom in one.view.negations] == expected
    outline = one.automaton.outline
    numbers = {
        negation.number for finishes in one.automaton.finishes for finish in finishes for negation in finish.negations
    }
    assert all(outline.negated[number] in one.view.negations for number in numbers)


def test_terms_are_bits_of_the_states_they_live_in() -> None:
    one = pattern("SEQ(OR(A a, B b), C c)")
    live = one.view.live_terms(answers(one.query, lambda state: state.term == 1))
    assert one.view.terms_of_state.tolist() == [
        0b11,
        0b01,
        0b10,
        *(0b11 if len(x) == 2 else 1 << x[0] for x in one.view.free_terms[3:]),
    ]
    assert live[:3].tolist() == [0b10, 0, 0b10]
    assert np.array_equal(live != 0, one.view.live(answers(one.query, lambda state: state.term == 1)))


def test_terms_from_the_31st_on_share_a_bit() -> None:
    types = "|".join(f"T{number}" for number in range(40))
    one = pattern(f"SEQ({types} a, B b)")
    assert len(one.query.terms) == 40
    assert one.view.terms_of_state[0] == 2**31 - 1
    live = one.view.live_terms(answers(one.query, lambda state: state.term == 39))
    assert live[0] == 1 << 30


EVENTS = [
    "SEQ(OR(A a, B b), AND(OR(C c, SEQ(A d, NOT X)), B e))",
    "SEQ(A|B a, C? c, A|C{2} d)",
    "OR(SEQ(A a, NOT X), SEQ(A b, B c, NOT Y), C+ d)",
]


@pytest.mark.parametrize(
    "event", ["SEQ(OR(A a, B b), AND(OR(C c, D d), B e))", "SEQ(A|B a, C? c, A|C{2} d)", EVENTS[2]]
)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_bits_are_what_each_pattern_state_says(event: str, data: st.DataObject) -> None:
    one = pattern(event)
    row = np.array(data.draw(st.lists(st.booleans(), min_size=len(one.query.states), max_size=len(one.query.states))))
    is_live = dict(zip(one.query.states, row.tolist(), strict=True))
    view: GuardView = one.view
    for state, bits in enumerate(view.live_terms(row).tolist()):
        terms = {found.term for found in view.pattern_states[state] if is_live[found]} | set(view.free_terms[state])
        assert bits == sum(1 << term for term in terms)
        every = {found.term for found in view.pattern_states[state]} | set(view.free_terms[state])
        assert view.terms_of_state[state] == sum(1 << term for term in every)


def test_what_ended_is_the_first_pattern_state_that_died() -> None:
    one = pattern("SEQ(OR(A a, B b), C c)")
    first, second = (PatternState(term, frozenset()) for term in (0, 1))
    before = answers(one.query, lambda state: state != first)
    after = answers(one.query, lambda state: False)
    assert one.view.ended(0, before, after) == second


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_partitions_end_by_one_that_died(data: st.DataObject) -> None:
    query = build_query(parse_pattern("PATTERN p EVENT SEQ(OR(A a, SEQ(B b, C|D c)), OR(E e, F f), G g)"), max_terms=0)
    view = guard_view(build_automaton(query.pattern), query)
    rows = st.lists(st.booleans(), min_size=len(query.states), max_size=len(query.states)).map(np.array)
    before = data.draw(rows)
    after = before & data.draw(rows)
    for state in np.flatnonzero(view.live(before) & ~view.live(after)).tolist():
        ended = view.ended(state, before, after)
        place = query.states.index(ended)
        assert before[place]
        assert not after[place]
        assert ended in view.pattern_states[state]
