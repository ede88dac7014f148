"""Joins take out what patterns and joins before them take back: what stands is what the join of what stands finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, RowBlock, ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import ConstraintsOn, Event, EventBatch, OperatorOn, PatternOn, StreamDeclaration, StreamOn, Tick

SECOND_US = 1_000_000
KIND = JoinKind()
STREAMS = {
    **{name: StreamDeclaration(name=name) for name in ("payments", "calls", "notes")},
    **{name: StreamDeclaration(name=name, derived=True) for name in ("late", "told", "noted", "counted")},
}
LATE = "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 1 h RETURN a.n AS n INTO late TYPE Late"
SEEN = "PATTERN seen EVENT `noted.retracted` r"
RULES = {"constraints": ["exclusive(B, C)"]}
WINDOW_S = 9
TOLD: dict[str, Any] = {
    "name": "told",
    "inputs": [
        {"stream": "late", "as": "l", "type": "Late", "window": "1 h"},
        {"stream": "calls", "as": "c", "window": f"{WINDOW_S} s"},
    ],
    "return": {"l": "id(l)", "c": "id(c)"},
}
NOTED: dict[str, Any] = {
    "name": "noted",
    "inputs": [{"stream": "told", "as": "t", "window": "1 h"}, {"stream": "notes", "as": "n", "window": "1 h"}],
    "return": {"t": "id(t)", "n": "id(n)"},
}
COUNTED: dict[str, Any] = {
    "name": "counted",
    "inputs": [
        {"stream": "late", "as": "l", "window": "1 h"},
        {"stream": "calls", "as": "c", "window": "5 s", "closed_by": {"type": "Last"}},
    ],
    "emit": "on_close",
    "return": {"l": "count(l)", "c": "count(c)"},
}

made_events = st.lists(
    st.tuples(
        st.sampled_from(["A", "A", "B", "C", "call", "call", "note", "Last"]), st.sampled_from("ab"), st.integers(0, 3)
    ),
    min_size=8,
    max_size=30,
)


def begun(shards: int) -> InlineShards:
    inline = InlineShards(shards)
    derived = [StreamDeclaration(name=merged_stream(one["name"]), derived=True) for one in (TOLD, NOTED, COUNTED)]
    for declaration in (*STREAMS.values(), *derived):
        inline.append_record(declaration.name, StreamOn(declaration))
    inline.append_record("payments", ConstraintsOn(name="payments", version=1, document=RULES))
    inline.append_record("payments", PatternOn(name="p", version=1, text=LATE))
    inline.append_record("noted", PatternOn(name="seen", version=1, text=SEEN))
    for document in (TOLD, NOTED, COUNTED):
        join = KIND.read(document, STREAMS.__getitem__)
        for one in (join, *KIND.parts(join, STREAMS.__getitem__)):
            inline.append_record(one.inputs[0].stream, OperatorOn(replace(one, version=1)))
    assert [row.body for block in inline.settle() for row in block] == []
    return inline


def events_of(made: Sequence[tuple[str, str, int]]) -> list[tuple[str, Event]]:
    found, second = [], 1
    streams = {"call": "calls", "Last": "calls", "note": "notes"}
    for number, (kind, key, pause) in enumerate(made):
        second += pause
        event = Event(id=f"e{number}", type=kind, time_us=second * SECOND_US, key=key, data={"n": number})
        found.append((streams.get(kind, "payments"), event))
    return found


def standing(rows: Sequence[RowBlock], stream: str) -> dict[str, Mapping[str, Any]]:
    """The events of a derived stream that are not taken back, by id."""
    bodies = [orjson.loads(row.body) for block in rows for row in block if row.kind == "derived"]
    some = [body for body in bodies if body["into"] == stream]
    found = {body["id"]: body for body in some if not body["type"].endswith(".retracted")}
    for body in some:
        if body["type"].endswith(".retracted"):
            taken = found.pop(body["data"]["retracts"])
            assert (body["type"], body["key"]) == (f"{taken['type']}.retracted", taken["key"])
    return found


def bodies_of(rows: Sequence[RowBlock]) -> list[bytes]:
    return [row.body for block in rows for row in block if row.kind == "derived"]


def seconds(body: Mapping[str, Any]) -> int:
    return int(body["time"][17:19]) + 60 * int(body["time"][14:16])


@settings(max_examples=60, deadline=None)
@given(made_events, st.sampled_from([1, 3]), st.sets(st.integers(0, 29), max_size=5))
def test_what_stands_is_the_join_of_what_stands(made: list[tuple[str, str, int]], shards: int, cuts: set[int]) -> None:
    inline, rows, events = begun(shards), list[RowBlock](), events_of(made)
    for number, (stream, event) in enumerate(events):
        inline.feed(stream, EventBatch.from_events([event]))
        if number in cuts:
            rows += inline.settle()
            inline.states[:] = [ShardState.load(state.dump()) for state in inline.states]
    for name in ("payments", "calls", "notes"):
        inline.append_record(name, Tick(time_us=1_000 * SECOND_US, cause="events"))
    rows += inline.settle()
    late, told = standing(rows, "late"), standing(rows, "told")
    calls = [event for stream, event in events if stream == "calls"]
    notes = [event for stream, event in events if stream == "notes"]
    pairs = [
        (one["id"], call.id)
        for one in late.values()
        for call in calls
        if one["key"] == call.key and seconds(one) - call.time_us // SECOND_US < WINDOW_S
    ]
    assert sorted((one["data"]["l"], one["data"]["c"]) for one in told.values()) == sorted(pairs)
    noted = standing(rows, "noted").values()
    assert sorted((one["data"]["t"], one["data"]["n"]) for one in noted) == sorted(
        (one["id"], note.id) for one in told.values() for note in notes if one["key"] == note.key
    )
    bodies = [(row.kind, orjson.loads(row.body)) for block in rows for row in block]
    back = [body["id"] for kind, body in bodies if kind == "derived" and body["type"] == "noted.retracted"]
    seen = [body["bindings"]["r"][0] for kind, body in bodies if kind == "alert"]
    assert sorted(seen) == sorted(back)  # by a pattern behind the second join
    codes = [orjson.loads(row.body)["code"] for block in rows for row in block if row.kind == "dead-letter"]
    assert "retraction-late" not in codes


def test_totals_are_taken_back_and_corrected() -> None:
    inline = begun(2)
    for stream, event in events_of([("A", "a", 1), ("C", "a", 1), ("call", "a", 1), ("A", "a", 1), ("Last", "a", 1)]):
        inline.feed(stream, EventBatch.from_events([event]))
    for name in ("payments", "calls"):
        inline.append_record(name, Tick(time_us=20 * SECOND_US, cause="events"))
    rows = inline.settle()
    assert [one["data"] for one in standing(rows, "counted").values()] == [{"l": 2, "c": 2}]
    inline.feed("payments", EventBatch.from_events([Event(id="b", type="B", time_us=21 * SECOND_US, key="a", data={})]))
    for name in ("payments", "calls"):
        inline.append_record(name, Tick(time_us=30 * SECOND_US, cause="events"))
    rows += inline.settle()
    assert [one["data"] for one in standing(rows, "late").values()] == []
    assert standing(rows, "counted") == {}
    types = [body["type"] for body in map(orjson.loads, bodies_of(rows)) if body["into"] == "counted"]
    assert types == ["counted", "counted.retracted", "counted", "counted.retracted"]


def test_retractions_may_be_events_like_others() -> None:
    plain = {**TOLD, "inputs": [{**TOLD["inputs"][0], "retractions": "event"}, TOLD["inputs"][1]]}
    found = [
        [
            bool(part.body.get("retracts"))
            for part in KIND.parts(KIND.read(one, STREAMS.__getitem__), STREAMS.__getitem__)
        ]
        for one in (TOLD, plain)
    ]
    assert found == [[True, False], [False, False]]
