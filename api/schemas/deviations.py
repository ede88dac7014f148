"""Deviations on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from api.wire import WireModel


class DeviationModel(WireModel):
    """An event that breaks the constraint set that its transaction follows."""

    id: str
    stream: str
    key: str = Field(description="The transaction.")
    event: str = Field(description="Id of the event.")
    event_type: str
    time: str
    version: int = Field(description="Version of the constraint set.")
    reason: str

    @classmethod
    def from_domain(cls, deviation: Mapping[str, Any]) -> Self:
        """The wire form of a stored deviation."""
        return cls.model_validate({name: deviation[name] for name in cls.model_fields})


class DeviationCount(WireModel):
    """How often events of one type deviated."""

    stream: str
    event_type: str
    count: int


class DeviationList(WireModel):
    """Recent deviations, newest first, and all that there were, counted by event type."""

    items: list[DeviationModel]
    counts: list[DeviationCount]

    @classmethod
    def from_domain(cls, deviations: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of deviations and counters."""
        return cls(
            items=[DeviationModel.from_domain(deviation) for deviation in deviations],
            counts=[DeviationCount.model_validate(count) for count in counts],
        )
