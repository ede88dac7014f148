"""Result rows of joins: events of derived streams, by columns, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from shards.kinds.joins.errors import KeyNotWhole
from shards.kinds.joins.sources import KEYLESS
from shards.operators import Origin, Single
from shards.results import DEAD_LETTER
from shards.rows import dead_letter_body, row_id
from streams import (
    Event,
    EventBatch,
    ForestallError,
    format_time,
)


def refused_letters(events: EventBatch, operator: tuple[str, int], origin: Origin) -> Iterator[Single]:
    """Dead letters of events whose keys are no whole numbers, in a join with ``wait: auto``.

    Args:
        events: The events, with the key of the join.
        operator: Name (that of the join and the alias) and version of the input.
        origin: The entry that they come from.
    """
    name, version = operator
    join, _, alias = name.removesuffix(KEYLESS).rpartition(".")
    stream = origin.entry.stream
    for event in events.to_events():
        error = KeyNotWhole(
            f"event {event.id!r} of type {event.type!r} has the key {event.key!r}; the join {join!r} has wait: auto, "
            f"so keys of its input {alias!r} have to be whole numbers such as 7 or -12"
        )
        identity = row_id(DEAD_LETTER, stream, error.code, join, version, alias, event.id, event.time_us)
        yield (
            DEAD_LETTER,
            identity,
            {**letter_body(event, origin, error, identity), "pattern": join, "version": version},
        )


def letter_body(event: Event, origin: Origin, error: ForestallError, identity: str) -> dict[str, Any]:
    """The body of a dead letter about an event that a join does not take.

    ``event``: the event, as the join has it.
    """
    shown = {"id": event.id, "type": event.type, "time": format_time(event.time_us), "key": event.key}
    return {
        **dead_letter_body(origin.shard, origin.entry, error),
        "id": identity,
        "key": event.key,
        "event_id": event.id,
        "event_type": event.type,
        "event": orjson.dumps({**shown, "data": event.data}).decode(),
    }
