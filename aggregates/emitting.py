"""The derived events of an aggregate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import orjson
import pyarrow as pa

from streams import EventBatch, pieces_of, texts_of

CLEARED = ".cleared"
"""Suffix of the type of an event that reports that the condition became false."""

Change: TypeAlias = Literal["met", "cleared", "each", "window"]
"""Why an event is emitted: the condition became true or false, an event came, or a window ended."""

WAITED = 2
"""Rank of a derived event that waited for all events of its time."""

_ID_LENGTH = 32


class Emission(NamedTuple):
    """One derived event before it is written.

    Attributes:
        rank: The order of derived events with the same time, lowest first. An event that passing time caused has the
            rank 0. An event that another event caused has 1, or ``WAITED`` if the change waited for all events of its
            time.
        place: For rank 1, the position of the causing event in the order of processing, from 1. Otherwise 0.
        group: The group as ``group_text``.
        change: Why the event is emitted: a condition became true or false, a window ended, or an event came.
        cause: A text that distinguishes events of the same group, time and change.
    """

    time_us: int
    rank: int
    place: int
    group: str
    change: Change
    cause: str
    key: str
    key_hash: int
    data: Mapping[str, Any]


def in_order(emissions: Iterable[Emission]) -> list[Emission]:
    """Sort derived events by time, rank, place and group. The order does not depend on batch boundaries."""
    return sorted(emissions, key=itemgetter(0, 1, 2, 3))


def events_of(emissions: Sequence[Emission], name: str, version: int, event_type: str) -> EventBatch:
    """Return derived events as a batch. The id of each depends only on the aggregate, group, change, time and cause."""
    if not emissions:
        return EventBatch.from_events([])
    types = [event_type + (CLEARED if emission.change == "cleared" else "") for emission in emissions]
    ids = [
        _digest(["aggregate", name, version, emission.group, emission.change, emission.time_us, emission.cause])
        for emission in emissions
    ]
    return EventBatch.of_hashed(
        texts_of(ids),
        texts_of(types).dictionary_encode(),
        np.array([emission.time_us for emission in emissions], np.int64),
        (
            texts_of([emission.key for emission in emissions]),
            np.array([emission.key_hash for emission in emissions], np.uint64),
        ),
        pieces_of([orjson.dumps(emission.data) for emission in emissions], pa.binary()),
    )


def _digest(parts: Sequence[Any]) -> str:
    return sha256(orjson.dumps(parts)).hexdigest()[:_ID_LENGTH]
