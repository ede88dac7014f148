"""Terms and states of a pattern."""

from __future__ import annotations

import pytest
from hypothesis import given

from nfa import Node, Pattern, PatternRefused, PatternState, Query, build_query, parse_pattern
from tests.builders.patterns import nodes


def query(event: str) -> Query:
    return build_query(parse_pattern(f"PATTERN p EVENT {event}"))


def test_or_distributes_over_everything() -> None:
    found = query("SEQ(OR(A a, B b), AND(OR(C c, D d), E e))")
    assert [[atom.alias for atom in term.atoms] for term in found.terms] == [
        ["a", "c", "e"],
        ["a", "d", "e"],
        ["b", "c", "e"],
        ["b", "d", "e"],
    ]
    assert found.terms[0].before == (frozenset(), {0}, {0})


def test_states_are_the_incomplete_down_closed_sets_small_ones_first() -> None:
    found = query("SEQ(AND(SEQ(A a, B b), C c), D d)")
    bound = [sorted(state.bound) for state in found.states]
    assert bound == [[], [0], [2], [0, 1], [0, 2], [0, 1, 2]]
    assert found.types == {"A", "B", "C", "D"}


@given(nodes())
def test_states_are_down_closed_ordered_and_complete(node: Node) -> None:
    found = build_query(Pattern(name="p", event=node))
    keys = [(state.term, len(state.bound), sorted(state.bound)) for state in found.states]
    assert keys == sorted(keys)
    assert len(set(found.states)) == len(found.states)
    for state in found.states:
        term = found.terms[state.term]
        assert all(term.before[atom] <= state.bound for atom in state.bound)
        assert len(state.bound) < len(term.atoms)
    for index in range(len(found.terms)):
        assert PatternState(index, frozenset()) in found.states


@pytest.mark.parametrize(
    ("event", "has_partitions"),
    [
        ("AND(" + ", ".join(f"OR(A a{i}, B b{i})" for i in range(10)) + ")", True),  # 10 * 1024 states and more
        ("SEQ(" + ", ".join(f"OR(A a{i}, B b{i})" for i in range(11)) + ")", True),
        ("SEQ(" + ", ".join(f"OR(A a{i}, B b{i})" for i in range(7)) + ")", False),
        ("SEQ(A a, B b)", False),
    ],
)
def test_patterns_with_too_many_alternatives_have_partitions(event: str, has_partitions: bool) -> None:
    assert bool(query(event).partitions) == has_partitions


def test_parallel_branches_that_grow_too_large_are_refused() -> None:
    with pytest.raises(PatternRefused, match="parallel branches make more than 4096 states; split") as caught:
        query("AND(" + ", ".join(f"A a{i}" for i in range(13)) + ")")
    assert caught.value.reason == "too-large"


@pytest.mark.parametrize(
    "event",
    [
        "SEQ(SEQ(SEQ(A{999} a){999}){999})",
        "SEQ(SEQ(_{999} a){999}, B b)",
        "SEQ(OR(SEQ(A{1000} a){5}, B b), C c)",
    ],
)
def test_repetitions_of_repetitions_are_refused_before_they_are_written_out(event: str) -> None:
    with pytest.raises(PatternRefused, match="more than 4096 steps"):
        query(event)


def test_of_many_repetitions_the_last_iterations_are_known() -> None:
    few, many = query("SEQ(A{2} a, B{97} b, C c)"), query("SEQ(A{2} a, B{98} b, C c)")
    assert [len(few.terms[0].atoms), len(many.terms[0].atoms)] == [100, 3]
    assert [(key[1], key[2]) for key in many.terms[0].keys] == [((1,), "A"), ((97,), "B"), ((), "C")]
    assert [sorted(state.bound) for state in many.states] == [[], [0], [0, 1]]


def test_what_precedes_a_repetition_of_which_the_last_is_known_is_not_said_to_be_next_to_it() -> None:
    near, far = query("SEQ(A a, NOT X, B{2} b, NOT Y, C c)"), query("SEQ(A a, NOT X, B{200} b, NOT Y, C c)")
    assert [one.atom.type for one in near.terms[0].absences] == ["X", "Y"]
    assert [one.atom.type for one in far.terms[0].absences] == ["Y"]
