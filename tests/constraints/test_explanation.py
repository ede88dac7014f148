"""Why an event ended a partial match."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    ConstraintSet,
    End,
    Exclusive,
    Explanation,
    Monitor,
    Part,
    Prior,
    Rule,
    explain_ending,
    parse_constraints,
    remainder_of,
)
from house.examples import Draws
from nfa import EventClass, MonitorState, Pattern, PatternState, Query, Symbol, build_query
from streams import Ties
from tests.builders.constraints import Tree, compared, constraint_sets, queries, query_of, random_query, random_set
from tests.references.alive import alive

QUOTE: Tree = ("SEQ", "O o", "Q q", "F f")


def explain(constraints: list[str], tree: Tree, bound: set[int], before: str, event_type: str) -> Explanation:
    constraint_set = parse_constraints(constraints).constraint_set
    seen = frozenset(before.split())
    state = PatternState(0, frozenset(bound))
    after = MonitorState(seen=seen | {event_type})
    event = EventClass(type=event_type)
    return explain_ending(constraint_set, query_of(tree), state, MonitorState(seen=seen), after, event)


def test_p1_says_that_its_time_has_passed() -> None:
    found = explain(["prior(Q, S)"], QUOTE, {0}, "O", "S")
    assert (found.form, found.event_type, found.earlier) == ("p1", "S", ())
    assert [str(part) for part in found.constraints] == ["prior(Q, S)"]
    assert found.atom.alias == "q"
    assert found.text == "S ends it: prior(Q, S) means that Q q can no longer come"


def test_p1_at_most_once() -> None:
    found = explain(["prior(Q, Q)"], QUOTE, {0}, "O", "Q")
    assert found.form == "p1"
    assert found.text == "Q ends it: prior(Q, Q) allows only one Q, so Q q can no longer come"


def test_p2_says_what_is_excluded() -> None:
    found = explain(
        ["exclusive(UseLocalStock, UseRemoteStock)"], ("SEQ", "A", "UseRemoteStock u"), {0}, "A", "UseLocalStock"
    )
    assert found.form == "p2"
    assert found.text == (
        "UseLocalStock ends it: exclusive(UseLocalStock, UseRemoteStock) means that UseRemoteStock u can no longer come"
    )


def test_p2_through_what_the_event_requires() -> None:
    found = explain(["require(E, K)", "exclusive(K, M)"], ("SEQ", "X", "M m"), {0}, "X", "E")
    assert found.form == "p2"
    assert found.text == "E ends it: require(E, K) and exclusive(K, M) mean that M m can no longer come"


def test_p3_names_what_is_missing() -> None:
    found = explain(["require(A, K1)", "require(K1, K2)", "prior(K2, Z)"], ("SEQ", "X", "A a"), {0}, "X", "Z")
    assert found.form == "p3"
    assert found.text == (
        "Z ends it: A a needs K2 by require(A, K1) and require(K1, K2), and by prior(K2, Z) K2 can no longer come"
    )


def test_p4_names_the_atoms_that_cannot_be_ordered() -> None:
    found = explain(["prior(A, B)", "prior(B, C)", "require(E, B)"], ("SEQ", "C c", "A a"), set(), "", "E")
    assert found.form == "p4"
    assert [atom.alias for atom in found.atoms] == ["c", "a"]
    assert found.text == "E ends it: require(E, B), prior(A, B) and prior(B, C) leave no order for C c and A a"


def test_p4_with_two_events() -> None:
    constraints = ["require(E1, U1)", "require(E2, U2)", "prior(B, U1)", "prior(U1, U2)", "prior(U2, A)"]
    found = explain(constraints, ("SEQ", "A", "B"), set(), "E1", "E2")
    assert (found.form, found.earlier) == ("p4", ("E1",))
    assert found.text.startswith("E2 ends it, after E1: require(E1, U1), require(E2, U2), ")


def test_p4_with_one_atom() -> None:
    constraints = ["require(A, M)", "require(E, U)", "require(E, V)", "prior(M, U)", "prior(U, V)", "prior(V, M)"]
    found = explain(constraints, ("SEQ", "X", "A a"), {0}, "", "E")
    assert found.form == "p4"
    assert found.text.endswith("leave no place for A a")


def test_p5_with_an_earlier_event() -> None:
    found = explain(["not_together(A, B, C)"], ("SEQ", "X", "C c"), {0}, "X A", "B")
    assert found.form == "p5"
    assert found.text == "B ends it, after A: not_together(A, B, C) means that C c can no longer come"


def test_p5_rules_out_two_atoms_together() -> None:
    found = explain(["not_together(E, B, C)"], ("AND", "B b", "C c"), set(), "", "E")
    assert found.form == "p5"
    assert found.text == "E ends it: not_together(B, C, E) means that B b and C c can no longer both come"


def test_p5_with_three_atoms() -> None:
    found = explain(["not_together(E, A, B, C)"], ("AND", "A", "B", "C"), set(), "", "E")
    assert found.text == "E ends it: not_together(A, B, C, E) means that A, B and C can no longer all come"


def test_an_end_event_ends_everything() -> None:
    found = explain(["end(Fin)"], QUOTE, {0}, "", "Fin")
    assert (found.form, found.constraints) == ("end", (End("Fin"),))
    assert found.text == "Fin ends it: the trace is over, and Q q has not come"


def test_an_end_event_that_may_have_completed_a_match_leaves_no_room_for_another() -> None:
    found = explain(["end(Fin)"], ("SEQ", "A", "Fin f"), {0}, "A", "Fin")
    assert found.text == "Fin ends it: the trace is over, so no other Fin f can come"


def test_odd_names_are_quoted() -> None:
    found = explain(["exclusive(`go home`, U)"], ("SEQ", "A", "U u"), {0}, "A", "go home")
    assert found.text == "`go home` ends it: exclusive(U, `go home`) means that U u can no longer come"


def test_an_event_after_which_all_can_complete_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="did not end"):
        explain(["prior(Q, S)"], QUOTE, {0}, "O", "X")


def test_what_ended_late_is_explained_by_what_is_known_then() -> None:
    assert explain(["prior(Q, S)"], QUOTE, {0}, "O S", "X").constraints == (Prior("Q", "S"),)


@settings(max_examples=200)
@given(constraint_sets("ABCDE", max_size=10), queries("ABCDE"), st.permutations("ABCDE"))
def test_each_ending_of_a_trace_is_explained_by_its_event(
    constraint_set: ConstraintSet, query: Query, trace: list[str]
) -> None:
    monitor = Monitor(constraint_set)
    before = monitor.start
    for event_type in trace if alive(constraint_set, before.seen) else []:
        event = EventClass(type=event_type)
        after = monitor.step(before, event)
        if after is None:
            return
        ended = monitor.live(before, query) & ~monitor.live(after, query)
        for state in (state for state, is_ended in zip(query.states, ended, strict=True) if is_ended):
            found = explain_ending(constraint_set, query, state, before, after, event)
            core = ConstraintSet.of(found.constraints)
            remainder = remainder_of(query, state).restricted_to(found.atoms)
            assert alive(core, before.seen, remainder)
            assert not alive(core, after.seen, remainder)
            assert set(found.earlier) <= before.seen
            assert found.atom in remainder.atoms
        before = after


def test_forms_follow_the_shape_of_the_chain() -> None:
    constraint_set = ConstraintSet((Exclusive("L", "U"),), frozenset("L"))
    query = query_of(("SEQ", "A", "U"))
    after = MonitorState(seen=frozenset("L"))
    found = explain_ending(constraint_set, query, query.states[1], MonitorState(), after, EventClass(type="L"))
    assert found.form == "end"


def endings(
    constraint_set: ConstraintSet, query: Query, *events: EventClass | str, ties: Ties = "log"
) -> dict[tuple[int, ...], Explanation]:
    """Why the last event ends states, by the atoms that these have bound."""
    listed = [EventClass(type=one) if isinstance(one, str) else one for one in events]
    monitor = Monitor(constraint_set, ties=ties)
    before = monitor.start
    for event in listed[:-1]:
        moved = monitor.step(before, event)
        assert moved is not None
        before = moved
    after = monitor.step(before, listed[-1])
    assert after is not None
    ended = monitor.live(before, query) & ~monitor.live(after, query)
    return {
        tuple(sorted(state.bound)): explain_ending(constraint_set, query, state, before, after, listed[-1])
        for state, is_ended in zip(query.states, ended, strict=True)
        if is_ended
    }


# Symbols

DEAR = Symbol(compared("Q", ">", 1000))
DEAR_QUOTE = EventClass(type="Q", symbols=frozenset({DEAR.name}))


def test_the_symbol_that_did_it_is_named() -> None:
    constraint_set = ConstraintSet.of([Exclusive(DEAR.name, "U")], symbols={DEAR.name: DEAR})
    found = endings(constraint_set, query_of(("SEQ", "Q", "U u")), DEAR_QUOTE)
    assert set(found) == {(), (0,)}
    assert (found[0,].event_type, found[0,].shown, found[0,].earlier) == ("Q", (DEAR.name,), ())
    assert found[0,].text.startswith(f"`{DEAR.name}` ends it: exclusive(")
    assert not endings(constraint_set, query_of(("SEQ", "Q", "U u")), "Q")


def test_the_type_is_named_where_it_is_enough() -> None:
    parts: list[Part] = [Exclusive("Q", "U"), Prior(DEAR.name, "Z")]
    constraint_set = ConstraintSet.of(parts, symbols={DEAR.name: DEAR})
    found = endings(constraint_set, query_of("U u"), DEAR_QUOTE)[()]
    assert (found.shown, found.text) == ((), "Q ends it: exclusive(Q, U) means that U u can no longer come")


def test_a_step_whose_condition_implies_a_symbol_is_blocked_with_it() -> None:
    constraint_set = ConstraintSet.of([Prior(DEAR.name, "Approve")], symbols={DEAR.name: DEAR})
    step = compared("Q", ">", 2000, "q")
    found = endings(constraint_set, build_query(Pattern(name="p", event=step)), "Approve")[()]
    assert (found.form, found.atoms, found.event_name) == ("p1", (step,), "Approve")


# What must not come


def test_an_event_that_must_not_come_became_certain() -> None:
    """N6: r(A, X), SEQ(A, NOT X): the match of an earlier A is gone when another A asks for an X to come."""
    constraint_set = parse_constraints(["require(E, X)"]).constraint_set
    found = endings(constraint_set, query_of(("SEQ", "A", "NOT X")), "E")
    assert set(found) == {(0,)}
    assert (found[0,].form, found[0,].atoms, found[0,].forbidden) == ("p4", (), ("X",))
    assert found[0,].text == "E ends it: require(E, X) means that X must still come"
    assert found[0,].key == "p4 require(E, X) -> NOT X"
    assert found[0,].atom.type == "X"


def test_an_event_that_must_not_come_has_no_other_place() -> None:
    constraint_set = parse_constraints(["require(E, X)", "prior(X, B)"]).constraint_set
    found = endings(constraint_set, query_of(("SEQ", "A", "NOT X", "B")), "E")[0,]
    assert [str(part) for part in found.constraints] == ["require(E, X)", "prior(X, B)"]
    assert found.text == (
        "E ends it: require(E, X) and prior(X, B) mean that X must still come where NOT X forbids it, next to B"
    )


def test_an_event_came_before_which_it_must_not() -> None:
    constraint_set = parse_constraints(["prior(X, Z)"]).constraint_set
    found = endings(constraint_set, query_of(("SEQ", "NOT X", "A")), "X")[()]
    assert (found.constraints, found.forbidden) == ((), ("X",))
    assert found.text == "X ends it: X came, which NOT X forbids"


def test_each_ending_with_absences_is_explained(draws: Draws) -> None:
    """The constraints of each explanation alone imply the ending; 1,000 random sets and patterns."""
    random = Random(1)
    forbidden = 0
    for _ in (cases := draws(1_000)):
        constraint_set = random_set(random, "ABCD", random.randrange(1, 7))
        query = random_query(random, "ABCD", random.randrange(1, 4), has_absence=True)
        monitor = Monitor(constraint_set)
        before: MonitorState | None = monitor.start
        for name in random.sample("ABCD", 4):
            after = None if before is None else monitor.step(before, EventClass(type=name))
            if before is None or after is None:
                break
            ended = monitor.live(before, query) & ~monitor.live(after, query)
            for state in (state for state, is_ended in zip(query.states, ended, strict=True) if is_ended):
                found = explain_ending(constraint_set, query, state, before, after, EventClass(type=name))
                forbidden += bool(found.forbidden)
                core = ConstraintSet.of(found.constraints)
                assert not alive(core, after.seen, remainder_of(query, state))
                assert set(found.earlier) <= before.seen
            before = after
    assert forbidden > len(cases) / 20


# Rules


def test_a_rule_that_leaves_no_place() -> None:
    constraint_set = ConstraintSet.of([Rule("absence", ("A",), 3), Prior("X", "Y"), Rule("response", ("X", "Y"))])
    found = endings(constraint_set, query_of(("SEQ", "B", "A a")), "A", "A")[0,]
    assert (found.form, found.event_type, [atom.alias for atom in found.atoms]) == ("rule", "A", ["a"])
    assert found.text == "A ends it: absence(3, A) leaves no place for A a"
    assert found.key == "rule absence(3, A) -> A a"


def test_a_rule_and_a_constraint_leave_no_place() -> None:
    constraint_set = ConstraintSet.of([Rule("response", ("A", "K")), Prior("K", "Z"), Exclusive("U", "V")])
    found = endings(constraint_set, query_of(("SEQ", "X", "A a")), "Z")[0,]
    assert found.text == "Z ends it: prior(K, Z) and response(A, K) leave no place for A a"
    assert found.earlier == ()


# Events of one time in no order


def test_an_event_ends_what_was_over_with_the_time_before_it() -> None:
    constraint_set = parse_constraints(["prior(A, B)"]).constraint_set
    found = endings(constraint_set, query_of("A a"), "B", "X", ties="simultaneous")[()]
    assert found.text == "X ends it, after B: prior(A, B) means that A a can no longer come"
