"""The progress of each stream's event time.

If a stored time is before the declaration of its stream, it belongs to a former stream of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

from service.stores.connection import Client, register
from service.stores.log.layout import LayoutStore, arguments_of
from service.stores.records import decode
from streams import STREAMS_KEY, Tick

ANY_LIFE = "*"

TIME_PARTS = (":newest", ":appended", ":ticked", ":risen")
CLOSED_PART = ":closed"
"""The part of the time of the newest closing tick, which is not a time of events (``CLOSED_US``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimes:
    """The times of a stream, in microseconds UTC.

    Attributes:
        newest_us: Event time of the newest event, or None before the first event.
        appended_us: Time of the last append of events, by the clock of Redis.
        ticked_us: Event time of the newest tick.
        risen_us: Time at which ``newest_us`` last increased, by the clock of Redis. None if an earlier release has
            appended the events, because it did not store this time.
    """

    newest_us: int | None
    appended_us: int | None
    ticked_us: int | None
    risen_us: int | None = None

    @classmethod
    def read(cls, values: Sequence[bytes | int | None]) -> Self:
        """Parse the values of the fields ``TIME_PARTS``, in this order."""
        known = (None if time_us is None else int(time_us) for time_us in values)
        newest_us, appended_us, ticked_us, risen_us = known
        return cls(newest_us=newest_us, appended_us=appended_us, ticked_us=ticked_us, risen_us=risen_us)


def times_of(stream: str) -> list[str]:
    """Return the hash fields of a stream's times."""
    return [stream + part for part in TIME_PARTS]


class StreamTimesStore:
    """Stores the times of streams."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read = register(client, "log/read_times")
        self._tick = register(client, "log/tick")

    def read(self) -> tuple[int, dict[str, StreamTimes]]:
        """Return the time of Redis' clock (microseconds UTC), and the times of all streams that had events or ticks."""
        (seconds, micros), pairs = self._read()
        fields = cast("list[bytes]", pairs)
        values = {name.decode(): int(value) for name, value in zip(fields[::2], fields[1::2], strict=True)}
        streams = {name.rpartition(":")[0] for name in values}
        times = {
            stream: StreamTimes.read([values.get(time_field) for time_field in times_of(stream)]) for stream in streams
        }
        return int(seconds) * 1_000_000 + int(micros), times

    def sinces(self) -> dict[str, str]:
        """Return the time of each stream's declaration, in the format of ``since_of``.

        Callers must call this method before they read the streams' times.
        """
        bodies = cast("dict[bytes, bytes]", self._client.hgetall(STREAMS_KEY))
        return {stream.decode(): _since(body, stream.decode()) for stream, body in bodies.items()}

    def tick(self, stream: str, tick: Tick, layout: LayoutStore, *, since: str = ANY_LIFE) -> bool:
        """Append a tick to every shard unless the stream has a newer tick. Return whether the tick was appended.

        ``since`` is the time at which the caller's stream was declared. If a stream of the same name was declared
        later, append nothing.
        """
        return bool(layout.append(self._tick, stream=stream, time_us=tick.time_us, since=since, **arguments_of(tick)))


def since_of(client: Client, stream: str) -> str:
    """Return the time of a stream's declaration by Redis' clock in milliseconds UTC, or an empty text if undeclared."""
    body = cast("bytes | None", client.hget(STREAMS_KEY, stream))
    return "" if body is None else _since(body, stream)


def _since(body: bytes, stream: str) -> str:
    return str(int(decode(body, f"the stream {stream!r}").get("since_ms", 0)))
