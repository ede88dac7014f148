"""The meaning, executable: slow, obvious, and what the kernel must agree with.

A match is a choice of one event for every atom of one term, all different, in the term's order, each meeting its
step's condition. Shared with the matcher are the query graph, and what a path, an alias and a JSON value mean
(``read_path``, ``own_path``, ``classified``), which have tests of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from nfa.predicates import read_path
from nfa.query import Query, Term
from nfa.results import Match, match_order
from nfa.scope import own_path
from nfa.syntax import Atom, Attribute, Both, Comparison, Either, Expression, InList, IsNull, Literal, Not
from nfa.values import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, classified
from streams import Event

Binding = frozenset[tuple[str, int]]


def reference_matches(
    queries: Mapping[str, Query], events: Iterable[Event], end_events: Collection[str] = ()
) -> list[Match]:
    """Every match of every pattern, by enumeration.

    Args:
        queries: Queries by pattern name.
        events: In log order.
        end_events: Types that end a trace.

    Returns:
        Sorted by ``match_order``.
    """
    found = []
    for trace in split_traces(events, end_events):
        for name, query in queries.items():
            for binding, term in bindings_of(query, trace).items():
                times = [trace[place].time_us for _, place in binding]
                found.append(
                    Match(
                        pattern=name,
                        version=1,
                        key=trace[0].key,
                        term=term,
                        bindings={alias: (trace[place].id,) for alias, place in sorted(binding)},
                        start_us=min(times),
                        end_us=max(times),
                    )
                )
    return sorted(found, key=match_order)


def split_traces(events: Iterable[Event], end_events: Collection[str] = ()) -> list[list[Event]]:
    """Events by correlation key, cut after each end event."""
    finished: list[list[Event]] = []
    running: dict[str, list[Event]] = {}
    for event in events:
        running.setdefault(event.key, []).append(event)
        if event.type in end_events:
            finished.append(running.pop(event.key))
    return finished + list(running.values())


def bindings_of(query: Query, trace: Sequence[Event]) -> dict[Binding, int]:
    """The matches of one trace, as sets of (alias, place in the trace), with the first term that gives each."""
    found: dict[Binding, int] = {}
    for number, term in enumerate(query.terms):
        candidates = [[place for place, event in enumerate(trace) if takes(atom, event)] for atom in term.atoms]
        for places in product(*candidates):
            if _is_ordered(term, places):
                found.setdefault(frozenset(zip((atom.alias for atom in term.atoms), places, strict=True)), number)
    return found


def takes(atom: Atom, event: Event) -> bool:
    """Whether an event can be taken at a step."""
    if event.type != atom.type:
        return False
    return atom.condition is None or value_of(atom.condition, event.data, atom.alias) is True


def value_of(expression: Expression, data: Mapping[str, Any], alias: str) -> Any:
    """Value of an expression on one event: True, False, a number, a text, or None for null."""
    match expression:
        case Literal():
            return _normal(expression.value)
        case Attribute():
            return _normal(read_path(dict(data), own_path(expression, alias)))
        case Comparison():
            left, right = value_of(expression.left, data, alias), value_of(expression.right, data, alias)
            return _compared(expression.operator, left, right)
        case IsNull():
            return value_of(expression.operand, data, alias) is None
        case InList():
            left = value_of(expression.operand, data, alias)
            return _any_true([_compared("=", left, _normal(value.value)) for value in expression.values])
        case Not():
            truth = value_of(expression.operand, data, alias)
            return (not truth) if isinstance(truth, bool) else None
        case Either():
            return _any_true([value_of(operand, data, alias) for operand in expression.operands])
        case Both():
            truths = [value_of(operand, data, alias) for operand in expression.operands]
            if any(truth is False for truth in truths):
                return False
            return True if all(truth is True for truth in truths) else None


def _is_ordered(term: Term, places: Sequence[int]) -> bool:
    if len(set(places)) < len(places):
        return False
    return all(places[earlier] < places[later] for later in range(len(places)) for earlier in term.before[later])


def _normal(item: Any) -> Any:
    kind, value = classified(item)
    return bool(value) if kind == BOOLEAN else value


def _any_true(truths: Sequence[Any]) -> bool | None:
    if any(truth is True for truth in truths):
        return True
    return False if all(truth is False for truth in truths) else None


def _compared(sign: str, left: Any, right: Any) -> bool | None:
    kinds = {classified(left)[0], classified(right)[0]}
    if NULL in kinds or not (len(kinds) == 1 or kinds == {INTEGER, FLOAT}):
        return None
    if kinds == {BOOLEAN} and sign not in ("=", "!="):
        return None
    if kinds not in ({INTEGER}, {TEXT}, {BOOLEAN}):
        left, right = float(left), float(right)
    if sign in ("=", "!="):
        return bool(left == right) is (sign == "=")
    if sign in ("<", ">="):
        return bool(left < right) is (sign == "<")
    return bool(left > right) is (sign == ">")
