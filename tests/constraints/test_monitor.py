"""The monitor against the reference and the oracle, and its own promises."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import NOTHING, Clause, ConstraintSet, End, Exclusive, Monitor, Prior, Require, Settings, remainder_of
from constraints.reasoning.reasoner import Reasoner
from constraints.remainder import single
from house.examples import Draws
from nfa import OTHER, Atom, Guard, MonitorState, OnViolation, Prune, Query
from tests.builders.constraints import (
    conforms,
    constraint_sets,
    oracle_alive,
    queries,
    query_of,
    random_query,
    random_set,
    words,
)
from tests.builders.monitors import after, event, verdicts
from tests.references.alive import alive

TYPES = "ABCDE"


def shown(*names: str) -> MonitorState:
    """The state of a monitor without rules whose trace has shown some types, in the order of the log."""
    return MonitorState(seen=frozenset(names))


@settings(max_examples=200)
@given(constraint_sets(TYPES), queries("ABCDEX"), st.lists(st.sampled_from("ABCDEXY"), max_size=6))
def test_agrees_with_the_reference_along_traces(constraint_set: ConstraintSet, query: Query, trace: list[str]) -> None:
    monitor = Monitor(constraint_set)
    state = monitor.start
    if not alive(constraint_set, state.seen):
        return
    for event_type in trace:
        seen = state.seen | ({event_type} & monitor.types)
        is_kept = not constraint_set.blocks(state.seen, event_type) and alive(constraint_set, seen).is_alive
        moved = monitor.step(state, event(event_type))
        assert moved == (shown(*seen) if is_kept else None)
        if moved is None:
            return
        state = moved
        assert monitor.live(state, query).tolist() == verdicts(constraint_set, state, query)


def test_agrees_with_the_oracle_on_random_walks(draws: Draws) -> None:
    """First inconsistent prefixes, live rows and what can still occur, by exhaustive search; 1,000 random sets."""
    random = Random(1)
    met = {"deviates": 0, "dead": 0, "gone": 0}
    for _ in (cases := draws(1_000)):
        constraint_set = random_set(random, "ABCD", random.randrange(1, 7))
        if random.random() < 0.3:
            constraint_set = ConstraintSet.of([*constraint_set.parts, End("D")])
        if not oracle_alive(constraint_set, frozenset(), NOTHING):
            continue
        query = random_query(random, "ABCDX", random.randrange(1, 4))
        monitor = Monitor(constraint_set)
        state = monitor.start
        for name in random.choices("ABCDX", k=5):
            seen = state.seen | ({name} & monitor.types)
            is_kept = not constraint_set.blocks(state.seen, name) and oracle_alive(constraint_set, seen, NOTHING)
            moved = monitor.step(state, event(name))
            assert (moved is not None) == is_kept, (constraint_set, state, name)
            if moved is None:
                met["deviates"] += 1
                break
            state = moved
            expected = [oracle_alive(constraint_set, seen, remainder_of(query, one)) for one in query.states]
            assert monitor.live(state, query).tolist() == expected
            can_occur = [monitor.can_occur(state, Atom((other,), other)) for other in "ABCDX"]
            assert can_occur == [oracle_alive(constraint_set, seen, single(other)) for other in "ABCDX"]
            met["dead"] += expected.count(False)
            met["gone"] += can_occur.count(False)
    assert min(met.values()) > len(cases) / 4, met


def test_every_short_word_against_the_definitions(draws: Draws) -> None:
    """A prefix is consistent if a conforming word of up to seven events begins with it; all words, 80 random sets."""
    random = Random(8)
    everything = list(words("ABC", 7))
    found = {True: 0, False: 0}
    for _ in (cases := draws(80)):
        constraint_set = random_set(random, "ABC", random.randrange(1, 6))
        consistent = {
            word[:size] for word in everything if conforms(constraint_set, word) for size in range(len(word) + 1)
        }
        if () not in consistent:
            continue
        monitor = Monitor(constraint_set)
        reached: dict[tuple[str, ...], MonitorState] = {(): monitor.start}
        for word in words("ABC", 4):
            if word and word[:-1] in reached:
                state = monitor.step(reached[word[:-1]], event(word[-1]))
                assert (state is not None) == (word in consistent), (constraint_set, word)
                found[state is not None] += 1
                if state is not None:
                    reached[word] = state
    assert min(found.values()) > 3.75 * len(cases), found


def test_agrees_with_the_reference_with_absences(draws: Draws) -> None:
    """States of patterns with NOT can come back to life, so each is asked about for itself."""
    random = Random(2)
    revived = dead = 0
    for _ in (cases := draws(2_000)):
        constraint_set = random_set(random, "ABCD", random.randrange(1, 7))
        query = random_query(random, "ABCD", random.randrange(1, 4), has_absence=True)
        monitor = Monitor(constraint_set)
        state: MonitorState | None = monitor.start
        previous = monitor.live(monitor.start, query)
        for name in random.sample("ABCD", 4):
            state = None if state is None else monitor.step(state, event(name))
            if state is not None:
                row = monitor.live(state, query)
                assert row.tolist() == verdicts(constraint_set, state, query)
                revived += int((row & ~previous).sum())
                dead += int((~row).sum())
                previous = row
    assert revived > len(cases) / 100
    assert dead > len(cases) / 2


def test_live_shrinks_along_the_trace_and_grows_along_the_bound_atoms(draws: Draws) -> None:
    random = Random(3)
    shrunk = 0
    for _ in (cases := draws(2_000)):
        constraint_set = random_set(random, TYPES, random.randrange(1, 8))
        query = random_query(random, TYPES, random.randrange(1, 5))
        monitor = Monitor(constraint_set)
        state: MonitorState | None = monitor.start
        row = np.ones(len(query.states), np.bool_)
        for name in random.sample(TYPES, 5):
            state = None if state is None else monitor.step(state, event(name))
            if state is None:
                break
            following = monitor.live(state, query)
            assert not (following & ~row).any()
            shrunk += int((row & ~following).sum())
            row = following
            for one, is_live in zip(query.states, row, strict=True):
                for other, other_lives in zip(query.states, row, strict=True):
                    if one.term == other.term and one.bound < other.bound:
                        assert other_lives or not is_live
    assert shrunk > len(cases) / 2


def test_the_row_before_gives_the_same_answers_as_none(draws: Draws) -> None:
    random = Random(4)
    for _ in draws(500):
        constraint_set = random_set(random, "ABCD", 5)
        query = random_query(random, "ABCD", 3)
        walking = Monitor(constraint_set)
        state: MonitorState | None = walking.start
        walking.live(walking.start, query)
        for name in random.sample("ABCD", 4):
            state = None if state is None else walking.step(state, event(name))
            if state is not None:
                assert walking.live(state, query).tolist() == Monitor(constraint_set).live(state, query).tolist()


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
    assert guard.symbols == ()
    assert guard.start == MonitorState()


def test_the_policy_comes_from_the_settings() -> None:
    wanted = Settings(prune=Prune.SHADOW, on_violation=OnViolation.FAIL_TRACE, max_monitor_states=7)
    policy = Monitor(ConstraintSet.of([Prior("A", "B")], settings=wanted)).policy
    assert (policy.prune, policy.on_violation, policy.max_monitor_states) == (Prune.SHADOW, OnViolation.FAIL_TRACE, 7)


def test_bit_tables_stand_by_where_the_log_orders_events() -> None:
    clause = Clause(frozenset({"A", "B"}), "C")
    constraint_set = ConstraintSet.of([clause, Exclusive("C", "D")])
    bits = Monitor(constraint_set).bits
    assert bits is not None
    assert bits.names(bits.mask("AX")) == {"A"}
    assert Monitor(constraint_set, ties="simultaneous").bits is None
    blind = Monitor(constraint_set, watched=()).bits
    assert blind is not None
    assert blind.rules != bits.rules


def test_types_that_no_constraint_names_do_not_move_it() -> None:
    monitor = Monitor(ConstraintSet((Prior("A", "B"),)))
    state = shown("B")
    assert monitor.step(state, event("X")) is state
    assert monitor.step(state, event("B")) is state
    assert monitor.step(state, event(OTHER)) is state
    assert monitor.step(state, event("A")) is None


def test_at_most_one_ends_with_the_second() -> None:
    monitor = Monitor(ConstraintSet((Prior("A", "A"),)))
    assert monitor.step(shown(), event("A")) == shown("A")
    assert monitor.step(shown("A"), event("A")) is None


def test_nothing_follows_an_end_event() -> None:
    monitor = Monitor(ConstraintSet(end_events=frozenset({"F", "G"})))
    over = monitor.step(monitor.start, event("F"))
    assert over == shown("F")
    assert [monitor.step(over, event(name)) for name in ("F", "G", "X", OTHER)] == [None, None, None, None]
    query = query_of(("SEQ", "X", "Y"))
    assert not monitor.live(over, query).any()
    assert monitor.live(monitor.start, query).all()
    steps = [Atom(("X",), "x"), Atom(("_",), "any"), Atom(("F", "X"), "either")]
    assert [monitor.can_occur(over, step) for step in steps] == [False, False, False]
    assert [monitor.can_occur(monitor.start, step) for step in steps] == [True, True, True]


def test_an_event_of_several_types_can_come_if_one_can() -> None:
    monitor = Monitor(ConstraintSet.of([Prior("A", "Z"), Prior("B", "Z"), Exclusive("C", "Z")]))
    state = after(monitor, "Z")
    assert state is not None
    assert not monitor.can_occur(state, Atom(("A", "B", "C"), "x"))
    assert monitor.can_occur(state, Atom(("A", "D"), "x"))
    assert monitor.can_occur(state, Atom(("_",), "x"))


def test_rows_are_shared_and_read_only() -> None:
    monitor = Monitor(ConstraintSet((Exclusive("L", "U"),)))
    query = query_of(("SEQ", "A", "U"))
    row = monitor.live(shown("L"), query)
    assert row.dtype == np.bool_
    assert row is monitor.live(shown("L"), query)
    with pytest.raises(ValueError, match="read-only"):
        row[0] = True


def test_a_full_memory_is_emptied_and_answers_stay_right() -> None:
    monitor = Monitor(ConstraintSet((Exclusive("L", "U"), Prior("A", "B"))), memory_limit=1)
    query = query_of(("SEQ", "A", "U"))
    first = monitor.live(shown("L"), query)
    assert monitor.live(shown("B"), query).tolist() == [False, True]
    again = monitor.live(shown("L"), query)
    assert again is not first
    assert again.tolist() == first.tolist() == [False, False]
    assert after(monitor, "L B") == shown("L", "B")


def test_long_clauses_chain() -> None:
    clauses = (Clause(frozenset({"A", "B"}), "C"), Clause(frozenset({"C", "D"}), "E"), Require("E", "F"))
    monitor = Monitor(ConstraintSet((*clauses, Clause(frozenset({"F", "G", "H"}), None))))
    query = query_of("H")
    assert monitor.live(shown(*"ABG"), query).tolist() == [True]
    assert monitor.live(shown(*"ABDG"), query).tolist() == [False]
