"""The golden cases of constraint-aware CEP, section 9, in every decider."""

from collections.abc import Callable
from itertools import permutations

import pytest

from constraints import ConstraintSet, Monitor, Remainder, following, parse_constraints, remainder_of
from constraints.reasoning.reasoner import Reasoner
from nfa import Atom, EventClass, MonitorState, PatternState, Query
from tests.builders.constraints import Tree, occupied_states, oracle_alive, query_of, steps_of
from tests.builders.exact import followed, language_of
from tests.references.alive import alive
from tests.references.bit_tables import BitTables


def is_alive(reasoner: Reasoner, seen: frozenset[str], remainder: Remainder) -> bool:
    return reasoner.is_alive(reasoner.mask(seen), reasoner.goal(remainder))


Decider = Callable[[ConstraintSet, frozenset[str], Query, PatternState], bool]


def by_bit_tables(known: ConstraintSet, seen: frozenset[str], query: Query, state: PatternState) -> bool:
    tables = BitTables(known)
    return not tables.is_dead(tables.enter(seen), tables.goals(query)[query.states.index(state)])


def by_exact_mode(known: ConstraintSet, seen: frozenset[str], query: Query, state: PatternState) -> bool:
    """By the automaton of all traces that keep the constraints; what was seen came in some order that fits."""
    automaton = language_of(known, known.types | query.types | seen)
    exact = following(
        ConstraintSet(),
        workflow="w",
        version=1,
        constraints=known.constraints,
        end_events=known.end_events,
        automaton=automaton,
    )
    monitor = Monitor(exact)
    for word in permutations(sorted(seen)):
        reached: MonitorState | None = monitor.start
        for name in word:
            reached = None if reached is None else monitor.step(reached, EventClass(type=name))
        if reached is not None:
            return bool(monitor.live(reached, query)[query.states.index(state)])
    raise AssertionError(f"no conforming trace begins with {sorted(seen)}")


DECIDERS: dict[str, Decider] = {
    "bit tables": by_bit_tables,
    "reference": lambda known, seen, query, state: alive(known, seen, remainder_of(query, state)).is_alive,
    "monitor": lambda known, seen, query, state: bool(
        Monitor(known).live(MonitorState(seen=seen), query)[query.states.index(state)]
    ),
    "reasoner": lambda known, seen, query, state: is_alive(Reasoner(known), seen, remainder_of(query, state)),
    "exact mode": by_exact_mode,
    "oracle": lambda known, seen, query, state: oracle_alive(known, seen, remainder_of(query, state)),
}

PENDING_ORDER = "prior(A, B) prior(B, C) require(E, B)"
TWO_EVENTS = "require(E1, U1) require(E2, U2) prior(B, U1) prior(U1, U2) prior(U2, A)"
THROUGH_OUTSIDE = "require(M, U) prior(B, U) prior(U, A)"
NESTED: Tree = ("SEQ", ("OR", ("SEQ", "O", "Q"), ("SEQ", "U", "I")), "F")

