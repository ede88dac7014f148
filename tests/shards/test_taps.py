"""Taps, compared with results that are turned into events by hand and posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.projects import LocalProject, read_project
from shards import InlineShards, OperatorRefused, RowBlock
from shards.kinds.taps import TapKind
from shards.rows import rows_of
from streams import Event, EventBatch, StreamDeclaration, format_time, parse_time

SOURCE = """
{kind: stream, name: orders, key: data.order, end_events: [End], idle_timeout: 20, keys: {customer: data.customer}}
---
{kind: constraints, name: orders, constraints: [{exclusive: [B, C]}, {prior: [A, B]}, {response: [A, End]}]}
---
{kind: pattern, name: ab, stream: orders, text: 'PATTERN ab EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: finer, stream: orders,
 text: 'PATTERN finer EVENT SEQ(A a, C c) WHERE [key, v] WITHIN 9 s EMIT TIMEOUTS'}
---
{kind: pattern, name: rows, stream: orders,
 text: 'PATTERN rows FOR EACH ROW OF limits t EVENT SEQ(A a [v = t.v], B b)'}
---
{kind: pattern, name: pair, stream: orders,
 text: 'PATTERN pair EVENT SEQ(A a, A b) WHERE [customer] WITHIN 6 s EMIT TIMEOUTS'}
---
{kind: table, name: limits, key: v, file: limits.csv, columns: {v: integer}}
"""
TAPS = """
{kind: tap, name: stopped, of: orders, results: endings, type: Stopped}
---
{kind: tap, name: late, of: orders, results: timeouts, type: Late}
---
{kind: tap, name: late_pairs, of: orders, results: timeouts, route: customer, type: Late}
---
{kind: tap, name: broken, of: orders, results: deviations, type: Broken}
"""
POSTED = "---".join(
    f"\n{{kind: stream, name: {one}, key: key}}\n" for one in ("stopped", "late", "late_pairs", "broken")
)
READERS = """
{kind: aggregate, name: reasons, of: stopped, by: [pattern, reason],
 values: {n: count(), last: last(event)}, window: 9 s}
---
{kind: aggregate, name: of_key, of: stopped, by: [key], values: {n: count(), v: sum(event_data.v)}, window: {last: 2}}
---
{kind: aggregate, name: pairs, of: late_pairs, by: [key], values: {n: count(), first: first(due)}, window: 30 s}
---
{kind: pattern, name: soon, stream: late,
 text: 'PATTERN soon EVENT SEQ(Late a, Late b) WITHIN 20 s RETURN b.due AS due INTO dues'}
---
{kind: pattern, name: which, stream: broken,
 text: 'PATTERN which EVENT Broken b RETURN b.event_data.v AS v INTO found KEY v'}
---
{kind: aggregate, name: values, of: found, by: [v], values: {n: count()}, window: 1 min, having: n >= 2}
"""
RESULTS = {"ending": "stopped", "timeout": "late", "deviation": "broken"}
READ = ("reasons", "of_key", "pairs", "dues", "found", "values")


@cache
def project_of(*parts: str) -> LocalProject:
    with TemporaryDirectory() as folder:
        (Path(folder) / "rules.yaml").write_text("---".join(parts))
        (Path(folder) / "limits.csv").write_text("v\n0\n1\n")
        return LocalProject.of(read_project(Path(folder)), Path(folder))


def run(
    parts: Sequence[str], events: Mapping[str, Sequence[Event]], cuts: Sequence[int] = (), shards: int = 1
) -> list[Any]:
    """The bodies of all rows by kind; each stream's events are cut into batches of these sizes."""
    plan, blocks = project_of(*parts).plan, list[RowBlock]()
    inline = InlineShards(shards)
    for stream, record in plan.records():
        inline.say(stream, record)
    for stream, some in events.items():
        left = list(some)
        for size in (*cuts, len(left)):
            batch, left = left[:size], left[size:]
            if batch:
                blocks += inline.feed_and_decide(stream, EventBatch.from_events(batch), plan.routes(stream))
    blocks += inline.finish()
    return [(row.kind, orjson.loads(row.body)) for row in rows_of(blocks)]


