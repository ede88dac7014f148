"""The failing conditions of pattern states."""

from collections import defaultdict
from functools import cache

from hypothesis import given, settings

from constraints import (
    ConstraintSet,
    Exclusive,
    Monitor,
    Part,
    Prior,
    Require,
    Rule,
    failing_conditions,
    parse_constraints,
    remainder_of,
)
from constraints.explaining.failing import FailingCondition
from nfa import EventClass, MonitorState, PatternState, Query, Symbol, build_query, parse_pattern
from tests.builders.constraints import TraceStep, compared, constraint_sets, occupied_states, queries, query_of, words
from tests.references.alive import alive
from tests.references.workflows import enumerate_language
from workflows import derive_constraints, order_fulfilment

EP1 = """
PATTERN EP1 EVENT SEQ(
    AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]), SEQ(UseRemoteStock u, GenerateInvoice i)),
    CancelOrder c)
"""

# bound: (ends a partial match there, and so do these where they are not taken)
TABLE = {
    "": ("RejectOrder UseLocalStock", "OrderFromSupplier UseRemoteStock"),
    "o": ("SendQuote UseLocalStock", "UseRemoteStock"),
    "o q": ("UseLocalStock", "UseRemoteStock"),
    "u": ("", "GenerateInvoice OrderFromSupplier"),
    "o u": ("SendQuote", "GenerateInvoice"),
    "o q u": ("", "GenerateInvoice"),
    "u i": ("", "OrderFromSupplier"),
    "o u i": ("SendQuote", ""),
    "o q u i": ("FinishOrder", "CancelOrder"),
}


