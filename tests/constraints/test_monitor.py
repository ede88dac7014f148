"""The monitor against the reference, and its own promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Clause, ConstraintSet, Exclusive, Monitor, Prior, Require, alive, remainder_of
from constraints.reasoner import Reasoner
from constraints.testing import constraint_sets, queries, query_of
from nfa import Guard, Query

TYPES = "ABCDE"


@settings(max_examples=200)
@given(constraint_sets(TYPES), queries("ABCDEX"), st.lists(st.sampled_from("ABCDEXY"), max_size=6))
def test_agrees_with_the_reference_along_traces(constraint_set: ConstraintSet, query: Query, trace: list[str]) -> None:
    monitor = Monitor(constraint_set)
    seen: frozenset[str] = frozenset()
    if not alive(constraint_set, seen):
        return
    for event_type in trace:
        after = seen | ({event_type} & monitor.types)
        is_kept = not constraint_set.blocks(seen, event_type) and alive(constraint_set, after).is_alive
        moved = monitor.step(seen, event_type)
        assert moved == (after if is_kept else None)
        if moved is None:
            return
        seen = moved
        expected = [alive(constraint_set, seen, remainder_of(query, state)).is_alive for state in query.states]
        assert monitor.live(seen, query).tolist() == expected


@given(constraint_sets(TYPES), queries(TYPES), st.frozensets(st.sampled_from(TYPES)))
def test_the_reasoner_agrees_on_any_set_of_types(
    constraint_set: ConstraintSet, query: Query, seen: frozenset[str]
) -> None:
    reasoner = Reasoner(constraint_set)
    mask = reasoner.mask(seen)
    assert reasoner.names(mask) == seen
    assert reasoner.names(reasoner.closure(mask)) == constraint_set.horn_closure(seen)
    for state in query.states:
        remainder = remainder_of(query, state)
        assert reasoner.is_alive(mask, reasoner.goal(remainder)) == alive(constraint_set, seen, remainder).is_alive


def test_is_a_guard() -> None:
    guard: Guard = Monitor(ConstraintSet((Prior("A", "B"),), frozenset({"F"})))
    assert guard.types == {"A", "B", "F"}


def test_types_that_no_constraint_names_do_not_move_it() -> None:
    monitor = Monitor(ConstraintSet((Prior("A", "B"),)))
    seen = frozenset({"B"})
    assert monitor.step(seen, "X") == seen
    assert monitor.step(seen, "B") == seen
    assert monitor.step(seen, "A") is None


def test_at_most_one_ends_with_the_second() -> None:
    monitor = Monitor(ConstraintSet((Prior("A", "A"),)))
    assert monitor.step(frozenset(), "A") == {"A"}
    assert monitor.step(frozenset({"A"}), "A") is None


def test_nothing_follows_an_end_event() -> None:
    monitor = Monitor(ConstraintSet(end_events=frozenset({"F", "G"})))
    after = monitor.step(frozenset(), "F")
    assert after == {"F"}
    assert [monitor.step(after, name) for name in ("F", "G", "X")] == [None, None, None]
    query = query_of(("SEQ", "X", "Y"))
    assert not monitor.live(after, query).any()
    assert monitor.live(frozenset(), query).all()


def test_rows_are_shared_and_read_only() -> None:
    monitor = Monitor(ConstraintSet((Exclusive("L", "U"),)))
    query = query_of(("SEQ", "A", "U"))
    row = monitor.live(frozenset({"L"}), query)
    assert row.dtype == np.bool_
    assert row is monitor.live(frozenset({"L"}), query)
    with pytest.raises(ValueError, match="read-only"):
        row[0] = True


def test_a_full_memory_is_emptied_and_answers_stay_right() -> None:
    monitor = Monitor(ConstraintSet((Exclusive("L", "U"), Prior("A", "B"))), memory_limit=1)
    query = query_of(("SEQ", "A", "U"))
    first = monitor.live(frozenset({"L"}), query)
    assert monitor.live(frozenset({"B"}), query).tolist() == [False, True]
    again = monitor.live(frozenset({"L"}), query)
    assert again is not first
    assert again.tolist() == first.tolist() == [False, False]


def test_long_clauses_chain() -> None:
    clauses = (Clause(frozenset({"A", "B"}), "C"), Clause(frozenset({"C", "D"}), "E"), Require("E", "F"))
    monitor = Monitor(ConstraintSet((*clauses, Clause(frozenset({"F", "G", "H"}), None))))
    query = query_of("H")
    assert monitor.live(frozenset("ABG"), query).tolist() == [True]
    assert monitor.live(frozenset("ABDG"), query).tolist() == [False]
