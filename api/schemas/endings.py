"""Early endings on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from api.wire import WireModel


class EndingModel(WireModel):
    """The first event after which a pattern can no longer match in a transaction, which may be its own end event."""

    id: str
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    event: str = Field(description="Id of the event.")
    event_type: str
    time: str
    form: str = Field(description="Form of the reason: p1 to p5, or end for the transaction's own end event.")
    constraints: list[str] = Field(description="The minimal chain of constraints.")
    atom: str | None = Field(description="The step that became impossible.")
    reason: str

    @classmethod
    def from_domain(cls, ending: Mapping[str, Any]) -> Self:
        """The wire form of a stored ending."""
        return cls.model_validate({name: ending[name] for name in cls.model_fields})


class EndingCount(WireModel):
    """In how many transactions a pattern could no longer match for one reason."""

    stream: str
    pattern: str
    form: str
    constraints: str = Field(description="The constraints of the chain, separated by commas.")
    atom: str
    count: int


class EndingList(WireModel):
    """Recent endings, newest first, and all that there were, counted by reason."""

    items: list[EndingModel]
    counts: list[EndingCount]

    @classmethod
    def from_domain(cls, endings: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of endings and counters."""
        return cls(
            items=[EndingModel.from_domain(ending) for ending in endings],
            counts=[EndingCount.model_validate(count) for count in counts],
        )
