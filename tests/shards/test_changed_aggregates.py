"""Versions of a re-keyed aggregate: which events that wait for time to pass a later version counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from aggregates import read_aggregate
from shards import InlineShards, ShardState
from shards.kinds.aggregates import AggregateKind
from shards.kinds.aggregates.reading import reading_of
from streams import Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn

KIND = AggregateKind()
SALES = StreamDeclaration(name="sales", key="data.sale")
SUMS: dict[str, Any] = {"of": "sales", "by": ["shop"], "values": {"total": "sum(amount)"}, "window": "1 h"}


def begun() -> InlineShards:
    run = InlineShards(1)
    for name in ("sales", "sums.inputs", "sums"):
        run.append_record(name, StreamOn(SALES if name == "sales" else StreamDeclaration(name=name, derived=True)))
    return run


def registered(run: InlineShards, document: Mapping[str, Any], version: int) -> None:
    definition = replace(KIND.read({"name": "sums", **document}, lambda _: SALES), version=version)
    for operator in (definition, *KIND.parts(definition, lambda _: SALES)):
        run.append_record(operator.inputs[0].stream, OperatorOn(operator))


def sold(run: InlineShards, *seconds: int) -> list[dict[str, Any]]:
    """The data of derived events after one sale at each second; the newest sale waits until time has passed it."""
    rows = []
    for number in seconds:
        data = {"sale": str(number), "shop": "s0", "region": "north", "amount": 10, "tax": 1}
        event = Event(id=f"e{number}", type="Sale", time_us=number * 1_000_000, key=str(number), data=data)
        run.feed("sales", EventBatch.from_events([event]))
        rows += run.settle()
    return [orjson.loads(row.body)["data"] for block in rows for row in block if row.kind == "derived"]


def after_change(changes: Mapping[str, Any]) -> tuple[InlineShards, list[dict[str, Any]]]:
    """A run of two versions, and what the second reports: one sale waits at the change, and two follow."""
    run = begun()
    registered(run, SUMS, 1)
    assert sold(run, 1, 2) == [{"shop": "s0", "total": 10}]
    registered(run, {**SUMS, **changes}, 2)
    return run, sold(run, 3, 4, 5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"values": {"total": "sum(tax)"}}, [{"shop": "s0", "total": 1}, {"shop": "s0", "total": 2}]),
        ({"by": ["region"]}, [{"region": "north", "total": 10}, {"region": "north", "total": 20}]),
        (
            {"values": {"total": "sum(amount)", "tax": "sum(tax)"}},
            [{"shop": "s0", "total": 10, "tax": 1}, {"shop": "s0", "total": 20, "tax": 2}],
        ),
        ({"where": "amount > 5"}, [{"shop": "s0", "total": 10}, {"shop": "s0", "total": 20}]),
    ],
    ids=["another value", "other groups", "one more value", "another condition"],
)
def test_events_that_another_version_read_do_not_count(
    changes: dict[str, Any], expected: Sequence[Mapping[str, Any]]
) -> None:
    run, found = after_change(changes)
    assert found == expected
    for state in (run.states[0], ShardState.load(run.states[0].dump())):
        assert state.measures()["sums.inputs"]["aggregate_other_version"] == 1


@pytest.mark.parametrize(
    "changes",
    [{"having": "total > 0 AND total < 99"}, {"window": "2 h"}, {"values": {"sold": "avg(amount)"}}, {"type": "Sums"}],
)
def test_events_that_both_versions_read_equally_count(changes: dict[str, Any]) -> None:
    run, _ = after_change(changes)
    measures = run.states[0].measures()["sums.inputs"]
    assert measures["aggregate_held"] == 3
    assert "aggregate_other_version" not in measures


def test_a_condition_over_all_groups_does_not_count_events_of_a_single_group() -> None:
    run, _ = after_change({"having": "total > all(total)"})
    assert run.states[0].measures()["sums.inputs"]["aggregate_other_version"] == 1


def test_events_of_earlier_releases_count_if_they_have_the_columns() -> None:
    run = begun()
    registered(run, SUMS, 1)
    for number, (group, values) in enumerate([(["s0"], [5]), (["s0"], [7, 1]), (["s0", "north"], [9])]):
        data = {"group": group, "arguments": values}
        saved = Event(id=f"{0:016x}e{number}", type="event", time_us=number, key="s0", data=data)
        run.feed("sums.inputs", EventBatch.from_events([saved]))
    run.settle()
    assert sold(run, 1, 2) == [{"shop": "s0", "total": 5}, {"shop": "s0", "total": 15}]
    assert run.states[0].measures()["sums.inputs"]["aggregate_other_version"] == 2


def test_the_reading_of_saved_events_stays_the_same() -> None:
    assert reading_of(read_aggregate(SUMS)) == "37e01e6e0001abe0"
