"""Inputs of joins with undeclared keys find what inputs with the correlation key find, in whatever way events come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from joins import JoinRefused, read_join
from shards import DERIVED, InlineShards, RowBlock, ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import ControlRecord, Event, EventBatch, OperatorOn, PatternOn, StreamDeclaration, StreamOn

KIND = JoinKind()
NAME = "pairs"
SECOND_US = 1_000_000


def records(document: Mapping[str, Any], streams: Sequence[StreamDeclaration]) -> list[tuple[str, ControlRecord]]:
    """What a log says before the first event."""
    derived = [StreamDeclaration(name=name, derived=True) for name in (NAME, merged_stream(NAME))]
    named = {one.name: one for one in streams}
    join = KIND.read(document, named.__getitem__)
    parts = (join, *KIND.parts(join, named.__getitem__))
    return [
        *((one.name, StreamOn(one)) for one in [*streams, *derived]),
        *((one.inputs[0].stream, OperatorOn(replace(one, version=1))) for one in parts),
    ]


def begun(document: Mapping[str, Any], streams: Sequence[StreamDeclaration], shards: int = 1) -> InlineShards:
    """Shards in which a join runs."""
    inline = InlineShards(shards)
    for stream, record in records(document, streams):
        inline.append_record(stream, record)
    assert [row.body for block in inline.settle() for row in block] == []
    return inline


def pairs_of(rows: Sequence[RowBlock]) -> list[tuple[str, str, bytes]]:
    """Time, type and data of the join's events."""
    bodies = [orjson.loads(row.body) for block in rows if block.found.kind is DERIVED for row in block]
    made = [(body["time"], body["type"], orjson.dumps(body["data"])) for body in bodies if body["into"] == NAME]
    return sorted(made)


def document_of(key: str | None, **others: Any) -> dict[str, Any]:
    """A join of two streams by an attribute, or by the correlation key."""
    named = {} if key is None else {"key": key}
    inputs = [{"stream": "a", "window": "3 s", **named}, {"stream": "b", "window": "3 s", **named}]
    return {"name": NAME, "inputs": inputs, "return": {"a": "id(a)", "b": "id(b)"}, **others}


def made(name: str, seconds: float, key: str = "", event_type: str = "T", order: str = "k") -> Event:
    """An event whose correlation key is its own id."""
    return Event(
        id=name, type=event_type, time_us=round(seconds * SECOND_US), key=key or name, data={"order": order, "id": name}
    )


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("patient", ["a", "b", "ab"])
@pytest.mark.parametrize("outer", [[], ["b"]])
def test_events_that_wait_for_older_ones_at_the_end_are_joined_at_their_times(
    shards: int, patient: str, outer: list[str]
) -> None:
    streams = [StreamDeclaration(name=name, lateness=6.0 if name in patient else None) for name in "ab"]
    inline = begun(document_of("data.order", outer=outer), streams, shards)
    inline.feed("a", EventBatch.from_events([made("a1", 1), made("a2", 9)]))
    inline.feed("b", EventBatch.from_events([made("b1", 2)]))
    alone = [("1970-01-01T00:00:09.000000Z", NAME, b'{"a":"a2","b":null}')] if outer else []
    assert pairs_of(inline.finish()) == [("1970-01-01T00:00:02.000000Z", NAME, b'{"a":"a1","b":"b1"}'), *alone]


closings = st.sampled_from(["unique", {"type": "Last"}, None])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Joins of a and b, for which the order of events of one time matters."""
    inputs = []
    for name in "ab":
        one: dict[str, Any] = {"stream": name, "window": draw(st.sampled_from(["2 s", {"last": 1}, {"last": 2}]))}
        if (closing := draw(closings)) is not None:
            one["closed_by"] = closing
        inputs.append(one)
    returns = {"a": "id(a)", "b": "id(b)", "first": "first(b.id)", "last": "last(a.id)"}
    if not draw(st.booleans()):
        document = {"inputs": inputs, "return": {"a": "id(a)", "b": "id(b)"}, "window": "4 s"}
        try:
            read_join(document)
        except JoinRefused:  # nothing bounds its memory
            assume(False)
        return {"name": NAME, **document}
    inputs = [{**one, "closed_by": {"type": "Last"}} for one in inputs]
    totals = {name: value for name, value in returns.items() if name not in "ab"}
    return {"name": NAME, "inputs": inputs, "return": totals, "emit": "on_close", "window": "4 s"}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Event]]:
    """Events of a and b out of order by at most two seconds, many of one time; their ids are in no order."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from("ab"),
                st.sampled_from([0, 0, 1, 2]),
                st.sampled_from([0, 0, 0, 1]),
                st.sampled_from("kkkl"),
                st.sampled_from(["T", "T", "T", "Last"]),
            ),
            max_size=16,
        )
    )
    found, now = list[tuple[str, Event]](), 5
    for number, (stream, back, step, order, event_type) in enumerate(rows):
        now += step
        name = f"{number * 7 % 17:02}"
        found.append((stream, made(name, now - back, f"x{number % 3}", event_type, order)))
    return found


def keyed(one: Event) -> Event:
    """The event of a stream whose correlation key is that of the join."""
    return replace(one, key=str(one.data["order"]))


