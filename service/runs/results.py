"""Results of a run, by the name of their list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from service.runs.plan import RunPlan
from shards import DEAD_LETTER, DERIVED, DOCUMENT_KINDS, RESULT_KINDS
from shards.errors import KeyFinished, KeyNotWhole, NotDerivable, ResultLimitReached, RetractionLate
from streams import parse_time

Results: TypeAlias = dict[str, list[dict[str, Any]]]
"""Results by the name of their list."""

PATTERN_LISTS = {name: RESULT_KINDS[name].member for name in "alert timeout ending deviation correction".split()}
"""The lists of results of patterns, by kind of result."""
LISTS = tuple(PATTERN_LISTS.values())
OLD_LISTS: Mapping[str, str] = {"ended": PATTERN_LISTS["ending"]}
"""Former names of lists, which are accepted and printed for one release."""
_SHOWN_LETTERS = tuple(one.code for one in (NotDerivable, KeyFinished, KeyNotWhole, ResultLimitReached, RetractionLate))
EVENTS = "events"
"""The list of derived events."""
SUSPENSIONS = "suspensions"
"""The list of suspended operators."""
OWN_LISTS: Mapping[str, str] = {
    result.name: result.plural
    for kind in DOCUMENT_KINDS
    for result in kind.result_kinds
    if result.in_backtests == "listed"
}
"""The lists of further results of document kinds, by kind of result."""

_ROWS = {**PATTERN_LISTS, DERIVED.name: EVENTS}
_MEMBERS: Mapping[str, Sequence[str]] = {
    "alerts": "pattern key bindings start end detected_at decided_by deviating would_be_lost returns".split(),
    "timeouts": "pattern key bindings missing start due".split(),
    "endings": "pattern key event reason".split(),
    "deviations": "key event event_type time kind constraints symbols allowed released reason".split(),
    "corrections": "pattern key bindings event event_type time".split(),
    EVENTS: "id type time key data".split(),
}


def results_of(plan: RunPlan, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Results:
    """The results in rows, by list and stream."""
    every = [one.pattern for some in plan.patterns.values() for one, _ in some]
    with_returns = {pattern.name for pattern in every if pattern.returns}
    found: Results = {name: [] for name in (*LISTS, *OWN_LISTS.values(), EVENTS, DEAD_LETTER.member, SUSPENSIONS)}
    for kind, body in rows:
        if (name := _ROWS.get(kind)) is not None:
            stream = body["into"] if name == EVENTS else body["stream"]
            if stream not in plan.declarations:  # between operators
                continue
            document = document_of(name, body)
            if name == "alerts" and body["pattern"] not in with_returns:
                del document["returns"]
            found[name].append({"stream": stream, **document})
        elif kind == DEAD_LETTER.name and body["code"] in _SHOWN_LETTERS:
            found[DEAD_LETTER.member].append({name: body[name] for name in ("stream", "pattern", "key", "reason")})
        elif (own := OWN_LISTS.get(kind)) is not None:
            found[own].append({name: value for name, value in body.items() if name not in ("type", "id")})
        elif kind in RESULT_KINDS and RESULT_KINDS[kind].stops:
            members = [name for name in ("pattern", "key", "event", "time", "reason") if name in body]
            source = body.get("source", body["pattern"])
            found[SUSPENSIONS].append({"stream": source, **{name: body[name] for name in members}})
    places = {name: place for place, name in enumerate(plan.declarations)}
    for name, some in found.items():
        some.sort(key=_ORDERS.get(name, _no_order))
        some.sort(key=lambda one: places[one["stream"]])
    return found


def document_of(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a list of results shows it.

    Args:
        name: Name of the list.
        body: The JSON object of the row.
    """
    return {member: body[member] for member in _MEMBERS[name] if member in body}


def numbers_of(counts: Mapping[str, int]) -> dict[str, int]:
    """The number of results by list, from the number of rows by kind."""
    return {name: counts.get(kind, 0) for kind, name in _ROWS.items()}


def _no_order(_: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()


def _match_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        parse_time(one["end"]),
        parse_time(one["start"]),
        sorted(one["bindings"].items()),
        one["pattern"],
        one["key"],
    )


def _timeout_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return parse_time(one["due"]), parse_time(one["start"]), sorted(one["bindings"].items())


def _event_order(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return parse_time(one["time"]), one["id"]


_ORDERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]] = {
    "alerts": _match_order,
    "timeouts": _timeout_order,
    EVENTS: _event_order,
}