# number, constraints, pattern, prefixes where it is alive, prefixes where it is dead
CASES: list[tuple[int, str, Tree, list[str], list[str]]] = [
    (1, "exclusive(L, U)", ("SEQ", "A", "U"), ["A"], ["A L"]),
    (2, "prior(Q, S)", ("SEQ", "O", "Q", "F"), ["O", "O Q S"], ["O S", "S O"]),
    (3, "require(A, K) prior(K, Z)", ("SEQ", "X", "A"), ["X", "X K Z"], ["X Z", "Z"]),
    (4, "require(A, K1) require(K1, K2) prior(K2, Z)", ("SEQ", "X", "A"), ["X K2 Z"], ["X Z"]),
    (5, "require(E, K) exclusive(K, M)", ("SEQ", "X", "M"), ["X"], ["X E"]),
    (6, "prior(A, B) prior(B, C)", ("SEQ", "X", "A"), ["X C"], ["X B"]),
    (7, PENDING_ORDER, ("SEQ", "C", "A"), [""], ["E", "B"]),
    (8, TWO_EVENTS, ("SEQ", "A", "B"), ["E1", "E2"], ["E1 E2"]),
    (9, "require(A, K) exclusive(K, M)", ("AND", "A", "M"), [], [""]),
    (10, "prior(A, A)", ("AND", "A a", "A b"), [], [""]),
    (11, "prior(A, Z)", ("AND", "A a", ("SEQ", "A b", "B")), ["A", "A A Z"], ["A Z"]),
    (12, "not_together(A, B, C)", ("SEQ", "X", "C"), ["X A"], ["X A B"]),
    (13, "not_together(E, B, C)", ("AND", "B", "C"), [""], ["E", "B E"]),
    (14, "implication(A, B, K) prior(K, Z)", ("SEQ", "X", "B"), ["X Z", "X A", "X A K Z"], ["X A Z", "X Z A"]),
    (15, "exclusive(L, U) prior(Q, S)", NESTED, ["O L", "O S", "O Q L S"], ["O L S"]),
    (
        16,
        "exclusive(B, D) exclusive(A, X) exclusive(C, Y)",
        ("AND", ("OR", "A", "B"), ("OR", "C", "D")),
        ["X"],
        ["X Y"],
    ),
    (17, "prior(A, B) prior(B, A)", ("SEQ", "X", "B"), ["X"], ["A"]),
    (18, "prior(A, B)", ("SEQ", "B", "A"), [], [""]),
    (19, THROUGH_OUTSIDE, ("SEQ", ("AND", "A", "M"), "B"), [], [""]),
    (20, "prior(Q, S)", ("SEQ", "O", "Q", "F"), ["O Q S"], ["O Q! S"]),
]


def constraints_of(text: str) -> ConstraintSet:
    return parse_constraints([f"{entry.strip()})" for entry in text.split(")") if entry.strip()]).constraint_set


@pytest.mark.parametrize("decider", DECIDERS)
@pytest.mark.parametrize(
    ("number", "constraints", "tree", "living", "dead"), CASES, ids=[str(case[0]) for case in CASES]
)
def test_golden_case(
    number: int, constraints: str, tree: Tree, living: list[str], dead: list[str], decider: str
) -> None:
    known, query = constraints_of(constraints), query_of(tree)
    verdicts = {}
    for prefix in [*living, *dead]:
        steps = steps_of(prefix)
        seen = frozenset(step.type for step in steps)
        verdicts[prefix] = any(DECIDERS[decider](known, seen, query, state) for state in occupied_states(query, steps))
    assert verdicts == dict.fromkeys(living, True) | dict.fromkeys(dead, False), number


VIOLATIONS = [
    ("V1", "prior(A, B)", "B A", "A"),
    ("V2", "exclusive(L, U)", "A L U", "U"),
    ("V3", "require(A, K) prior(K, Z)", "A Z", "Z"),
    ("V4", "require(A, K) prior(K, Z)", "Z A", "A"),
    ("V5", "require(A, K) require(B, M) exclusive(K, M)", "A B", "B"),
    ("V6", "require(A, K) require(B, M) prior(K, M) prior(M, K)", "A B", "B"),
    ("V7", "require(A, K) end(Fin)", "A Fin", "Fin"),
    ("V7", "require(A, K) end(Fin)", "A K Fin", None),
    ("V7", "require(A, K) end(Fin)", "A", None),
]


@pytest.mark.parametrize("is_exact", [False, True], ids=["tables", "exact"])
@pytest.mark.parametrize(("name", "constraints", "trace", "deviates_at"), VIOLATIONS)
def test_violation(name: str, constraints: str, trace: str, deviates_at: str | None, is_exact: bool) -> None:
    known = constraints_of(constraints)
    monitor = Monitor(followed(language_of(known, known.types)) if is_exact else known)
    state: MonitorState | None = monitor.start
    found = None
    for event_type in trace.split():
        assert state is not None
        state = monitor.step(state, EventClass(type=event_type))
        if state is None:
            found = event_type
            break
    assert found == deviates_at, name


