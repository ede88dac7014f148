"""The golden cases of constraint-aware CEP, section 9, in every decider."""

from collections.abc import Callable

import pytest

from constraints import ConstraintSet, Monitor, alive, parse_constraints, remainder_of
from constraints.testing import Tree, occupied_states, oracle_alive, query_of, steps_of
from nfa import PatternState, Query

Decider = Callable[[ConstraintSet, frozenset[str], Query, PatternState], bool]

DECIDERS: dict[str, Decider] = {
    "reference": lambda known, seen, query, state: alive(known, seen, remainder_of(query, state)).is_alive,
    "monitor": lambda known, seen, query, state: bool(Monitor(known).live(seen, query)[query.states.index(state)]),
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


@pytest.mark.parametrize(("name", "constraints", "trace", "deviates_at"), VIOLATIONS)
def test_violation(name: str, constraints: str, trace: str, deviates_at: str | None) -> None:
    monitor = Monitor(constraints_of(constraints))
    seen: frozenset[str] | None = frozenset()
    found = None
    for event_type in trace.split():
        assert seen is not None
        seen = monitor.step(seen, event_type)
        if seen is None:
            found = event_type
            break
    assert found == deviates_at, name
