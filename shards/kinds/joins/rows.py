"""Dead letters of joins."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from shards.errors import ShardError
from shards.kinds.joins.errors import KeyNotWhole
from shards.kinds.joins.sources import KEYLESS
from shards.operators import Origin, Single
from shards.results import DEAD_LETTER
from shards.rows import dead_letter_body, row_id
from streams import Event, EventBatch, format_time


def own_key(alias: str, event_id: str) -> str:
    """Return the key of an event that has no usable key in the input ``alias``. No other event has it."""
    return f"no key: {alias} {event_id}"


def refused_letters(events: EventBatch, operator: tuple[str, int], key_path: str, origin: Origin) -> Iterator[Single]:
    """Yield the dead letters of events whose keys are not whole numbers, in a join with ``wait: auto``.

    ``operator`` has the name of the input, which consists of join and alias, and its version. ``key_path`` names the
    attribute with the key, if it is not the correlation key.
    """
    name, version = operator
    join, _, alias = name.removesuffix(KEYLESS).rpartition(".")
    for event in events.to_events():
        is_lacking = event.key == own_key(alias, event.id)
        fault = f"no usable key at {key_path}" if is_lacking else f"the key {event.key!r}"
        error = KeyNotWhole(
            f"event {event.id!r} of type {event.type!r} has {fault}; the join {join!r} has wait: auto, "
            f"so keys of its input {alias!r} have to be whole numbers such as 7 or -12"
        )
        yield event_letter(event, origin, error, (origin.entry.stream, join, version, alias))


def event_letter(event: Event, origin: Origin, error: ShardError, source: tuple[str, str, int, str]) -> Single:
    """Return the dead letter of an event that a join refuses.

    ``source`` has the stream of the event, the name and the version of the join, and the alias of the input.
    """
    stream, join, version, alias = source
    identity = row_id(DEAD_LETTER, stream, error.code, join, version, alias, event.id, event.time_us)
    event_members = {"id": event.id, "type": event.type, "time": format_time(event.time_us), "key": event.key}
    body = {
        **dead_letter_body(origin.shard, origin.entry, error),
        "id": identity,
        "key": event.key,
        "event_id": event.id,
        "event_type": event.type,
        "event": orjson.dumps({**event_members, "data": event.data}).decode(),
        "stream": stream,
        "pattern": join,
        "version": version,
    }
    return DEAD_LETTER, identity, body
