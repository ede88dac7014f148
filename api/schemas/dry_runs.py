"""Dry runs of patterns on the wire."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from api.schemas.patterns import FailingConditionModel, SuppressModel, Switch
from api.schemas.results import Row
from api.wire import Time, WireModel


class NewDryRun(WireModel):
    """A pattern to be tried on the newest events."""

    stream: str | None = Field(None, max_length=200, description="A declared stream; may be left out with `name`.")
    text: str | None = Field(None, description="The pattern language.")
    definition: dict[str, Any] | None = Field(None, description="Instead of the text: the pattern's JSON form.")
    name: str | None = Field(
        None, max_length=200, description="Instead of both: a registered pattern, such as a draft."
    )
    constraints: Switch | None = Field(
        None,
        description="Whether the stream's constraints terminate partial matches early (default: 'on', or as "
        "registered).",
    )
    suppress: SuppressModel | None = Field(
        None, description="Which alerts would be suppressed (default: none, or as registered)."
    )
    events: int = Field(10_000, ge=1, le=100_000, description="Number of the stream's newest events to match.")

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if [self.text, self.definition, self.name].count(None) != 2:
            raise ValueError("send exactly one of 'text', 'definition' and 'name'")
        if self.name is None and self.stream is None:
            raise ValueError("name the 'stream' to try it on")
        return self


class DryMatch(WireModel):
    """A match that would have been an alert."""

    key: str
    row: Row = None
    start: Time
    end: Time
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    would_be_lost: bool


class DryEnding(WireModel):
    """In how many transactions the pattern could no longer match for one reason."""

    form: str
    reason: str
    count: int


class DryRunModel(WireModel):
    """The results that a pattern would have had in the newest events."""

    pattern: str
    stream: str
    events: int = Field(
        description="The number of events that were matched; fewer than requested if the log holds no more."
    )
    first_time: Time | None
    last_time: Time | None
    matched: int = Field(description="Without suppressed ones.")
    suppressed: int = Field(0, description="Matches whose alerts would be suppressed.")
    matches: list[DryMatch] = Field(description="The first 100, by their end.")
    endings: int
    ending_reasons: list[DryEnding] = Field(description="The most frequent reason first.")
    timeouts: int
    dropped: int = Field(description="Matches beyond a limit, which are not counted above.")
    partial_matches: int = Field(description="The number of events bound in partial matches at the end.")
    failing_conditions: list[FailingConditionModel] = Field(
        description="Events that would end its partial matches early, by the constraints of the stream."
    )
    warnings: list[str]
    duration_s: float
