"""Merged events: the form of an input's events in the common order of all inputs of a join.

The type of a merged event is the name of its input (``input_name``), followed by a mark, for example for an event that
finishes its key. Its id begins with the input and a counter, and its data are the type and the data of the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams import (
    EVERY_KEY,
    RETRACTED,
    Event,
    EventBatch,
    KeyRange,
    chosen_texts,
    column_of,
    hex_texts,
    joined_texts,
    json_text,
    pieces_of,
    texts_of,
)

LAST = ".last"
"""Mark of an event that finishes its key."""
CLOSED = ".closed"
"""Mark of a row that only finishes a key."""

RANGE = ".range"
"""Mark of a row that finishes all keys of a range; its data are the range."""

AGAIN = ".again"
"""Mark of a row after which the keys of an input begin again."""

REVOCABLE = ".revocable"
"""Mark of an event that may be retracted."""
UNKEYED = ".unkeyed"
"""Mark of an event without a usable key (null, an object, ...) of an input with a ``key``: it gets a key of its own."""

MARKS = ("", LAST, CLOSED, RANGE, AGAIN, RETRACTED, REVOCABLE, REVOCABLE + LAST, UNKEYED)
"""All marks, by number."""

_OF_READING = ":"  # between the alias of an input and its reading; earlier releases wrote neither
_OF_MARK = "."  # first character of every mark; aliases do not contain it
_PLACED = 18  # characters in front of the id
_LAST_PLACE = (1 << 64) - 1


def input_name(alias: str, reading: str) -> str:
    """Return the first part of the type of an input's merged events: its alias and its reading.

    ``reading`` is a result of ``readings_of``. In events of earlier releases it is empty.
    """
    return f"{alias}{_OF_READING}{reading}" if reading else alias


def alias_and_mark(merged_type: str) -> tuple[str, str]:
    """Split the type of a merged event. Return the alias of its input and its mark (of ``MARKS``)."""
    name, dot, mark = merged_type.partition(_OF_MARK)
    return name.partition(_OF_READING)[0], dot + mark


def finishes_key(mark: str, *, is_unique: bool) -> bool:
    """Check whether a merged event with this mark finishes its key. ``is_unique`` says that each key has one event."""
    return mark != UNKEYED and (is_unique or mark.endswith((LAST, CLOSED)))


def merged_id(number: int, place: int, identity: str) -> str:
    """Return the id of a merged event: its input, ``place`` and the id of the original event (``identity``).

    Events of one time are ordered by id, that is, by input and then by ``place``, a counter of the input's events.
    """
    return f"{number:02x}{place:016x}{identity}"


def finished_range(number: int, name: str, keys: KeyRange | None, time_us: int) -> EventBatch:
    """Create a merged event by which an input finishes a range of keys.

    It follows the input's other events of this time. ``number`` is the input, and ``name`` a result of ``input_name``.
    If ``keys`` is None, the event says that the keys of the input begin again (``AGAIN``).
    """
    return EventBatch.of_hashed(
        texts_of([merged_id(number, _LAST_PLACE, "")]),
        texts_of([name + (AGAIN if keys is None else RANGE)]).dictionary_encode(),
        np.array([time_us], np.int64),
        (texts_of([""]), np.array([EVERY_KEY], np.uint64)),
        pieces_of([orjson.dumps({} if keys is None else keys.to_json())], pa.binary()),
    )


def merged_ids(number: int, places: NDArray[np.uint64], identities: pa.Array) -> pa.Array:
    """Return the ids of merged events of one input, as ``merged_id`` does for one event."""
    return joined_texts([f"{number:02x}", hex_texts(places), identities])


def merged_data(types: Sequence[str], codes: NDArray[np.int32], data: pa.Array) -> pa.Array:
    """Return the data of merged events: JSON objects with type and data of the original events.

    ``codes`` are the indices of the types in ``types``. ``data`` are JSON objects.
    """
    heads = [f'{{"type":{json_text(event_type)},"data":' for event_type in types]
    return joined_texts([chosen_texts(heads, codes), data.view(pa.string()), "}"]).view(pa.binary())


def original_ids(identities: pa.Array) -> pa.Array:
    """Return the ids that the events have in their streams, from the ids of merged events."""
    return pc.utf8_slice_codeunits(identities, _PLACED)


def original_of(event: Event) -> Event:
    """Convert a merged event back to the event of its stream."""
    original = dict(event.data)
    identity = event.id[_PLACED:]
    return Event(id=identity, type=str(original["type"]), time_us=event.time_us, key=event.key, data=original["data"])


def attributes_of(data: bytes) -> Any:
    """Parse a JSON text. If it is damaged, return an empty object."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}


def originals_of(data: Sequence[bytes]) -> list[dict[str, Any]]:
    """Parse the data of merged events: the types and the data of the original events.

    Damaged data give the type None and an empty object.
    """
    with suppress(orjson.JSONDecodeError):
        originals: list[dict[str, Any]] = orjson.loads(b"[" + b",".join(data) + b"]")
        if len(originals) == len(data):
            return originals
    return [attributes_of(document) or {"type": None, "data": {}} for document in data]


def merged_types(name: str, marks: NDArray[np.int8]) -> pa.DictionaryArray:
    """Return the types of merged events of an input. ``name`` is as in ``input_name``.

    ``marks`` has, for each event, the index of its mark in ``MARKS``.
    """
    return texts_of([name + mark for mark in MARKS]).take(column_of(marks)).dictionary_encode()