@settings(max_examples=50, deadline=None)
@given(documents(), histories(), st.sampled_from([1, 3]), st.sets(st.integers(0, 15), max_size=3))
def test_a_rekeyed_input_finds_what_one_with_the_correlation_key_finds(
    document: dict[str, Any], history: list[tuple[str, Event]], shards: int, cuts: set[int]
) -> None:
    plain = begun(document, [StreamDeclaration(name=name) for name in "ab"])
    for stream, one in sorted(history, key=lambda pair: pair[1].time_us):
        plain.feed(stream, EventBatch.from_events([keyed(one)]))
    expected = pairs_of(plain.finish())

    rekeyed = {**document, "inputs": [{**one, "key": "data.order"} for one in document["inputs"]]}
    inline, rows = begun(rekeyed, [StreamDeclaration(name=name, lateness=2.0) for name in "ab"], shards), []
    for number, (stream, one) in enumerate(history):
        inline.feed(stream, EventBatch.from_events([one]))
        if number in cuts:
            rows += inline.settle()
            inline.states[:] = [ShardState.load(state.dump()) for state in inline.states]
    found = pairs_of([*rows, *inline.finish()])
    timeless = "emit" in document  # totals of open keys have the time to which their shard has come
    assert sorted(pair[timeless:] for pair in found) == sorted(pair[timeless:] for pair in expected)


@pytest.mark.parametrize("shards", [1, 3])
def test_events_of_one_time_are_joined_as_they_came(shards: int) -> None:
    inputs = [
        {"stream": "a", "key": "data.order", "window": "3 s", "closed_by": {"type": "Last"}},
        {"stream": "b", "key": "data.order", "window": "3 s"},
    ]
    document = {"name": NAME, "inputs": inputs, "return": {"first": "first(a.id)", "last": "last(a.id)"}}
    inline = begun(
        {**document, "emit": "on_close", "outer": ["b"]}, [StreamDeclaration(name=name) for name in "ab"], shards
    )
    names = ["a5", "a9", "a0", "a7", "a2"]
    inline.feed("a", EventBatch.from_events([made(name, 1) for name in names[:2]]))
    last = made("a4", 1, event_type="Last")
    inline.feed("a", EventBatch.from_events([*(made(name, 1) for name in names[2:]), last, made("a1", 1)]))
    rows = inline.finish()
    assert [data for *_, data in pairs_of(rows)] == [b'{"first":"a5","last":"a4"}']
    (letter,) = [orjson.loads(row.body) for block in rows for row in block if row.kind == "dead-letter"]
    assert (letter["code"], letter["event_id"]) == ("key-finished", "a1")


@pytest.mark.parametrize("shards", [1, 3])
def test_a_rekeyed_input_keeps_the_order_of_a_derived_stream(shards: int) -> None:
    mids = StreamDeclaration(name="mids", derived=True)
    document = {
        "name": NAME,
        "inputs": [
            {"stream": "mids", "as": "m", "key": "data.order", "window": {"last": 1}},
            {"stream": "b", "key": "data.order", "window": "9 s", "closed_by": "unique"},
        ],
        "return": {"m": "m.id"},
    }
    said = records(document, [StreamDeclaration(name="a"), StreamDeclaration(name="b"), mids])
    text = "PATTERN p EVENT T t RETURN t.order AS order, t.id AS id INTO mids"
    said[3:3] = [("a", PatternOn(name="p", version=1, text=text))]
    inline = InlineShards(shards)
    for stream, record in said:
        inline.append_record(stream, record)
    names = [f"a{number * 5 % 8}" for number in range(8)]
    inline.feed("a", EventBatch.from_events([made(name, 1) for name in names]))
    inline.feed("b", EventBatch.from_events([made("b1", 2)]))
    assert [data for *_, data in pairs_of(inline.finish())] == [orjson.dumps({"m": names[-1]})]


@pytest.mark.parametrize("shards", [1, 3])
def test_what_late_events_derive_is_not_held_back_for_ever(shards: int) -> None:
    streams = [StreamDeclaration(name=name) for name in "ab"]
    inline = begun(document_of("data.order", **{"return": {"a": "id(a)", "order": "b.order"}}), streams, shards)
    failed = StreamDeclaration(name="failed", derived=True)
    for stream, record in (
        ("failed", StreamOn(failed)),
        (NAME, PatternOn(name="f", version=1, text="PATTERN f EVENT _ e RETURN e.a AS a INTO failed KEY a")),
        ("failed", PatternOn(name="seen", version=1, text="PATTERN seen EVENT f e")),
    ):
        inline.append_record(stream, record)
    inline.feed("a", EventBatch.from_events([made("a1", 4)]))
    inline.feed("b", EventBatch.from_events([made("b0", 5, order="z")]))
    inline.feed("a", EventBatch.from_events([made("a2", 5, order="z2")]))
    rows = inline.pause()
    inline.feed("b", EventBatch.from_events([made("b1", 3)]))
    rows += inline.settle()
    assert [row for block in rows for row in block if row.kind == "alert"] == []
    late = inline.pause()
    assert len([row for block in late for row in block if row.kind == "alert"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN p EVENT SEQ(A a, NOT B) WHERE [shop] WITHIN 4 s",
        "PATTERN p EVENT SEQ(A a, B* b GREEDY) WHERE [shop] WITHIN 4 s",
        "PATTERN p EVENT SEQ(A a, B b) WHERE [shop] WITHIN 4 s EMIT TIMEOUTS",
    ],
)
@pytest.mark.parametrize("shards", [1, 3])
def test_an_event_without_a_further_key_passes_a_deadline(text: str, shards: int) -> None:
    inline = InlineShards(shards)
    inline.append_record("s", StreamOn(StreamDeclaration(name="s", keys={"shop": "data.shop"})))
    inline.append_record("s", PatternOn(name="p", version=1, text=text, route="shop"))
    batch = EventBatch.from_events(
        [
            Event(id="a", type="A", time_us=0, key="k", data={"shop": "x"}),
            Event(id="x", type="X", time_us=9 * SECOND_US, key="l", data={}),
        ]
    )
    inline.feed("s", batch)
    inline.feed("s", batch.keyed_by(("shop",)), "shop")
    assert [row.kind for block in inline.pause() for row in block] == ["timeout" if "EMIT" in text else "alert"]
