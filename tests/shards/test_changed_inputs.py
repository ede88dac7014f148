"""Versions of a join with other inputs: which events and decisions of an earlier version a later version uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from shards import InlineShards, RowBlock, ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import (
    ClosedKeys,
    Event,
    EventBatch,
    KeyRange,
    KeysClosed,
    OperatorOn,
    Punctuation,
    Start,
    StreamDeclaration,
    StreamOn,
)

KIND = JoinKind()
STREAMS = {name: StreamDeclaration(name=name) for name in ("orders", "payments", "refunds")}
JOIN: dict[str, Any] = {
    "name": "paid",
    "inputs": [
        {"stream": "orders", "as": "o", "window": "1 h"},
        {"stream": "payments", "as": "p", "key": "data.order", "window": "1 h"},
    ],
    "return": {"order": "id(o)", "payment": "id(p)"},
}
WAITING: dict[str, Any] = {
    **JOIN,
    "wait": "auto",
    "inputs": [{"stream": stream, "as": stream[0], "key": "data.order"} for stream in ("orders", "payments")],
}


def with_input(document: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """A join with other members of its second input; None: without the member."""
    first, second = document["inputs"]
    changed = {name: value for name, value in {**second, **members}.items() if value is not None}
    return {**document, "inputs": [first, changed]}


def begun() -> InlineShards:
    run = InlineShards(1)
    for declaration in STREAMS.values():
        run.append_record(declaration.name, StreamOn(declaration))
    for name in (merged_stream("paid"), "paid"):
        run.append_record(name, StreamOn(StreamDeclaration(name=name, derived=True)))
    return run


def registered(run: InlineShards, document: Mapping[str, Any], version: int, start: Start = "fresh") -> None:
    join = KIND.read(document, STREAMS.__getitem__)
    for one in (join, *KIND.parts(join, STREAMS.__getitem__)):
        run.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=version), start))


def fed(run: InlineShards, stream: str, *rows: tuple[str, int, str, Mapping[str, Any]]) -> None:
    events = [
        Event(id=identity, type="Part", time_us=time_us, key=key, data=data) for identity, time_us, key, data in rows
    ]
    run.feed(stream, EventBatch.from_events(events))


def bodies(rows: Sequence[RowBlock], kind: str) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for block in rows for row in block if row.kind == kind]


def joined(rows: Sequence[RowBlock]) -> list[dict[str, Any]]:
    return [body["data"] for body in bodies(rows, "derived")]


def after_change(changed: Mapping[str, Any], start: Start = "fresh") -> tuple[InlineShards, list[RowBlock]]:
    """A run of two versions: the payment p1, of order a and invoice b, waits at the change."""
    run, rows = begun(), list[RowBlock]()
    registered(run, JOIN, 1)
    fed(
        run,
        "payments",
        ("p1", 10, "x", {"order": "a", "invoice": "b"}),
        ("p2", 20, "x", {"order": "z", "invoice": "z"}),
    )
    rows += run.settle()
    registered(run, changed, 2, start)
    rows += run.settle()
    fed(run, "orders", ("o1", 11, "a", {}), ("o2", 11, "b", {}))
    return run, rows + run.finish()


@pytest.mark.parametrize(
    "members", [{"key": "data.invoice"}, {"stream": "refunds"}, {"type": "Final"}, {"key": None}], ids=str
)
def test_events_of_another_key_stream_or_type_do_not_join(members: dict[str, Any]) -> None:
    run, rows = after_change(with_input(JOIN, **members))
    assert joined(rows) == []
    for state in (run.states[0], ShardState.load(run.states[0].dump())):
        assert state.measures()["paid.inputs"]["join_other_version"] == 2


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"type": "Paid"}, "keep"),
        ({}, "fresh"),
        ({"emit": "on_close", "inputs": with_input(JOIN, closed_by="unique")["inputs"]}, "fresh"),
    ],
    ids=["kept", "begun anew", "another emit"],
)
def test_events_that_both_versions_read_equally_join(changes: dict[str, Any], start: Start) -> None:
    run, rows = after_change({**JOIN, **changes}, start)
    assert joined(rows) == [{"order": "o1", "payment": "p1"}]
    assert "join_other_version" not in run.states[0].measures()["paid.inputs"]


def test_a_range_of_another_key_finishes_nothing() -> None:
    document, run = with_input(JOIN, closed_by="punctuation"), begun()
    registered(run, document, 1)
    fed(run, "orders", ("o0", 1, "9", {}))
    fed(run, "payments", ("p0", 20, "x", {"order": "1", "invoice": "9"}))
    run.append_record("payments", Punctuation(range=KeyRange(high=5_000), by="data.order", time_us=20))
    run.settle()
    registered(run, with_input(document, key="data.invoice"), 2)
    run.settle()
    fed(run, "payments", ("p1", 100, "x", {"order": "1", "invoice": "77"}))
    fed(run, "orders", ("o1", 100, "77", {}))
    rows = run.finish()
    assert bodies(rows, "dead-letter") == []
    assert joined(rows) == [{"order": "o1", "payment": "p1"}]


def after_decision(changed: Mapping[str, Any], start: Start, **members: Any) -> list[RowBlock]:
    """Rows of two versions; the decision that the orders have finished keys up to 10 follows the second version."""
    run, rows = begun(), list[RowBlock]()
    registered(run, WAITING, 1)
    orders = {part.body["alias"]: part.body["reading"] for part in parts(WAITING)}
    fed(run, "orders", ("o1", 1, "x", {"order": 5, "invoice": 5}))
    rows += run.settle()
    registered(run, changed, 2, start)
    closed = ClosedKeys(input="o", to=10, time_us=2, reading=orders["o"])
    run.append_record("paid.inputs", replace(KeysClosed((closed,), version=1), **members))
    rows += run.settle()
    for stream in ("orders", "payments"):
        fed(run, stream, (f"{stream[0]}3", 3, "x", {"order": 5, "invoice": 5}))
    return rows + run.finish()


def parts(document: Mapping[str, Any]) -> Sequence[Any]:
    return KIND.parts(KIND.read(document, STREAMS.__getitem__), STREAMS.__getitem__)


INVOICES = {**WAITING, "inputs": [{**one, "key": "data.invoice"} for one in WAITING["inputs"]]}


def test_a_decision_about_another_key_finishes_nothing() -> None:
    rows = after_decision(INVOICES, "fresh")
    assert bodies(rows, "dead-letter") == []
    assert joined(rows) == [{"order": "o3", "payment": "p3"}]


@pytest.mark.parametrize(
    ("changed", "start", "closed"),
    [
        ({**WAITING, "type": "Paid"}, "keep", {}),
        (INVOICES, "fresh", {"closed": (ClosedKeys(input="o", to=10, time_us=2),), "version": None}),
    ],
    ids=["of a kept version", "of an earlier release"],
)
def test_a_decision_counts(changed: Mapping[str, Any], start: Start, closed: dict[str, Any]) -> None:
    rows = after_decision(changed, start, **closed)
    assert [letter["event_id"] for letter in bodies(rows, "dead-letter")] == ["o3"]


@pytest.mark.parametrize(("version", "is_stopped"), [(1, False), (2, True), (None, True)])
def test_a_refusal_stops_only_the_version_that_it_is_about(version: int | None, is_stopped: bool) -> None:
    rows = after_decision(INVOICES, "fresh", closed=(), version=version, refused="it holds too many events")
    assert len(bodies(rows, "join-suspension")) == is_stopped
    assert bool(joined(rows)) == (not is_stopped)
