"""Taps, compared with results that are turned into events by hand and posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.examples import Draws
from service.errors import ProjectRefused
from service.projects import LocalProject, read_project
from shards import InlineShards, OperatorRefused, RowBlock
from shards.kinds.aggregates import AggregateKind
from shards.kinds.taps import TapKind
from shards.rows import rows_of
from streams import Ask, Definition, Event, EventBatch, StreamDeclaration, Tick, format_time, parse_time

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
---
{kind: table, name: watched, key: id, file: watched.csv}
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
---
{kind: aggregate, name: watching, of: stopped, by: [pattern, reason], for_each_row_of: watched,
 values: {n: count(), v: sum(event_data.v)}, window: {row: within, most: 20 s}, having: n >= 2}
"""
ASKED = """
{kind: aggregate, name: asked, of: stopped, by: [BY], values: {n: count(), v: sum(event_data.v)}, window: 20 s,
 having: n > 99, ask: {by: [reason, key, event_data.customer]}}
"""
RESULTS = {"ending": "stopped", "timeout": "late", "deviation": "broken"}
READ = ("reasons", "of_key", "pairs", "dues", "found", "values", "watching")


@cache
def project_of(*parts: str) -> LocalProject:
    with TemporaryDirectory() as folder:
        (Path(folder) / "rules.yaml").write_text("---".join(parts))
        (Path(folder) / "limits.csv").write_text("v\n0\n1\n")
        (Path(folder) / "watched.csv").write_text("id,pattern,reason,within\nall,,,\nab,ab,,9 s\n")
        return LocalProject.of(read_project(Path(folder)), Path(folder))


def run(
    parts: Sequence[str], events: Mapping[str, Sequence[Event]], cuts: Sequence[int] = (), shards: int = 1
) -> list[Any]:
    """The bodies of all rows by kind; each stream's events are cut into batches of these sizes."""
    plan, blocks = project_of(*parts).plan, list[RowBlock]()
    inline = InlineShards(shards)
    for stream, record in plan.records():
        inline.append_record(stream, record)
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


@pytest.mark.parametrize("by", ["key", "reason"])
@pytest.mark.parametrize("shards", [1, 3])
def test_questions_over_a_tap_have_the_values_of_a_plain_evaluation(by: str, shards: int, draws: Draws) -> None:
    plan = project_of(SOURCE, TAPS, ASKED.replace("BY", by)).plan
    definition = next(one for one in plan.operators if one.name == "asked")
    counted = 0
    for seed in draws(20):
        chance, inline, rows, seconds = Random(seed), InlineShards(shards), list[Any](), 100
        for stream, record in plan.records():
            inline.append_record(stream, record)
        for number in range(60):
            seconds += chance.randrange(0, 4)
            key, kind = f"k{chance.randrange(6)}", chance.choice("AAABBC")
            data = {"order": key, "v": chance.randrange(3), "customer": f"c{chance.randrange(2)}"}
            event = Event(id=f"e{number}", type=kind, time_us=seconds * 1_000_000, key=key, data=data)
            blocks = inline.feed_and_decide("orders", EventBatch.from_events([event]), plan.routes("orders"))
            rows += [orjson.loads(row.body) for row in rows_of(blocks) if row.kind == "derived"]
            if number % 10 == 9:
                inline.append_record("orders", Tick(time_us=event.time_us, cause="events"))
                rows += [orjson.loads(row.body) for row in rows_of(inline.settle()) if row.kind == "derived"]
                question = chance.choice(ASKS)
                until_us = inline._promised["asked.inputs"]
                some = [one for one in rows if one["into"] == "stopped" and parse_time(one["time"]) < until_us]
                expected = plain(some, question, until_us)
                counted += sum(group["n"] for group in expected)
                assert asked(inline, definition, question, until_us) == expected, (seed, number)
    assert counted > 0


ASKS: list[dict[str, Any]] = [
    {"by": ["reason"], "where": {"event_data.customer": "c1"}},
    {"by": ["key"], "window": "9 s"},
    {"where": {"key": "k1"}},
]


def asked(
    inline: InlineShards, definition: Definition, question: Mapping[str, Any], until_us: int
) -> list[dict[str, Any]]:
    """The groups of an answer of all shards, through the log."""
    document = {"name": "asked", "question": question, "until_us": until_us}
    inline.append_record(definition.inputs[0].stream, Ask(id="q", operator="aggregate", question=document))
    answers = [orjson.loads(row.body)["answer"] for row in rows_of(inline.settle()) if row.kind == "answer"]
    assert len(answers) == len(inline.states)
    return list(AggregateKind().answer_of(definition, question, answers)["groups"])


def plain(rows: Sequence[Mapping[str, Any]], question: Mapping[str, Any], until_us: int) -> list[dict[str, Any]]:
    """The groups of a question over the events of a tap, evaluated anew."""
    window_us = 9_000_000 if "window" in question else 20_000_000
    by, where = question.get("by", []), question.get("where", {})
    groups: dict[tuple[Any, ...], list[int]] = {} if by else {(): []}
    for row in rows:
        members = {"reason": row["data"]["reason"], "key": row["key"]}
        members["event_data.customer"] = row["data"]["event_data"]["customer"]
        is_inside = until_us - parse_time(row["time"]) < window_us
        if is_inside and all(members[name] == value for name, value in where.items()):
            groups.setdefault(tuple(members[name] for name in by), []).append(row["data"]["event_data"]["v"])
    return [
        dict(zip(by, group, strict=True)) | {"n": len(numbers), "v": sum(numbers) if numbers else None}
        for group, numbers in sorted(groups.items())
    ]


@pytest.mark.parametrize(
    ("feeder", "kind"),
    [
        ("{kind: pattern, name: p, stream: orders, text: 'PATTERN p EVENT A a INTO stopped'}", "pattern"),
        ("{kind: join, name: stopped, inputs: [INPUT as: x}, INPUT as: y}], window: 9 s, return: {v: x.v}}", "join"),
    ],
)
@pytest.mark.parametrize("member", ["ask", "for_each_row_of"])
def test_events_that_may_be_retracted_are_refused_where_they_cannot_be_taken_out(
    member: str, feeder: str, kind: str
) -> None:
    listener = ASKED if member == "ask" else READERS[READERS.index("\n{kind: aggregate, name: watching") :]
    with pytest.raises(ProjectRefused, match=f"'{member}' of the aggregate .* the {kind} .* may retract events"):
        project_of(SOURCE, TAPS, listener.replace("BY", "key"), f"\n{feeder.replace('INPUT', '{stream: orders,')}\n")


def test_questions_over_an_aggregate_of_a_tap_are_allowed() -> None:
    further = ASKED.replace("BY", "key").replace("asked, of: stopped", "further, of: asked")
    plan = project_of(SOURCE, TAPS, ASKED.replace("BY", "key"), further.replace("event_data.", "")).plan
    assert {"asked", "further"} <= {one.name for one in plan.operators}


def test_many_early_terminations_become_events_even_where_shards_only_count_them() -> None:
    events = [
        Event(id=f"e{number}", type=kind, time_us=second * 1_000_000, key=f"k{number % 50}", data={"v": 5})
        for number, (kind, second) in enumerate([("A", 1)] * 50 + [("C", 2)] * 50)
    ]
    plan = project_of(SOURCE, TAPS).plan
    inline = InlineShards(1)
    inline.states[0].limit_endings(3)
    for stream, record in plan.records():
        inline.append_record(stream, record)
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