# number, constraints, prefix, whether A can still match, whether an X can still come
ABSENCES = [
    ("N1", "prior(X, Z)", "A", True, True),
    ("N1", "prior(X, Z)", "A Z", True, False),
    ("N2", "prior(X, Z)", "A X A", True, True),
    ("N2", "prior(X, Z)", "A X A Z", True, False),
    ("N3", "exclusive(L, X)", "L", True, False),
    ("N4", "require(X, K) prior(K, Z)", "A Z", True, False),
    ("N4", "require(X, K) prior(K, Z)", "A K Z", True, True),
    ("N6", "require(A, X)", "", True, True),
    ("N6", "require(A, X)", "X A", True, True),
    ("N6", "require(A, X)", "A", False, True),
    ("N7", "prior(X, Z)", "A Z", True, False),
]


@pytest.mark.parametrize(("name", "constraints", "prefix", "is_live", "can_occur"), ABSENCES)
def test_absence(name: str, constraints: str, prefix: str, is_live: bool, can_occur: bool) -> None:
    """SEQ(A, NOT X): whether a match of A can still be emitted, and whether X can still occur."""
    monitor = Monitor(constraints_of(constraints))
    query = query_of(("SEQ", "A", "NOT X"))
    state: MonitorState | None = monitor.start
    for event_type in prefix.split():
        assert state is not None
        state = monitor.step(state, EventClass(type=event_type))
    assert state is not None
    assert query.states[-1] == PatternState(0, frozenset({0}))
    assert monitor.live(state, query)[-1] == is_live
    assert monitor.can_occur(state, Atom(("X",), "X")) == can_occur


@pytest.mark.parametrize(
    ("constraints", "is_satisfiable"), [("require(A, X) prior(A, X)", False), ("require(A, X) prior(X, A)", True)]
)
def test_a_pattern_that_looks_for_a_violation_is_dead_from_the_start(constraints: str, is_satisfiable: bool) -> None:
    """N6 with p(A, X) too: an X follows every A. With p(X, A) it comes before."""
    monitor = Monitor(constraints_of(constraints))
    assert monitor.live(monitor.start, query_of(("SEQ", "A", "NOT X")))[0] == is_satisfiable


KINDS = {"V2": "occurrence", "V3": "blocked", "V4": "blocked", "V5": "occurrence", "V6": "order", "V7": "blocked"}


@pytest.mark.parametrize(("name", "constraints", "trace", "deviates_at"), VIOLATIONS)
def test_kind_of_violation(name: str, constraints: str, trace: str, deviates_at: str | None) -> None:
    """The prefix is consistent before the event and not after it; V1 is of an event that was blocked itself."""
    known, types = constraints_of(constraints), trace.split()
    last = types.index(deviates_at) if deviates_at else len(types)
    assert all(alive(known, frozenset(types[:size])) for size in range(last + 1))
    if deviates_at:
        assert known.blocks(types[:last], deviates_at) == (name == "V1")
        assert alive(known, frozenset(types[: last + 1])).reason == KINDS.get(name)


@pytest.mark.parametrize(("name", "constraints", "prefix", "is_live", "can_occur"), ABSENCES)
@pytest.mark.parametrize("decider", DECIDERS)
def test_absence_by_every_decider(
    decider: str, name: str, constraints: str, prefix: str, is_live: bool, can_occur: bool
) -> None:
    known, seen, decide = constraints_of(constraints), frozenset(prefix.split()), DECIDERS[decider]
    query, single = query_of(("SEQ", "A", "NOT X")), query_of("X")
    knows_gaps = decider != "bit tables"  # these may take what is dead for alive
    assert decide(known, seen, query, query.states[-1]) == (is_live or not knows_gaps)
    assert decide(known, seen, single, single.states[0]) == can_occur
