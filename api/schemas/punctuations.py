"""Punctuations on the wire."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from api.wire import Moment, WireModel
from streams import Punctuation, parse_time


class PunctuationModel(WireModel):
    """A promise about the events that are still to come."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"before": "2026-01-01T10:00:00Z"}, {"key": "t7"}, {"keys": ["t8", "t9"]}]}
    )

    before: Moment | None = Field(None, description="RFC 3339: no event with an earlier time comes any more.")
    key: str | None = Field(None, min_length=1, description="No event of this transaction comes any more: it ends.")
    keys: list[Annotated[str, Field(min_length=1)]] = Field(
        [], max_length=1_000, description="The same of each of these transactions."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.before is None and self.key is None and not self.keys:
            raise ValueError("give 'before', 'key' or 'keys': which events will not come any more")
        return self

    def to_domain(self) -> Punctuation:
        """The promise that is meant."""
        before_us = None if self.before is None else parse_time(self.before)
        return Punctuation(before_us=before_us, key=self.key, keys=tuple(self.keys))
