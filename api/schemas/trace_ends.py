"""Ends of transactions on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from api.wire import Moment, Time, WireModel, moment
from streams import TraceEnd, parse_time


class NewTraceEnd(WireModel):
    """The time at which a transaction ended; the body may be left out."""

    time: Moment | None = Field(
        None, description="RFC 3339, in event time, at most the newest time of its shard (default)."
    )

    def to_domain(self, key: str) -> TraceEnd:
        """The control record of the end."""
        return TraceEnd(key=key, time_us=None if self.time is None else parse_time(self.time))


class TraceEndModel(WireModel):
    """The end of a transaction, as appended to the log."""

    stream: str
    key: str
    time: Time | None

    @classmethod
    def from_domain(cls, stream: str, end: TraceEnd) -> Self:
        """The wire form of an end."""
        return cls(stream=stream, key=end.key, time=moment(end.time_us))
