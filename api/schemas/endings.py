"""Early terminations on the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

from pydantic import Field

from api.wire import Older, WireModel
from service import RecentPage


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
    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    constraints: list[str] = Field(description="The minimal chain of constraints.")
    atom: str | None = Field(
        description="The step that became impossible; NOT, if it has to come although it must not."
    )
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


class EndingReason(WireModel):
    """How often a pattern was terminated early for one reason."""

    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    constraints: str = Field(description="The constraints of the chain, separated by commas.")
    atom: str
    count: int

    @classmethod
    def from_domain(cls, count: Mapping[str, Any]) -> Self:
        """The wire form of a counter."""
        return cls.model_validate({name: count[name] for name in cls.model_fields})


class EndingSummary(WireModel):
    """In how many transactions a pattern could no longer match, and why."""

    stream: str
    pattern: str
    total: int
    by_form: dict[str, int]
    reasons: list[EndingReason] = Field(description="The most frequent first.")

    @classmethod
    def from_domain(cls, stream: str, pattern: str, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of the counters of one pattern."""
        by_form: Counter[str] = Counter()
        for count in counts:
            by_form[count["form"]] += count["count"]
        return cls(
            stream=stream,
            pattern=pattern,
            total=by_form.total(),
            by_form=dict(sorted(by_form.items())),
            reasons=[
                EndingReason.from_domain(count) for count in sorted(counts, key=lambda one: one["count"], reverse=True)
            ],
        )


class EndingSummaries(WireModel):
    """Early terminations of all patterns, by stream and pattern."""

    items: list[EndingSummary]

    @classmethod
    def from_domain(cls, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of all counters, sorted by stream and pattern."""
        groups = groupby(counts, key=itemgetter("stream", "pattern"))
        return cls(items=[EndingSummary.from_domain(stream, pattern, list(own)) for (stream, pattern), own in groups])


class EndingList(WireModel):
    """Recent early terminations, newest first, and the count of all by reason."""

    items: list[EndingModel]
    counts: list[EndingCount]
    next: Older

    @classmethod
    def from_domain(cls, page: RecentPage, counts: Sequence[Mapping[str, Any]]) -> Self:
        """The wire form of a page and all counters."""
        return cls(
            items=[EndingModel.from_domain(ending) for ending in page.records],
            counts=[EndingCount.model_validate(count) for count in counts],
            next=page.next,
        )
