"""Promises about future events, and ends of transactions, on the wire."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictInt, model_validator

from api.wire import Moment, Time, WireModel, moment
from streams import GREATEST_NUMBER, LEAST_NUMBER, KeyRange, Punctuation, TraceEnd, parse_time

_Number = Annotated[StrictInt, Field(ge=LEAST_NUMBER, le=GREATEST_NUMBER)]


class KeyRangeModel(WireModel):
    """A range of keys that are whole numbers, between two bounds that are both included. A bound may be left out.

    A key is a whole number if it is written as one: 7, -12, 0. Other keys, such as 007 and a7, are in no range.
    """

    low: _Number | None = Field(None, alias="from", description="The least key.")
    high: _Number | None = Field(None, alias="to", description="The greatest key.")

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        if self.low is None and self.high is None:
            raise ValueError("give 'from', 'to' or both: which keys are finished")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"no key is in a range from {self.low} to {self.high}")
        return self


class PunctuationModel(WireModel):
    """A promise that certain events will not come any more."""

    before: Moment | None = Field(None, description="RFC 3339: no event with an earlier time comes any more.")
    key: str | None = Field(None, min_length=1, description="No event of this transaction comes any more: it ends.")
    keys: list[Annotated[str, Field(min_length=1)]] = Field(
        [], max_length=1_000, description="No event of these transactions comes any more: they end."
    )
    range: KeyRangeModel | None = Field(
        None,
        description="No event of these keys comes any more: they are finished in inputs of joins with closed_by end or "
        "punctuation. Transactions do not end.",
    )
    by: str | None = Field(
        None,
        min_length=1,
        description="Which key the range refers to, as named in the join: a further key, or the path of another "
        "attribute (default: the correlation key).",
    )
    time: Moment | None = Field(
        None,
        description="RFC 3339: when the range is finished, in event time (default: that of the stream's newest event). "
        "Events up to this time may still come.",
    )

    @model_validator(mode="after")
    def _has_a_promise(self) -> Self:
        if self.before is None and self.key is None and not self.keys and self.range is None:
            raise ValueError("give 'before', 'key', 'keys' or 'range': which events will not come any more")
        if self.range is None and not (self.by is None and self.time is None):
            raise ValueError("'by' and 'time' are about a 'range'; give one, or leave them out")
        return self

    def to_domain(self) -> Punctuation:
        return Punctuation(
            before_us=None if self.before is None else parse_time(self.before),
            key=self.key,
            keys=tuple(self.keys),
            range=None if self.range is None else KeyRange(low=self.range.low, high=self.range.high),
            by=self.by or "",
            time_us=None if self.time is None else parse_time(self.time),
        )


class AnnouncedModel(PunctuationModel):
    """A promise that was appended to the log."""

    warnings: list[str] = Field([], description="Parts of the promise without effect, in words.")


class NewTraceEnd(WireModel):
    """The end of a transaction, as sent by a client. The body may be left out."""

    time: Moment | None = Field(
        None, description="RFC 3339, in event time, at most the newest time of its shard (default)."
    )

    def to_domain(self, key: str) -> TraceEnd:
        return TraceEnd(key=key, time_us=None if self.time is None else parse_time(self.time))


class TraceEndModel(WireModel):
    """The end of a transaction, as appended to the log."""

    stream: str
    key: str
    time: Time | None

    @classmethod
    def of(cls, stream: str, end: TraceEnd) -> Self:
        return cls(stream=stream, key=end.key, time=moment(end.time_us))
