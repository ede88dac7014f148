"""Derived events made by columns equal the events that a plain reading makes row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import JoinBody, JoinRun, merged_data, merged_id, merged_ids, merged_types, read_join
from joins.emitting import DerivedEventBuilder, json_texts
from joins.held_events import HeldEvents
from joins.items import JoinedColumns
from streams import Event, EventBatch, format_time, pieces_of, texts_of

ALIASES = ("o", "p")
INPUTS = [{"stream": "a", "as": "o", "closed_by": "unique"}, {"stream": "b", "as": "p", "closed_by": {"type": "Last"}}]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
names = texts.filter(bool)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(texts, st.integers(0, 2), max_size=2),
)
events = st.builds(
    Event,
    id=names,
    type=names,
    time_us=st.integers(-(10**15), 10**15),
    key=names,
    data=st.dictionaries(st.sampled_from(["v", "w"]), values),
)
RETURNS = {"id": "id(o)", 'é"': "p.v", "t": "type(p)", "at": "time(o)", "in": "o.v.w", "w": "o.w", "pid": "id(p)"}


def merged(number: int, event: Event) -> Event:
    """An event as one of an input."""
    data = {"type": event.type, "data": event.data}
    identity = merged_id(number, 7, event.id)
    return Event(id=identity, type=ALIASES[number], time_us=event.time_us, key=event.key, data=data)


def held_of(some: Sequence[Event]) -> HeldEvents:
    held = HeldEvents.empty()
    for sequence, event in enumerate(some):
        held.add(np.array([sequence]), EventBatch.from_events([merged(sequence % 2, event)]))
    return held


def told(column: str, members: Mapping[str, Event]) -> Any:
    """What a column of ``RETURNS`` says."""
    function, _, alias = column.rstrip(")").rpartition("(")
    alias, *path = alias.split(".")
    if alias not in members:
        return None
    event = members[alias]
    if function:
        return {"id": event.id, "type": event.type, "time": format_time(event.time_us)}[function]
    value: Any = event.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def plain(body: JoinBody, members: Mapping[str, Event], time_us: int) -> Event:
    """The event of one combination."""
    key = next(iter(members.values())).key
    what = [[alias, event.id] for alias, event in members.items()]
    identity = sha256(orjson.dumps(["join", "né", 3, key, what, time_us])).hexdigest()[:32]
    data = {name: told(column, members) for name, column in RETURNS.items()}
    return Event(id=identity, type=body.event_type or "né", time_us=time_us, key=key, data=data)


def found_of(members: Sequence[tuple[int, int]], times_us: Sequence[int]) -> JoinedColumns:
    nothing = np.zeros(0, np.int64)
    return JoinedColumns(
        members=np.array(members, np.int64).reshape(-1, 2),
        result_times_us=np.array(times_us, np.int64),
        result_items=np.arange(len(members), dtype=np.int32),
        result_whys=np.zeros(len(members), np.uint8),
        closing_keys=nothing.astype(np.uint64),
        closing_causes=nothing.astype(np.uint8),
        closing_times_us=nothing,
        closing_items=nothing.astype(np.int32),
        closing_places=nothing,
        violations=nothing.astype(np.int32),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=2, max_size=6), st.data())
def test_combinations(some: list[Event], data: st.DataObject) -> None:
    body = read_join({"inputs": INPUTS, "return": RETURNS, "outer": ["o", "p"], "window": "1 h"})
    left, right = range(0, len(some), 2), range(1, len(some), 2)
    pair = st.tuples(st.sampled_from([-1, *left]), st.sampled_from([-1, *right])).filter(lambda one: max(one) >= 0)
    members = data.draw(st.lists(pair, max_size=6))
    times_us = data.draw(st.lists(st.integers(0, 10**15), min_size=len(members), max_size=len(members)))
    made = DerivedEventBuilder(body, "né", 3).of_combinations(held_of(some), found_of(members, times_us))
    expected = [
        plain(body, {ALIASES[place]: some[one] for place, one in enumerate(pair) if one >= 0}, time_us)
        for pair, time_us in zip(members, times_us, strict=True)
    ]
    again = EventBatch.from_events(expected)
    for name in ("id", "key", "key_hash", "data", "time"):
        assert made.columns.column(name).to_pylist() == again.columns.column(name).to_pylist()
    assert [one.type for one in made.to_events()] == [one.type for one in expected]


@given(st.lists(values, max_size=5))
def test_json_is_what_orjson_writes(some: list[Any]) -> None:
    assert json_texts(some).cast(pa.binary()).to_pylist() == [orjson.dumps(one) for one in some]


def test_sums_beyond_64_bits_are_floating_point_numbers() -> None:
    assert [float(one) for one in json_texts([2**63, 2**70]).to_pylist()] == [2.0**63, 2.0**70]


@given(st.lists(st.tuples(st.integers(0, 2**63), names), max_size=4))
def test_ids_of_merged_events(some: list[tuple[int, str]]) -> None:
    found = merged_ids(11, np.array([place for place, _ in some], np.uint64), texts_of([one for _, one in some]))
    assert found.to_pylist() == [merged_id(11, place, one) for place, one in some]


@given(st.lists(names, min_size=1, max_size=3, unique=True), st.data())
def test_data_of_merged_events(types: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, len(types) - 1), events), max_size=4))
    codes, bodies = np.array([code for code, _ in rows], np.int32), [orjson.dumps(one.data) for _, one in rows]
    found = merged_data(types, codes, pieces_of(bodies, pa.binary()))
    assert found.to_pylist() == [orjson.dumps({"type": types[code], "data": one.data}) for code, one in rows]


def test_types_of_merged_events() -> None:
    found = merged_types("o", np.array([2, 0, 1, 0], np.int8))
    assert found.to_pylist() == ["o.closed", "o", "o.last", "o"]


TOTALS = {
    "n": "count(p)",
    "sum": "sum(p.v)",
    "least": "min(p.v)",
    "most": "max(p.v)",
    "mean": "avg(p.v)",
    "first": "first(p.v)",
    "last": "last(p.v)",
    "kinds": "distinct(p.v)",
    "id": "id(o)",
}


def totals_of(some: Sequence[Any]) -> dict[str, Any]:
    """What an order and events with these values come to."""
    known = [one for one in some if one is not None and not isinstance(one, list)]
    is_number = [isinstance(one, int | float) and not isinstance(one, bool) for one in known]
    are_numbers, are_texts = all(is_number), all(isinstance(one, str) for one in known)
    numbers = known if are_numbers else []
    alike = known if are_numbers or are_texts else []
    return {
        "n": len(some),
        "sum": sum(numbers[1:], numbers[0]) if numbers else None,
        "least": min(alike, default=None),
        "most": max(alike, default=None),
        "mean": sum(numbers) / len(numbers) if numbers else None,
        "first": some[0],
        "last": some[-1],
        "kinds": len({orjson.dumps(float(one) if type(one) is int else one) for one in some if one is not None}),
        "id": "first",
    }


@settings(deadline=None)
@given(
    st.one_of(
        st.lists(
            st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9), texts), min_size=1, max_size=6
        ),
        st.lists(st.one_of(st.none(), st.just([1]), st.integers(-9, 9), st.floats(-9, 9)), min_size=1, max_size=6),
        st.lists(st.one_of(st.none(), texts), min_size=1, max_size=6),
    ),
    st.sets(st.integers(0, 7)),
)
def test_totals_over_cuts_and_reloads(some: list[Any], cuts: set[int]) -> None:
    body = read_join({"inputs": INPUTS, "return": TOTALS, "emit": "on_close"})
    run, made = JoinRun(body, "totals", 1), []
    first = merged(0, Event(id="first", type="T", time_us=0, key="k"))
    batch = [first]
    for place, value in enumerate(some):
        event = merged(1, Event(id=f"p{place}", type="T", time_us=place, key="k", data={"v": value}))
        mark = ".last" if place + 1 == len(some) else ""
        batch.append(Event(id=event.id, type=event.type + mark, time_us=place, key="k", data=event.data))
        if place in cuts or mark:
            made += run.process(EventBatch.from_events(batch)).events.to_events()
            batch, again = [], JoinRun(body, "totals", 1)
            again.load(*run.dump())
            run = again
    (event,) = made
    assert event.data == orjson.loads(orjson.dumps(totals_of(some)))
    assert event.time_us == len(some) - 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", "a", None], {"least": "a", "most": "b", "sum": None}),
        ([1, "a"], {"least": None, "most": None, "sum": None}),
        ([True, 2], {"least": None, "most": None, "sum": None}),
        ([1, 1.0, None], {"least": 1, "most": 1, "sum": 2.0}),
        ([1e308, 1e308, 1], {"least": 1, "most": 1e308, "sum": None}),
    ],
)
def test_totals_treat_texts_and_mixed_values_as_patterns_do(values: list[Any], expected: dict[str, Any]) -> None:
    found = totals_of(values) | {"sum": None} if 1e308 in values else totals_of(values)
    assert {name: found[name] for name in expected} == expected
    body = read_join({"inputs": INPUTS, "return": TOTALS, "emit": "on_close"})
    rows = [merged(0, Event(id="first", type="T", time_us=0, key="k"))]
    rows += [
        merged(1, Event(id=f"p{place}", type="T", time_us=place, key="k", data={"v": value}))
        for place, value in enumerate(values)
    ]
    run = JoinRun(body, "totals", 1)
    made = run.process(EventBatch.from_events(rows)).events.to_events() + run.finish().events.to_events()
    assert {name: made[-1].data[name] for name in expected} == expected


@pytest.mark.parametrize("cuts", [1, 2])
def test_a_sum_beyond_64_bits_outlasts_a_reload(cuts: int) -> None:
    body = read_join({"inputs": INPUTS, "return": {"sum": "sum(p.v)"}, "emit": "on_close"})
    run = JoinRun(body, "totals", 1)
    rows = [merged(0, Event(id="o", type="T", time_us=0, key="k"))]
    for place, value in enumerate([2**63, 2**63, -1, -(2**63)]):
        event = merged(1, Event(id=f"p{place}", type="T", time_us=0, key="k", data={"v": value}))
        rows.append(
            Event(id=event.id, type=event.type + (".last" if place == 3 else ""), time_us=0, key="k", data=event.data)
        )
    made = []
    for start in range(0, len(rows), 5 // cuts + 1):
        made += run.process(EventBatch.from_events(rows[start : start + 5 // cuts + 1])).events.to_events()
        again = JoinRun(body, "totals", 1)
        again.load(*run.dump())
        run = again
    assert [event.data for event in made] == [{"sum": 2**63 - 1}]


@pytest.mark.parametrize("damaged", [b"{x}", b'{}},{"type":"T","data":{}'])
def test_damaged_attributes_are_unknown(damaged: bytes) -> None:
    rows = [merged(0, Event(id="o", type="T", time_us=0, key="k", data={"v": 1}))]
    rows.append(merged(1, Event(id="p", type="T", time_us=1, key="k")))
    batch = EventBatch.from_events([replace(one, type=f"{one.type}{'.last' * (one.type == 'p')}") for one in rows])
    body = merged_data(["T"], np.array([0], np.int32), pieces_of([damaged], pa.binary()))
    data = pa.concat_arrays([batch.columns.column("data").slice(0, 1), body])
    broken = EventBatch(batch.columns.set_column(5, batch.columns.schema.field("data"), data))
    run = JoinRun(read_join({"inputs": INPUTS, "return": {"o": "o.v", "p": "p.v", "id": "id(p)"}}), "pairs", 1)
    (event,) = run.process(broken).events.to_events()
    assert event.data == {"o": 1, "p": None, "id": "p"}
