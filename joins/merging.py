"""Merged events: how an event of one input is in the one order of all inputs of its join.

The type of a merged event is the alias of its input, with a mark behind it where the event finishes its key, or says
nothing but that. Its id begins with the input and a place, and its data are the type and the data of the event.
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
"""Behind the alias of an event that finishes its key."""
CLOSED = ".closed"
"""Behind the alias of what only says that a key is finished."""

RANGE = ".range"
"""Behind the alias of what says that all keys of a range are finished; its data are the range."""

AGAIN = ".again"
"""Behind the alias of what says that the keys of an input have begun again."""

RETRACTED = ".retracted"
"""Behind the type of an event that takes another one back, and behind the alias of such an event."""
REVOCABLE = ".revocable"
"""Behind the alias of an event that may be taken back."""
UNKEYED = ".unkeyed"
"""Behind the alias of an event that has no usable key where its input is re-keyed: it has a key of its own."""

MARKS = ("", LAST, CLOSED, RANGE, AGAIN, RETRACTED, REVOCABLE, REVOCABLE + LAST, UNKEYED)
"""All of them, by number."""

_PLACED = 18  # characters in front of the id
_LAST_PLACE = (1 << 64) - 1


def finishes_key(mark: str, *, is_unique: bool) -> bool:
    """Whether a merged event with a mark finishes its key.

    Args:
        mark: The mark.
        is_unique: Whether its input has one event of each key.
    """
    return mark != UNKEYED and (is_unique or mark.endswith((LAST, CLOSED)))


def merged_id(number: int, place: int, identity: str) -> str:
    """The id of a merged event: events of one time come by input, then by their place in it.

    Args:
        number: Of the input.
        place: Counts the events of the input at their place.
        identity: Id of the event in its stream.
    """
    return f"{number:02x}{place:016x}{identity}"


def finished_range(number: int, alias: str, keys: KeyRange | None, time_us: int) -> EventBatch:
    """The row by which an input finishes a range of keys: it comes behind all events of its time and input.

    Args:
        number: Of the input.
        alias: Of the input.
        keys: The range; None: its keys begin again, so what was finished before may come again.
        time_us: When it is finished.
    """
    return EventBatch.of_hashed(
        texts_of([merged_id(number, _LAST_PLACE, "")]),
        texts_of([alias + (AGAIN if keys is None else RANGE)]).dictionary_encode(),
        np.array([time_us], np.int64),
        (texts_of([""]), np.array([EVERY_KEY], np.uint64)),
        pieces_of([orjson.dumps({} if keys is None else keys.to_json())], pa.binary()),
    )


def merged_ids(number: int, places: NDArray[np.uint64], identities: pa.Array) -> pa.Array:
    """``merged_id`` of many events of one input."""
    return joined_texts([f"{number:02x}", hex_texts(places), identities])


def merged_data(types: Sequence[str], codes: NDArray[np.int32], data: pa.Array) -> pa.Array:
    """The data of merged events: the type and the data of each.

    Args:
        types: The types of the events.
        codes: Of each event the place of its type there.
        data: Of each event the JSON object, as bytes.
    """
    heads = [f'{{"type":{json_text(one)},"data":' for one in types]
    return joined_texts([chosen_texts(heads, codes), data.view(pa.string()), "}"]).view(pa.binary())


def original_ids(identities: pa.Array) -> pa.Array:
    """The ids of merged events in their streams."""
    return pc.utf8_slice_codeunits(identities, _PLACED)


def original_of(event: Event) -> Event:
    """A merged event as its stream has it."""
    told = dict(event.data)
    identity = event.id[_PLACED:]
    return Event(id=identity, type=str(told["type"]), time_us=event.time_us, key=event.key, data=told["data"])


def attributes_of(data: bytes) -> Any:
    """What a JSON object says; an empty one if it is damaged."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}


def originals_of(data: Sequence[bytes]) -> list[dict[str, Any]]:
    """Of merged events by their data: ``type`` and ``data`` of each; neither is known where the data are damaged."""
    with suppress(orjson.JSONDecodeError):
        found: list[dict[str, Any]] = orjson.loads(b"[" + b",".join(data) + b"]")
        if len(found) == len(data):
            return found
    return [attributes_of(one) or {"type": None, "data": {}} for one in data]


def merged_types(alias: str, marks: NDArray[np.int8]) -> pa.DictionaryArray:
    """The types of merged events of one input.

    Args:
        alias: Of the input.
        marks: Of each event its place in ``MARKS``.
    """
    return texts_of([alias + mark for mark in MARKS]).take(column_of(marks)).dictionary_encode()