def listing(query: Query, conditions: tuple[FailingCondition, ...]) -> dict[str, tuple[str, str]]:
    """Per state, by the aliases it has bound: the events that end it, and those that do where they are not taken."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for state in query.states:
        found[" ".join(query.terms[state.term].atoms[atom].alias for atom in sorted(state.bound))] = ([], [])
    for condition in conditions:
        found[" ".join(atom.alias for atom in condition.bound)][condition.is_takable].append(condition.event_type)
    return {bound: (" ".join(others), " ".join(own)) for bound, (others, own) in found.items()}


def order_steps() -> set[tuple[frozenset[str], str]]:
    """What the order workflow may do next, by the types a trace has shown."""
    language = enumerate_language(order_fulfilment(), 3)
    return {(frozenset(word[:place]), name) for word in language for place, name in enumerate(word)}


def test_the_table_of_ep1() -> None:
    query = build_query(parse_pattern(EP1))
    constraint_set = derive_constraints(order_fulfilment())
    conditions = failing_conditions(query, constraint_set, steps=order_steps())
    assert listing(query, conditions) == TABLE


def test_constraints_alone_do_not_know_that_one_of_two_choices_is_always_made() -> None:
    """An invoice without any stock choice ends EP1 too: the workflow has no such trace, but constraints allow it."""
    query = build_query(parse_pattern(EP1))
    found = listing(query, failing_conditions(query, derive_constraints(order_fulfilment())))
    more = {
        bound: (f"GenerateInvoice {others}", own) if "u" not in bound.split() else (others, own)
        for bound, (others, own) in TABLE.items()
    }
    assert found == more


def test_the_conditions_of_ep1_in_words() -> None:
    query = build_query(parse_pattern(EP1))
    conditions = failing_conditions(query, derive_constraints(order_fulfilment()), steps=order_steps())
    texts = {(len(item.bound), item.event_type): item.text for item in conditions}
    assert texts[0, "RejectOrder"] == (
        "with nothing bound, RejectOrder rules the match out: the trace is over, and OrderFromSupplier o has not come"
    )
    assert texts[0, "UseLocalStock"] == (
        "with nothing bound, UseLocalStock rules the match out: "
        "exclusive(UseLocalStock, UseRemoteStock) means that UseRemoteStock u can no longer come"
    )
    assert texts[0, "OrderFromSupplier"] == (
        "with nothing bound, OrderFromSupplier, where it is not taken, rules the match out: prior(OrderFromSupplier, "
        "OrderFromSupplier) allows only one OrderFromSupplier, so OrderFromSupplier o can no longer come"
    )
    assert texts[1, "SendQuote"] == (
        "with OrderFromSupplier o bound, SendQuote ends the partial match: "
        "prior(GenerateQuote, SendQuote) means that GenerateQuote q [totalPrice > 200] can no longer come"
    )
    assert {condition.explanation.form for condition in conditions} == {"p1", "p2", "end"}


def test_the_conditions_of_alternatives_name_the_alternative() -> None:
    constraint_set = parse_constraints(["exclusive(A, X)", "exclusive(B, Y)"]).constraint_set
    conditions = failing_conditions(query_of(("OR", ("SEQ", "A", "C"), ("SEQ", "B", "C"))), constraint_set)
    texts = [item.text for item in conditions if item.event_type in ("X", "Y") and not item.bound]
    assert [text.split(":")[0] for text in texts] == [
        "with nothing bound, alternative 1 of 2, X rules the match out",
        "with nothing bound, alternative 2 of 2, Y rules the match out",
    ]


def test_conditions_that_need_two_events() -> None:
    constraints = ["require(E1, U1)", "require(E2, U2)", "prior(B, U1)", "prior(U1, U2)", "prior(U2, A)"]
    query, constraint_set = query_of(("SEQ", "A", "B")), parse_constraints(constraints).constraint_set
    pairs = [item for item in failing_conditions(query, constraint_set) if item.explanation.earlier]
    assert {item.explanation.form for item in pairs} == {"p4"}
    assert {frozenset({item.event_type, *item.explanation.earlier}) for item in pairs} == {frozenset({"E1", "E2"})}
    assert pairs[0].text.startswith("with nothing bound, E1 rules the match out, after E2: ")
    assert not any(item.explanation.earlier for item in failing_conditions(query, constraint_set, pair_limit=0))


def test_conditions_of_long_clauses() -> None:
    query = query_of(("SEQ", "X", "C"))
    conditions = failing_conditions(query, parse_constraints(["not_together(A, B, C)"]).constraint_set)
    assert [(item.event_type, item.explanation.earlier, item.explanation.form) for item in conditions] == [
        ("A", ("B",), "p5"),
        ("A", ("B",), "p5"),
    ]


TYPES = "ABCD"
WORDS = tuple(words(TYPES, 4))


@cache
def reachable_endings(
    constraint_set: ConstraintSet, query: Query
) -> dict[PatternState, set[tuple[frozenset[str], str]]]:
    """By trying every short trace: the states that an event ends, with the types seen before it."""
    monitor = Monitor(constraint_set)
    found = defaultdict(set)
    for word in WORDS[1:]:
        before = _monitored(monitor, word[:-1])
        after = None if before is None else monitor.step(before, EventClass(type=word[-1]))
        if before is not None and after is not None and after != before:
            occupied = occupied_states(query, [TraceStep(name) for name in word[:-1]])
            ended = monitor.live(before, query) & ~monitor.live(after, query)
            for state, is_ended in zip(query.states, ended, strict=True):
                if is_ended and state in occupied:
                    found[state].add((before.seen, word[-1]))
    return dict(found)


def _monitored(monitor: Monitor, word: tuple[str, ...]) -> MonitorState | None:
    state: MonitorState | None = monitor.start
    for name in word:
        state = None if state is None else monitor.step(state, EventClass(type=name))
    return state


@settings(max_examples=40)
@given(constraint_sets(TYPES, max_size=6), queries(TYPES, max_atoms=3))
def test_all_that_can_happen_is_listed_and_nothing_else(constraint_set: ConstraintSet, query: Query) -> None:
    """With four types a condition needs at most two events, and four events are enough to see it."""
    if not alive(constraint_set, frozenset()):
        return
    endings = reachable_endings(constraint_set, query)
    conditions = failing_conditions(query, constraint_set)
    for state in query.states:
        listed = [item for item in conditions if item.state == state]
        groups = [frozenset({item.event_type, *item.explanation.earlier}) for item in listed]
        for seen, event_type in endings.get(state, ()):
            assert any(group <= seen | {event_type} for group in groups), (state, seen, event_type)
        for item in listed:
            if len(state.bound) < 2:
                assert any(event == item.event_type for _, event in endings.get(state, ())), item.text


def test_states_that_are_dead_from_the_start_have_no_conditions() -> None:
    constraint_set = parse_constraints(["exclusive(A, B)", "prior(C, A)"]).constraint_set
    query = query_of(("AND", "A", "B"))
    assert not alive(constraint_set, frozenset(), remainder_of(query, query.states[0]))
    assert not [item for item in failing_conditions(query, constraint_set) if not item.bound]


DEAR, DEARER = (Symbol(compared("Q", ">", price)) for price in (1000, 2000))


def test_symbols_end_partial_matches() -> None:
    parts: list[Part] = [Exclusive(DEAR.name, "U"), Prior("U", "Z")]
    constraint_set = ConstraintSet.of(parts, symbols={DEAR.name: DEAR})
    conditions = failing_conditions(query_of(("SEQ", "A", "U u")), constraint_set)
    after_a = [item.explanation.event_name for item in conditions if item.bound]
    assert after_a == [f"`{DEAR.name}`", "Z"]
    assert conditions[0].text.startswith(f"with nothing bound, `{DEAR.name}` rules the match out: exclusive(")
    assert not failing_conditions(query_of(("SEQ", "U u", "A")), constraint_set)[-1].bound


def test_the_widest_symbol_is_listed_alone() -> None:
    parts: list[Part] = [Exclusive(DEAR.name, "U"), Require(DEARER.name, "K")]
    constraint_set = ConstraintSet.of(parts, symbols={DEAR.name: DEAR, DEARER.name: DEARER})
    conditions = failing_conditions(query_of("U u"), constraint_set)
    assert [item.explanation.shown for item in conditions] == [(DEAR.name,)]


def test_events_that_make_certain_what_must_not_come_are_listed() -> None:
    conditions = failing_conditions(
        query_of(("SEQ", "A", "NOT X")), parse_constraints(["require(E, X)"]).constraint_set
    )
    listed = {(len(item.bound), item.event_type): item.explanation.forbidden for item in conditions}
    assert listed == {(1, "E"): ("X",)}


def test_what_rules_end_is_listed_with_what_constraints_end() -> None:
    rules = [Rule("absence", ("B",), 2), Rule("chain response", ("C", "D"))]
    constraint_set = ConstraintSet.of([Exclusive("A", "L"), *rules])
    conditions = failing_conditions(query_of(("SEQ", "A a", "B b")), constraint_set)
    listed = {
        (len(item.bound), item.event_type, item.is_takable): (item.explanation.form, item.explanation.because)
        for item in conditions
    }
    assert listed == {
        (0, "B", False): ("rule", "absence(2, B) leaves no place for B b"),
        (0, "L", False): ("p2", "exclusive(A, L) means that A a can no longer come"),
        (1, "B", True): ("rule", "absence(2, B) leaves no place for B b"),
    }


def test_a_rule_can_end_a_match_at_an_event_of_any_other_type() -> None:
    constraint_set = ConstraintSet.of([Rule("init", ("A",)), Rule("chain precedence", ("A", "B")), Prior("A", "A")])
    conditions = failing_conditions(query_of("B b"), constraint_set)
    events = {item.explanation.event_name for item in conditions}
    assert events == {"B", "any other event"}
    assert all(item.explanation.form == "rule" for item in conditions)


def test_the_walk_of_rules_is_limited() -> None:
    constraint_set = ConstraintSet.of([Rule("absence", ("B",), 3)])
    query = query_of(("SEQ", "A", "B"))
    assert [item.event_type for item in failing_conditions(query, constraint_set)] == ["B", "B"]
    assert failing_conditions(query, constraint_set, walk_limit=2) == ()
