"""A single event, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from streams.errors import EventRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in one transaction; the events of a transaction have the same ``key``.

    Attributes:
        id: Unique within its stream.
    """

    id: str
    type: str
    time_us: int
    key: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("id", "type", "key"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise EventRejected(f"an event needs a non-empty text as {name}, got {value!r}", field=name)
            if not value.isascii():
                check_text(value, name)
        if not isinstance(self.time_us, int) or isinstance(self.time_us, bool):
            raise EventRejected(
                f"event {self.id!r}: time must be whole microseconds, got {self.time_us!r}", field="time"
            )
        if not -(2**63) <= self.time_us < 2**63:
            raise EventRejected(f"event {self.id!r}: time {self.time_us} is outside 64 bits", field="time")
        try:
            orjson.dumps(self.data)
        except TypeError as error:
            raise EventRejected(f"event {self.id!r}: data cannot be written as JSON: {error}", field="data") from error


def check_text(value: str, name: str) -> str:
    """Return a text unchanged. Raises ``EventRejected`` if it cannot be encoded in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise EventRejected(
            f"{name!r} contains half of a surrogate pair, which is not valid Unicode", field=name
        ) from error
    return value