def by_hand(rows: Sequence[tuple[str, dict[str, Any]]], events: Mapping[str, Event]) -> dict[str, list[Event]]:
    """Results as events that clients post, ordered by time and id."""
    found: dict[str, list[Event]] = {one: [] for one in ("stopped", "late", "late_pairs", "broken")}
    for kind, body in rows:
        if kind in RESULTS:
            stream = "late_pairs" if "route" in body else RESULTS[kind]
            data = {name: value for name, value in body.items() if name not in ("id", "type")}
            data |= {} if kind == "timeout" else {"event_data": dict(events[body["event"]].data)}
            at_us = parse_time(body.get("due") or body["time"])
            event = Event(id=body["id"], type=kind.title(), time_us=at_us, key=body["key"], data=data)
            found[stream].append(event)
    return {name: sorted(some, key=lambda one: (one.time_us, one.id)) for name, some in found.items()}


def made(rows: Sequence[tuple[str, dict[str, Any]]], streams: Sequence[str]) -> list[Any]:
    members = ("into", "time", "key", "data")
    return sorted(
        orjson.dumps([body[one] for one in members], option=orjson.OPT_SORT_KEYS)
        for kind, body in rows
        if kind == "derived" and body["into"] in streams
    )


ROW = st.tuples(st.sampled_from("AAABBC") | st.just("End"), st.integers(0, 3), st.integers(1, 9), st.integers(0, 2))


@settings(max_examples=15, deadline=None)
@given(rows=st.lists(ROW, min_size=8, max_size=40), cuts=st.lists(st.integers(1, 9), max_size=6))
def test_taps_are_results_turned_into_events_by_hand(rows: list[tuple[str, int, int, int]], cuts: list[int]) -> None:
    seconds, events = 100, list[Event]()
    for number, (event_type, key, pause, value) in enumerate(rows):
        seconds += pause
        data = {"order": f"k{key}", "v": value, "customer": f"c{number % 2}"}
        events.append(Event(id=f"e{number}", type=event_type, time_us=seconds * 1_000_000, key=f"k{key}", data=data))
    found = run((SOURCE, TAPS, READERS), {"orders": events}, cuts)
    results = run((SOURCE,), {"orders": events})
    given = by_hand(results, {one.id: one for one in events})
    expected = [
        orjson.dumps([name, format_time(one.time_us), one.key, one.data], option=orjson.OPT_SORT_KEYS)
        for name, some in given.items()
        for one in some
    ]
    assert made(found, tuple(given)) == sorted(expected)
    readers = READERS.replace("Stopped", "Ending").replace("Late ", "Timeout ").replace("Broken ", "Deviation ")
    assert made(found, READ) == made(run((SOURCE, POSTED, readers), given), READ)
    assert made(run((SOURCE, TAPS, READERS), {"orders": events}, shards=3), (*given, *READ)) == made(
        found, (*given, *READ)
    )


def test_many_early_terminations_become_events_even_where_shards_only_count_them() -> None:
    events = [
        Event(id=f"e{number}", type=kind, time_us=second * 1_000_000, key=f"k{number % 50}", data={"v": 5})
        for number, (kind, second) in enumerate([("A", 1)] * 50 + [("C", 2)] * 50)
    ]
    plan = project_of(SOURCE, TAPS).plan
    inline = InlineShards(1)
    inline.states[0].limit_endings(3)
    for stream, record in plan.records():
        inline.say(stream, record)
    blocks = inline.feed_and_decide("orders", EventBatch.from_events(events), plan.routes("orders"))
    rows = rows_of([*blocks, *inline.finish()])
    made_of = [orjson.loads(row.body) for row in rows if row.kind == "derived"]
    assert len([row for row in rows if row.kind == "ending"]) < len(made_of)
    assert [one["data"]["event"] for one in made_of if one["data"]["pattern"] == "ab"] == [
        f"e{n}" for n in range(50, 100)
    ]


@pytest.mark.parametrize(
    ("member", "document"),
    [
        ("results", {"of": "orders"}),
        ("of", {"results": "endings"}),
        ("results", {"of": "orders", "results": "alerts"}),
        ("results", {"of": "orders", "results": 3}),
        ("key", {"of": "orders", "results": "endings", "key": "region"}),
        ("type", {"of": "orders", "results": "endings", "type": ""}),
        ("route", {"of": "orders", "results": "endings", "route": "customer"}),
        ("route", {"of": "orders", "results": "timeouts", "route": "region"}),
    ],
)
def test_a_wrong_declaration_names_its_member(member: str, document: dict[str, Any]) -> None:
    declared = StreamDeclaration(name="orders", keys={"customer": "data.customer"})
    with pytest.raises(OperatorRefused) as refused:
        TapKind().read({"name": "t", **document}, lambda _: declared)
    assert refused.value.details["field"] == member
