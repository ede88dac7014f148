"""Inputs of joins with undeclared keys find what inputs with the correlation key find, in whatever way events come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from shards import DERIVED, InlineShards, RowBlock
from shards.kinds.joins import JoinKind, merged_stream
from streams import ControlRecord, Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn

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
        inline.say(stream, record)
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
    alone = [("1970-01-01T00:00:09Z", NAME, b'{"a":"a2","b":null}')] if outer else []
    assert pairs_of(inline.finish()) == [("1970-01-01T00:00:02Z", NAME, b'{"a":"a1","b":"b1"}'), *alone]
