"""A stream that is removed and declared again is a fresh start, whatever its shards had not yet done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, RowBlock, rows_of
from shards.kinds.joins import JoinKind, merged_stream
from streams import ControlRecord, Event, EventBatch, OperatorOn, PatternOn, StreamDeclaration, StreamOff, StreamOn

KIND = JoinKind()
NAME, FAILED = "pairs", "failed"
SECOND_US = 1_000_000
POSTED = [StreamDeclaration(name="a"), StreamDeclaration(name="b", lateness=2.0)]
DOCUMENT: dict[str, Any] = {
    "name": NAME,
    "inputs": [{"stream": name, "key": "data.order", "window": "3 s"} for name in "ab"],
    "return": {"a": "id(a)", "b": "id(b)", "other": "b.other"},
    "outer": ["b"],
}
DERIVED = [merged_stream(NAME), NAME, FAILED]


def declared() -> list[tuple[str, ControlRecord]]:
    """A join with re-keyed inputs, a pattern that re-keys its results, and a second pattern that reads these."""
    derived = [StreamDeclaration(name=name, derived=True) for name in DERIVED]
    named = {one.name: one for one in POSTED}
    join = KIND.read(DOCUMENT, named.__getitem__)
    into = f"PATTERN f EVENT {NAME} e RETURN e.a AS a INTO {FAILED} KEY a"
    return [
        *((one.name, StreamOn(one)) for one in [*POSTED, *derived]),
        *(
            (one.inputs[0].stream, OperatorOn(replace(one, version=1)))
            for one in (join, *KIND.parts(join, named.__getitem__))
        ),
        (NAME, PatternOn(name="f", version=1, text=into)),
        (FAILED, PatternOn(name="seen", version=1, text="PATTERN seen EVENT f e")),
    ]


def removed() -> list[tuple[str, ControlRecord]]:
    return [(name, StreamOff(name)) for name in (FAILED, NAME, merged_stream(NAME), "a", "b")]


def history(draw: st.DrawFn, life: int, first_s: int) -> list[tuple[str, Event]]:
    """Events of one life of the streams."""
    rows = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.sampled_from("kl")), max_size=10))
    found, now = [], first_s
    for number, (stream, step, order) in enumerate(rows):
        now += step
        identity = f"{life}-{number}"
        data = {"order": order, "other": order}
        found.append((stream, Event(id=identity, type="T", time_us=now * SECOND_US, key=f"x{number % 4}", data=data)))
    return found


histories = st.composite(history)


def said(shards: InlineShards, records: Sequence[tuple[str, ControlRecord]]) -> None:
    for stream, record in records:
        shards.append_record(stream, record)


def seen_of(rows: Sequence[RowBlock], life: int) -> list[tuple[str, bytes]]:
    """What was found of the events of one life, without places in the log."""
    bodies = [(one.kind, orjson.loads(one.body)) for one in rows_of(rows)]
    found = [
        (kind, {name: body[name] for name in ("time", "key", "data", "bindings", "into") if name in body})
        for kind, body in bodies
        if kind in ("derived", "alert") and body.get("into") != merged_stream(NAME)
    ]
    return sorted((kind, orjson.dumps(body)) for kind, body in found if f"{life}-".encode() in orjson.dumps(body))


@settings(max_examples=60, deadline=None)
@given(
    histories(life=1, first_s=500),
    histories(life=2, first_s=5),
    st.sampled_from([1, 3]),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), max_size=12),
    st.booleans(),
)
def test_a_project_that_is_removed_and_declared_again_finds_what_a_new_one_finds(
    before: list[tuple[str, Event]],
    after: list[tuple[str, Event]],
    shards: int,
    steps: list[tuple[int, int]],
    pauses: bool,
) -> None:
    fresh = InlineShards(shards)
    said(fresh, declared())
    for stream, one in after:
        fresh.feed(stream, EventBatch.from_events([one]))
    expected = fresh.finish()

    again, rows = InlineShards(shards), list[RowBlock]()
    said(again, declared())
    for stream, one in before:
        again.feed(stream, EventBatch.from_events([one]))
    if pauses:
        rows += again.pause()
    for number, (shard, entries) in enumerate(steps):
        if number == len(steps) // 2:
            said(again, [*removed(), *declared()])
        rows += again.step(shard % shards, entries)
    if len(steps) < 1:
        said(again, [*removed(), *declared()])
    for stream, one in after:
        again.feed(stream, EventBatch.from_events([one]))
    rows += again.finish()
    assert [row for row in rows_of(rows) if row.kind == "dead-letter"] == []
    assert seen_of(rows, 2) == seen_of(expected, 2)
    late = [state.measures()[name].get("late_processed", 0) for state in again.states for name in DERIVED]
    assert late == [state.measures()[name].get("late_processed", 0) for state in fresh.states for name in DERIVED]
