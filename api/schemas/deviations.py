"""Deviations on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field

from api.wire import Older, WireModel
from service import RecentPage


class DeviationModel(WireModel):
    """An event that breaks the constraint set that its transaction follows."""

    type: Literal["deviation"] = Field("deviation", description="Distinguishes deviations from alerts and corrections.")
    id: str
    stream: str
    key: str = Field(description="The transaction.")
    event: str = Field(description="Id of the event.")
    event_type: str
    time: str
    version: int = Field(description="Version of the constraint set.")
    kind: str | None = Field(
        None,
        description="order: its type could no longer come; occurrence: types that exclude each other, obligations "
        "included; obligation: what is required can no longer come; cycle: obligations cannot be put in a row; rule: a "
        "rule is broken; workflow: the workflow that the stream follows does not allow it; unknown-type: the "
        "process has no such event; after-end: the transaction was over, by an end event or by the workflow. "
        "Null in those of earlier releases.",
    )
    constraints: list[str] = Field([], description="A minimal set of constraints that it breaks.")
    symbols: list[str] = Field([], description="Conditions of the constraint set that the event meets.")
    allowed: list[str] = Field(
        [], description="Types that the workflow allows instead, if the stream follows one exactly."
    )
    released: int = Field(
        0, description="Events that pruning had dropped in the transaction before; matches with them may be missing."
    )
    reason: str

    @classmethod
    def from_domain(cls, deviation: Mapping[str, Any]) -> Self:
        """The wire form of a stored deviation."""
        return cls.model_validate({name: deviation[name] for name in cls.model_fields if name in deviation})


class DeviationCount(WireModel):
    """The number of deviations of one kind by events of one type."""

    stream: str
    event_type: str
    kind: str
    count: int


class DeviationList(WireModel):
    """Recent deviations, newest first, and the count of all by event type and kind."""

    items: list[DeviationModel]
    counts: list[DeviationCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[DeviationModel.from_domain(deviation) for deviation in page.records],
            counts=[DeviationCount.model_validate(count) for count in counts],
            next=page.next,
        )
