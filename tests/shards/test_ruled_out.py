"""Inputs of joins that the constraints of their stream finish: when, and that no result is another one for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, ShardState
from shards.kinds.joins import JoinKind
from streams import ConstraintsOn, Definition, Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn, parse_time

SECOND_US = 1_000_000
ORDERS = StreamDeclaration(name="orders", end_events=("End",))
RULES = {"constraints": ["exclusive(Pay, Cancel)", "prior(Pay, Write)"]}
KEYS = ("a", "b", "c")


def definitions(closed_by: str, version: int = 1) -> list[Definition]:
    kind = JoinKind()
    body = {
        "name": "paid",
        "inputs": [
            {"stream": "orders", "as": "o", "type": "Order", "closed_by": "unique"},
            {"stream": "orders", "as": "p", "type": "Pay", "closed_by": closed_by},
        ],
        "return": {"order": "id(o)", "payment": "id(p)"},
        "outer": ["p"],
    }
    join = kind.read(body, lambda _: ORDERS)
    return [replace(one, version=version) for one in (join, *kind.parts(join, lambda _: ORDERS))]


def begun(
    shards: int,
    closed_by: str,
    document: dict[str, Any] | None = None,
    *,
    is_late: bool = False,
    is_open: Sequence[Event] = (),
    declaration: StreamDeclaration = ORDERS,
) -> InlineShards:
    """Shards in which the join runs; its constraints come behind it, or events before it, where that is said."""
    found = InlineShards(shards)
    found.append_record("orders", StreamOn(declaration))
    for name in ("paid.inputs", "paid"):
        found.append_record(name, StreamOn(StreamDeclaration(name=name, derived=True)))
    follow = ConstraintsOn(name="orders", version=1, document=document or RULES)
    if not is_late:
        found.append_record("orders", follow)
    if is_open:
        found.feed("orders", EventBatch.from_events(is_open))
    for one in definitions(closed_by):
        found.append_record(one.inputs[0].stream, OperatorOn(one))
    if is_late:
        found.append_record("orders", follow)
    assert [row.body for block in found.settle() for row in block] == []
    return found


def rows_of_kind(blocks, kind: str) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for block in blocks for row in block if row.kind == kind]


def event(number: int, event_type: str, key: str = "a") -> Event:
    return Event(id=f"{event_type}{number}", type=event_type, time_us=number * SECOND_US, key=key, data={})


@pytest.mark.parametrize("is_late", [False, True])
def test_an_absent_partner_is_told_at_the_event_that_rules_it_out(is_late: bool) -> None:
    shards = begun(1, "workflow", is_late=is_late)
    shards.feed("orders", EventBatch.from_events([event(1, "Order"), event(5, "Cancel"), event(9, "Note")]))
    derived = rows_of_kind([*shards.settle(), *shards.pause()], "derived")
    told = [(parse_time(one["time"]) // SECOND_US, one["data"]) for one in derived]
    assert told == [(5, {"order": "Order1", "payment": None})]


def absences(shards: InlineShards) -> list[tuple[int, str]]:
    """Seconds and orders of what is reported without a payment while more may come."""
    rows = [*shards.settle(), *shards.pause()]
    assert rows_of_kind(rows, "dead-letter") == []
    derived = rows_of_kind(rows, "derived")
    return [
        (parse_time(one["time"]) // SECOND_US, one["data"]["order"])
        for one in derived
        if one["data"]["payment"] is None
    ]


def test_traces_that_were_open_before_are_not_judged() -> None:
    shards = begun(1, "workflow", is_open=[event(1, "Order")])
    later = [event(5, "Cancel"), event(6, "Pay"), event(7, "Order", "b"), event(8, "Cancel", "b")]
    shards.feed("orders", EventBatch.from_events(later))
    assert absences(shards) == [(8, "Order7")]


def test_traces_that_began_without_constraints_are_not_judged() -> None:
    shards = begun(1, "workflow", {"constraints": ["prior(Note, Write)"]})
    shards.feed("orders", EventBatch.from_events([event(1, "Order")]))
    shards.append_record("orders", ConstraintsOn(name="orders", version=2, document=RULES))
    shards.feed("orders", EventBatch.from_events([event(5, "Cancel"), event(6, "Order", "b"), event(7, "Cancel", "b")]))
    assert absences(shards) == [(7, "Order6")]


def test_another_version_of_a_join_hears_of_finished_inputs_again() -> None:
    shards = begun(1, "workflow")
    shards.feed("orders", EventBatch.from_events([event(5, "Cancel"), event(6, "Note", "b")]))  # time passes the first
    shards.settle()
    for one in definitions("workflow", version=2):
        shards.append_record(one.inputs[0].stream, OperatorOn(one))
    shards.feed("orders", EventBatch.from_events([event(7, "Order"), event(8, "Note")]))
    assert absences(shards) == [(7, "Order7")]


@pytest.mark.parametrize(("seen_s", "order_s", "found"), [(9, 14, []), (9, 15, ["Order15"]), (15, 14, ["Order14"])])
def test_a_trace_that_was_idle_for_too_long_begins_anew(seen_s: int, order_s: int, found: list[str]) -> None:
    shards = begun(1, "workflow", {"constraints": ["prior(Note, Write)"]}, declaration=replace(ORDERS, idle_timeout=10))
    shards.feed("orders", EventBatch.from_events([event(5, "Note")]))
    shards.append_record("orders", ConstraintsOn(name="orders", version=2, document=RULES))
    events = [event(seen_s, "Note", "b"), event(order_s, "Order"), event(order_s + 2, "Cancel")]
    shards.feed("orders", EventBatch.from_events(events))
    assert [order for _, order in absences(shards)] == found


def test_without_the_workflow_it_is_told_at_the_end_of_the_trace() -> None:
    shards = begun(1, "end")
    shards.feed("orders", EventBatch.from_events([event(1, "Order"), event(5, "Cancel"), event(9, "End")]))
    derived = rows_of_kind([*shards.settle(), *shards.pause()], "derived")
    assert [parse_time(one["time"]) // SECOND_US for one in derived] == [9]


def test_an_event_that_was_ruled_out_becomes_a_dead_letter() -> None:
    shards = begun(1, "workflow")
    shards.feed("orders", EventBatch.from_events([event(5, "Cancel"), event(9, "Pay")]))
    (letter,) = rows_of_kind([*shards.settle(), *shards.pause()], "dead-letter")
    assert (letter["code"], letter["event_id"]) == ("key-finished", "Pay9")


def test_constraints_with_conditions_finish_nothing() -> None:
    document = {"constraints": ["exclusive(Pay, Cancel)", "prior(Order [v > 100], Write)"]}
    shards = begun(1, "workflow", document)
    shards.feed("orders", EventBatch.from_events([event(1, "Order"), event(5, "Cancel")]))
    assert rows_of_kind([*shards.settle(), *shards.pause()], "derived") == []


@st.composite
def traces(draw: st.DrawFn) -> list[Event]:
    """Events of some transactions that mostly keep the constraints, with pauses of 0 to 2 s."""
    found, seconds = [], 1
    for number, (key, kind, pause) in enumerate(
        draw(
            st.lists(
                st.tuples(
                    st.sampled_from(KEYS),
                    st.sampled_from(["Order", "Pay", "Pay", "Cancel", "Note", "Write", "End"]),
                    st.integers(0, 2),
                ),
                max_size=30,
            )
        )
    ):
        seconds += pause
        found.append(Event(id=f"e{number}", type=kind, time_us=seconds * SECOND_US, key=key, data={}))
    return found


def conforming(events: list[Event]) -> list[Event]:
    """The events that break no rule of their transaction, with at most one order for each."""
    seen: dict[str, set[str]] = {key: set() for key in KEYS}
    kept = []
    for one in events:
        types = seen[one.key]
        is_broken = (
            "End" in types
            or (one.type == "Order" and "Order" in types)
            or (one.type == "Pay" and not types.isdisjoint(["Cancel", "Write"]))
            or (one.type == "Cancel" and "Pay" in types)
        )
        if not is_broken:
            types.add(one.type)
            kept.append(one)
    return kept


def found_by(closed_by: str, events: list[Event], shards: int, cut: int) -> tuple[dict[str, int], list[Any]]:
    """The times of the derived events in seconds, by their data; and the dead letters."""
    inline = begun(shards, closed_by)
    blocks = []
    for some in (events[:cut], events[cut:]):
        if some:
            inline.feed("orders", EventBatch.from_events(some))
        blocks += inline.settle()
        inline.states[:] = [ShardState.load(state.dump()) for state in inline.states]
    blocks += inline.finish()
    derived = rows_of_kind(blocks, "derived")
    times = {repr(one["data"]): parse_time(one["time"]) // SECOND_US for one in derived}
    assert len(times) == len(derived)
    return times, rows_of_kind(blocks, "dead-letter")


@settings(max_examples=60, deadline=None)
@given(traces().map(conforming), st.sampled_from([1, 3]), st.integers(0, 30))
def test_conforming_transactions_have_the_same_results_and_none_later(
    events: list[Event], shards: int, cut: int
) -> None:
    plain, letters = found_by("end", events, shards, cut)
    early, more_letters = found_by("workflow", events, shards, cut)
    assert letters == more_letters == []
    assert early.keys() == plain.keys()
    assert all(early[one] <= plain[one] for one in early)
    first: dict[str, int] = {}
    for one in events:
        if one.type in ("Cancel", "Write", "End"):
            first.setdefault(one.key, one.time_us // SECOND_US)
    for one in events:
        absent = repr({"order": one.id, "payment": None})
        if one.type == "Order" and absent in early and one.key in first and first[one.key] >= one.time_us // SECOND_US:
            assert early[absent] == first[one.key]
