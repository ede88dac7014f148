"""The library engine over events, as ``forestall match`` reports it."""

from __future__ import annotations

import orjson

from constraints import parse_constraints
from nfa import build_query, parse_patterns
from nfa.reference import reference_matches
from service.matching import match_document, match_events
from streams import Event
from workflows import (
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    derive_constraints,
    generate_events,
    order_fulfilment,
)

PATTERNS = parse_patterns(
    """
    PATTERN EP1 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
                              SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)
    PATTERN Q1 EVENT SEQ(CheckInventory c, UseRemoteStock u, GenerateInvoice i [price > 200])
    PATTERN Q3 EVENT SEQ(OR(SEQ(OrderFromSupplier o, GenerateQuote q [price > 200]),
                            SEQ(UseRemoteStock u, GenerateInvoice i)), FinishOrder f)
    """
)


def trace(types: str) -> list[Event]:
    return [Event(id=f"e{n}", type=name, time_us=n, key="k", data={"v": n}) for n, name in enumerate(types, 1)]


def test_the_order_workload_matches_as_the_reference_says_with_and_without_pruning() -> None:
    orders = OrderSettings(cancel=0.3)
    workload = OrderWorkload(orders=orders, stream=SimulationSettings(traces=400, concurrent=100))
    events = list(generate_events(workload, 7))
    constraint_set = derive_constraints(order_fulfilment())
    pruned = match_events(PATTERNS, events, constraint_set)
    unpruned = match_events(PATTERNS, events, constraint_set, is_pruning=False)
    queries = {pattern.name: build_query(pattern) for pattern in PATTERNS}
    assert pruned.matches == unpruned.matches
    assert list(pruned.matches) == reference_matches(queries, events, constraint_set.end_events)
    assert {match.pattern for match in pruned.matches} == {"EP1", "Q1", "Q3"}
    assert unpruned.ended == ()
    assert pruned.deviations == ()
    assert pruned.stats.peak_held < 0.8 * unpruned.stats.peak_held
    ended = [(pair.ending.pattern, pair.ending.key) for pair in pruned.ended]
    assert sorted(ended) == sorted({(name, event.key) for name in queries for event in events})


def test_the_document_is_the_contract() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, OR(B b, C c))")
    constraint_set = parse_constraints(["exclusive(A, X)"]).constraint_set
    document = match_events(patterns, trace("ACBX"), constraint_set).to_document()
    assert orjson.loads(orjson.dumps(document)) == document
    assert document["matches"] == [
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"], "c": ["e2"]},
            "start": "1970-01-01T00:00:00.000001Z",
            "end": "1970-01-01T00:00:00.000002Z",
        },
        {
            "pattern": "p",
            "key": "k",
            "bindings": {"a": ["e1"], "b": ["e3"]},
            "start": "1970-01-01T00:00:00.000001Z",
            "end": "1970-01-01T00:00:00.000003Z",
        },
    ]
    assert document["deviations"] == [{"key": "k", "event": "e4", "type": "X"}]
    assert document["stats"]["events"] == 4
    assert set(document) == {"matches", "ended", "deviations", "stats"}


def test_endings_carry_event_and_reason() -> None:
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, U u)")
    constraint_set = parse_constraints(["exclusive(L, U)"]).constraint_set
    report = match_events(patterns, trace("AAL"), constraint_set)
    assert report.to_document()["ended"] == [
        {
            "pattern": "p",
            "key": "k",
            "event": "e3",
            "reason": "L ends it: exclusive(L, U) means that U u can no longer come",
        }
    ]


def test_matches_are_sorted_by_end_start_and_bindings() -> None:
    patterns = parse_patterns("PATTERN p EVENT AND(A x, A y)")
    found = [match_document(match)["bindings"] for match in match_events(patterns, trace("AAA")).matches]
    assert found == [
        {"x": ["e1"], "y": ["e2"]},
        {"x": ["e2"], "y": ["e1"]},
        {"x": ["e1"], "y": ["e3"]},
        {"x": ["e3"], "y": ["e1"]},
        {"x": ["e2"], "y": ["e3"]},
        {"x": ["e3"], "y": ["e2"]},
    ]


def test_progress_ends_at_the_number_of_events() -> None:
    told: list[int] = []
    match_events(parse_patterns("PATTERN p EVENT A"), trace("ABA"), progress=told.append)
    assert told == [3]
