"""Timeouts on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from api.wire import Older, WireModel
from service import RecentPage


class TimeoutModel(WireModel):
    """A partial match that could still have been completed when the window of its pattern had passed."""

    id: str
    stream: str
    pattern: str
    version: int
    key: str = Field(description="The transaction.")
    route: str | None = Field(
        None, description="Name of the stream's further key that `key` is of; null for its correlation key."
    )
    start: str
    due: str = Field(description="When the window had passed.")
    bindings: dict[str, list[str]] = Field(description="Event ids by alias.")
    missing: list[str] = Field(description="The steps of which nothing is bound.")

    @classmethod
    def from_domain(cls, timeout: Mapping[str, Any]) -> Self:
        """The wire form of a stored timeout."""
        return cls.model_validate({name: timeout[name] for name in cls.model_fields if name in timeout})


class TimeoutCount(WireModel):
    """How many partial matches of a pattern timed out for want of the same steps."""

    stream: str
    pattern: str
    missing: str = Field(description="The steps, separated by commas.")
    count: int


class TimeoutList(WireModel):
    """Recent timeouts, newest first, and all that there were, counted by what was missing."""

    items: list[TimeoutModel]
    counts: list[TimeoutCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[TimeoutModel.from_domain(timeout) for timeout in page.records],
            counts=[TimeoutCount.model_validate(count) for count in counts],
            next=page.next,
        )
