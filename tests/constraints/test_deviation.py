"""Why a trace deviates, and that it does so at the first event after which nothing conforms."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from constraints import (
    NOTHING,
    ConstraintSet,
    DeviationReason,
    End,
    Monitor,
    Prior,
    Rule,
    Settings,
    explain_deviation,
    parse_constraints,
)
from house.examples import Draws
from nfa import EventClass, MonitorState, Symbol
from tests.builders.constraints import compared, oracle_alive, random_set
from tests.references.alive import alive

CYCLE = "require(A, K) require(B, M) prior(K, M) prior(M, K)"

CYCLE_TEXT = (
    "B came, after A, and require(A, K), require(B, M), prior(K, M) and prior(M, K) "
    "leave no order for what must still come"
)

# name, constraints, trace, kind of the deviation at its last event, constraints named, sentence
GOLDEN = [
    ("V1", "prior(A, B)", "B A", "order", "prior(A, B)", "A came after B, against prior(A, B)"),
    (
        "V2",
        "exclusive(L, U)",
        "A L U",
        "occurrence",
        "exclusive(L, U)",
        "U came, after L, and exclusive(L, U) cannot be kept any more",
    ),
    (
        "V3",
        "require(A, K) prior(K, Z)",
        "A Z",
        "obligation",
        "require(A, K) prior(K, Z)",
        "Z came, after A, and K, for which require(A, K) asks, can no longer come by prior(K, Z)",
    ),
    (
        "V4",
        "require(A, K) prior(K, Z)",
        "Z A",
        "obligation",
        "require(A, K) prior(K, Z)",
        "A came, after Z, and K, for which require(A, K) asks, can no longer come by prior(K, Z)",
    ),
    (
        "V5",
        "require(A, K) require(B, M) exclusive(K, M)",
        "A B",
        "occurrence",
        "require(A, K) require(B, M) exclusive(K, M)",
        "B came, after A, and require(A, K), require(B, M) and exclusive(K, M) cannot all be kept any more",
    ),
    (
        "V6",
        CYCLE,
        "A B",
        "cycle",
        CYCLE,
        CYCLE_TEXT,
    ),
    (
        "V7",
        "require(A, K) end(Fin)",
        "A Fin",
        "obligation",
        "require(A, K) end(Fin)",
        "Fin came, after A, so the trace is over without what require(A, K) asks for",
    ),
    ("at most one", "prior(A, A)", "A A", "order", "prior(A, A)", "A came again, and prior(A, A) allows only one"),
    (
        "after the end",
        "end(Fin) prior(A, Fin)",
        "Fin A",
        "after_end",
        "end(Fin)",
        "A came after Fin, with which the trace was over",
    ),
    (
        "unnamed after the end",
        "end(Fin)",
        "Fin X",
        "after_end",
        "end(Fin)",
        "X came after Fin, with which the trace was over",
    ),
    (
        "never",
        "absence(A)",
        "A",
        "occurrence",
        "absence(A)",
        "A came, and absence(A) cannot be kept any more",
    ),
]


def constraints_of(text: str) -> ConstraintSet:
    return parse_constraints([f"{entry.strip()})" for entry in text.split(")") if entry.strip()]).constraint_set


def explain(constraint_set: ConstraintSet, *trace: EventClass | str) -> DeviationReason:
    """Why a trace deviates at its last event, and not before."""
    events = [EventClass(type=one) if isinstance(one, str) else one for one in trace]
    monitor = Monitor(constraint_set)
    state = monitor.start
    for event in events[:-1]:
        moved = monitor.step(state, event)
        assert moved is not None, event
        state = moved
    assert monitor.step(state, events[-1]) is None
    return explain_deviation(constraint_set, state, events[-1])


@pytest.mark.parametrize(("name", "constraints", "trace", "kind", "named", "text"), GOLDEN)
def test_golden_violation(name: str, constraints: str, trace: str, kind: str, named: str, text: str) -> None:
    found = explain(constraints_of(constraints), *trace.split())
    assert (found.kind, " ".join(map(str, found.constraints)), found.text) == (kind, named, text)


@pytest.mark.parametrize(("constraints", "trace"), [("require(A, K) end(Fin)", "A K Fin"), ("prior(A, B)", "A B X")])
def test_there_is_no_reason_where_there_is_no_deviation(constraints: str, trace: str) -> None:
    known = constraints_of(constraints)
    monitor = Monitor(known)
    state: MonitorState | None = monitor.start
    for name in trace.split():
        assert state is not None
        with pytest.raises(ValueError, match="no deviation"):
            explain_deviation(known, state, EventClass(type=name))
        state = monitor.step(state, EventClass(type=name))


def test_a_broken_rule_is_named() -> None:
    found = explain(ConstraintSet.of([Rule("precedence", ("A", "B")), Rule("response", ("B", "C"))]), "X", "B")
    assert (found.kind, found.text) == ("rule", "B came, and precedence(A, B) cannot be kept any more")
    assert found.constraints == (Rule("precedence", ("A", "B")),)


def test_a_rule_and_what_rules_out_what_it_awaits_are_named() -> None:
    parts = [*constraints_of("require(X, Y) exclusive(B, Y) prior(B, Z)").parts, Rule("response", ("A", "B"))]
    found = explain(ConstraintSet.of(parts), "A", "X")
    assert found.kind == "rule"
    assert [str(part) for part in found.constraints] == ["require(X, Y)", "exclusive(B, Y)", "response(A, B)"]
    assert explain(ConstraintSet.of(parts), "A", "Z").key == "rule prior(B, Z); response(A, B)"


def test_a_rule_that_is_not_kept_at_the_end_event_is_named_with_it() -> None:
    found = explain(ConstraintSet.of([End("F"), Rule("existence", ("A",), 2), Prior("B", "C")]), "A", "F")
    assert (found.kind, found.key) == ("rule", "rule end(F); existence(2, A)")


def test_rules_that_cannot_be_kept_together_are_named_together() -> None:
    rules = [Rule("chain response", ("A", "B")), Rule("chain response", ("A", "C")), Rule("precedence", ("D", "E"))]
    found = explain(ConstraintSet.of(rules), "A")
    assert found.constraints == tuple(rules[:2])
    assert found.text.endswith("chain response(A, B) and chain response(A, C) cannot all be kept any more")


def test_an_unknown_type_breaks_no_constraint() -> None:
    closed = ConstraintSet.of([Prior("A", "B")], settings=Settings(unknown_types="deviate"))
    found = explain(closed, "A", "go home")
    assert (found.kind, found.constraints, found.key) == ("unknown_type", (), "unknown_type")
    assert found.text == "`go home` is not an event of the process"


def test_symbols_are_named_where_they_matter() -> None:
    dear = Symbol(compared("Q", ">", 1000))
    event = EventClass(type="Q", symbols=frozenset({dear.name}))
    late = ConstraintSet.of([Prior(dear.name, "Approve")], symbols={dear.name: dear})
    found = explain(late, "Approve", event)
    assert found.kind == "order"
    assert found.text.startswith(f"`{dear.name}` came after Approve, against ")
    apart = ConstraintSet.of(constraints_of("exclusive(Q, U)").parts, symbols={dear.name: dear})
    assert explain(apart, "U", event).text == "Q came, after U, and exclusive(Q, U) cannot be kept any more"


def test_where_events_of_one_time_are_not_ordered_a_last_chance_passes_with_time() -> None:
    known = constraints_of("require(A, K) prior(K, Z)")
    monitor = Monitor(known, ties="simultaneous")
    state: MonitorState | None = monitor.start
    for name in "AZ":
        assert state is not None
        state = monitor.step(state, EventClass(type=name))
    assert state is not None
    found = explain_deviation(known, state, EventClass(type="X"), ties="simultaneous")
    assert found.kind == "obligation"
    assert found.text == "X came, after A and Z, and K, for which require(A, K) asks, can no longer come by prior(K, Z)"


KINDS = {"occurrence": "occurrence", "blocked": "obligation", "order": "cycle"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_it_is_found_at_the_first_inconsistent_prefix(seed: int, draws: Draws) -> None:
    """Against exhaustive search over up to 12,000 random traces; each named set is minimal and broken."""
    random = Random(seed)
    kinds: Counter[str] = Counter()
    every = {"order", "occurrence", "obligation", "cycle"}
    for _ in draws.until(3_000, lambda: set(kinds) >= every):
        known = random_set(random, "ABCDE", random.randrange(2, 8))
        monitor = Monitor(known)
        state = monitor.start
        if not alive(known, frozenset()):
            continue
        for name in random.choices("ABCDEX", k=6):
            event = EventClass(type=name)
            moved = monitor.step(state, event)
            is_blocked = known.blocks(state.seen, name)
            seen = state.seen | ({name} & known.types)
            if moved is None:
                assert is_blocked or not oracle_alive(known, seen, NOTHING)
                found = explain_deviation(known, state, event)
                kinds[found.kind] += 1
                late = "after_end" if state.seen & known.end_events else "order"
                assert found.kind == (late if is_blocked else KINDS[str(alive(known, seen).reason)])
                _check_minimal(known, found, state, event)
                break
            assert not is_blocked
            state = moved
        else:
            assert oracle_alive(known, state.seen, NOTHING)
    assert set(kinds) >= every, kinds


def _check_minimal(known: ConstraintSet, found: DeviationReason, state: MonitorState, event: EventClass) -> None:
    """The named constraints alone make the trace deviate, and without any one of them it would not."""
    assert Monitor(known.of_parts(found.constraints)).step(state, event) is None
    for part in found.constraints:
        fewer = [other for other in found.constraints if other != part]
        assert Monitor(known.of_parts(fewer)).step(state, event) is not None
