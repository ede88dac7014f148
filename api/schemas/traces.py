"""Transactions on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field

from api.schemas.results import Row
from api.wire import From, Time, WireModel
from service import OpenCaseReport

_PatternState: TypeAlias = Literal[
    "alive", "waiting", "ended", "closed", "registered_later", "was_paused", "paused", "suspended", "other_key"
]


class SeenEvent(WireModel):
    """An event of a transaction."""

    id: str
    type: str
    time: Time
    data: dict[str, Any] = Field(description="The attributes of the event.")


class EndedModel(WireModel):
    """The reason why a pattern can no longer match in a transaction."""

    row: Row = None
    event: str = Field(description="Id of the event that ended it.")
    event_type: str
    time: Time
    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    reason: str


class BrokenModel(WireModel):
    """The end of the last partial match of a pattern, if it did not become a match."""

    event: str | None = Field(description="Id of the event that ended it; null where WITHIN or the idle timeout did.")
    event_type: str | None
    time: Time | None
    bindings: dict[str, list[str]] = Field(description="Event ids by alias, of the partial match.")
    reason: str


class TracePattern(WireModel):
    """The state of a pattern in a transaction."""

    name: str
    version: int
    state: _PatternState = Field(
        description="'alive': it holds partial matches; 'waiting': it has bound nothing and may still match; 'ended': "
        "it can no longer match; 'closed': the transaction is over; 'registered_later': the transaction is over, and "
        "this version was registered after its last event; 'was_paused': the transaction is over, and the version was "
        "paused at all its events; 'paused', 'suspended': it sees nothing now; 'other_key': it is "
        "matched by a further key of the stream, on the transactions of its values."
    )
    route: str | None = Field(None, description="The further key that it is matched by; null: the correlation key.")
    route_keys: list[str] = Field(
        [],
        description="With 'other_key': the values of that key in the events of this transaction, at most 20; "
        "`GET /v1/traces/{stream}/{value}?by=NAME` shows the pattern there.",
    )
    more_route_keys: int = Field(0, description="The number of further such values.")
    seen_events: int | None = Field(
        None,
        description="The number of events of the transaction that came while this version ran; null where it was not "
        "matched again ('suspended', 'other_key').",
    )
    matched: int = Field(description="How often this version has matched.")
    matches: list[dict[str, list[str]]] = Field(description="Event ids by alias, of the newest 20 matches.")
    earlier_matched: int | None = Field(
        None,
        description="How often earlier versions have matched in the transaction, if this version or one before started "
        "with 'migrate', which lets the partial matches of the version before finish.",
    )
    partial_matches: int = Field(
        description="Number of events that partial matches have bound; an event in several counts for each."
    )
    ending: EndedModel | None
    broken: BrokenModel | None = Field(
        None,
        description="How its last partial match ended, if it ended without a match and no other partial match exists.",
    )
    is_broken_examined: bool = Field(
        True,
        description="False: how its last partial match ended was not examined, because the pattern sees more than 300 "
        "events of the transaction, so `broken` is null.",
    )


class BreachModel(WireModel):
    """The event by which a transaction broke the constraints."""

    event: str
    event_type: str
    time: Time
    constraints: list[str]
    reason: str


class FollowingModel(WireModel):
    """The effect that an event of a type would have. Only the type is considered."""

    event_type: str
    is_possible: bool = Field(description="Whether it may come without breaking the constraints.")
    breaks: str | None = Field(description="Why it must not come.")
    ends: dict[str, str] = Field(description="The patterns that it would end, each with the reason.")


class TraceModel(WireModel):
    """The last transaction of a key, as far as its events are in the log."""

    stream: str
    key: str = Field(description="Correlation key of the transaction, or its value of the further key.")
    route: str | None = Field(None, description="The further key whose value it has; null: the correlation key.")
    positions: dict[int, str] = Field(
        description="The last entry of the log that was read, by shard. Empty for a derived stream, whose events "
        "are read from the list of derived events."
    )
    is_complete: bool = Field(
        description="Whether no part of the log was missing; otherwise the beginning of the transaction may be missing."
    )
    is_open: bool = Field(description="Whether the transaction is still open, according to the log.")
    constraints_version: int | None = Field(description="Version of the constraint set that it follows.")
    total_events: int
    earlier_events: int = Field(description="The number of events of earlier transactions of this key.")
    newest_events: list[SeenEvent] = Field(description="The newest 200, the oldest of them first.")
    patterns: list[TracePattern]
    deviation: BreachModel | None
    following: list[FollowingModel] = Field(
        description="The effect of each type that the stream or its constraints name: at most 50 types, fewer "
        "for long transactions; empty if the transaction is over or has broken the constraints, and "
        "for further keys."
    )
    more_types: int = Field(0, description="The number of further types, which were not examined.")


class BoundStepModel(WireModel):
    """An event that a partial match has bound."""

    alias: str
    event: str = Field(description="Id of the event.")
    time: Time


class FurthestModel(WireModel):
    """The furthest partial match of a pattern. Of several with equal progress, the one with the newest events."""

    since: Time = Field(description="Time of its earliest event.")
    bound: list[BoundStepModel] = Field(description="The newest 50 of its events, the oldest of them first.")
    bound_events: int = Field(description="The number of its bound events.")
    waits_for: list[str] = Field(
        description="The steps that would extend it, at most 10. A `NOT` step: the match is complete, and waits "
        "until the forbidden event can no longer come."
    )
    more_waits_for: int = Field(0, description="The number of further such steps.")
    expires_at: Time | None = Field(description="When WITHIN ends the partial match.")

    @classmethod
    def from_domain(cls, partial_match: Mapping[str, Any]) -> Self:
        return cls.copying(partial_match, bound=[BoundStepModel.copying(step) for step in partial_match["bound"]])


class CasePatternModel(WireModel):
    """A pattern in an open transaction."""

    name: str
    version: int
    state: Literal["alive", "waiting", "ended"] = Field(
        description="'alive': it holds partial matches; 'waiting': it has bound nothing and may still match; 'ended': "
        "it can no longer match."
    )
    partial_matches: int = Field(description="The number of partial matches.")
    furthest: FurthestModel | None
    reason: str | None = Field(description="Why it can no longer match, where that is known.")

    @classmethod
    def from_domain(cls, pattern: Mapping[str, Any]) -> Self:
        furthest = pattern["furthest"]
        return cls.copying(pattern, furthest=None if furthest is None else FurthestModel.from_domain(furthest))


class MayFollow(WireModel):
    """The event types that may come next by the constraints and the workflow. Only the types are considered."""

    possible_types: Annotated[list[str], From("possible")]
    excluded_types: Annotated[list[str], From("excluded")]
    more_types: Annotated[int, From("more")] = Field(
        0, description="The number of further types, which were not examined."
    )


class OpenCaseModel(WireModel):
    """An open transaction."""

    key: str
    since: Annotated[Time, From("first_us")] = Field(description="Time of its first event.")
    newest: Time = Field(description="Time of its newest event.")
    last_type: str | None = Field(
        description="Type of its newest event; null where an earlier release has saved the state, and none has come "
        "since."
    )
    events: int | None = Field(description="The number of its events; null where the first ones were not counted.")
    constraints_state: Annotated[Literal["kept", "deviating", "complete", "none"], From("constraints")] = Field(
        description="'kept': it keeps the constraints so far; 'deviating': it broke one; 'complete': it is over by "
        "the workflow or an end event, and nothing may follow; 'none': it follows no constraints."
    )
    constraints_version: Annotated[int | None, From("version")] = Field(description="Version of the set that it keeps.")
    patterns: list[CasePatternModel] = Field(
        description="At most 20 patterns: the requested one, then those with partial matches, then others."
    )
    more_patterns: int = Field(description="The number of further patterns.")
    may_follow: MayFollow | None = Field(
        description="By the types that the stream or its constraints name, at most 50; no type may come if the "
        "transaction is over or has broken the constraints; null if a shard had too many different "
        "cases to examine."
    )

    @classmethod
    def from_domain(cls, trace: Mapping[str, Any]) -> Self:
        following = trace["following"]
        return cls.copying(
            trace,
            last_type=trace.get("last_type"),
            patterns=[CasePatternModel.from_domain(pattern) for pattern in trace["patterns"]],
            may_follow=None if following is None else MayFollow.copying(following),
        )


class OpenCaseList(WireModel):
    """Open transactions of a stream, the oldest first."""

    stream: str
    positions: dict[int, str] = Field(description="The position of each shard's log as of which the answer is exact.")
    time: Time | None = Field(description="Current event time; null before the first event.")
    open_count: Annotated[int, From("total")] = Field(description="The number of all open transactions.")
    matching_count: Annotated[int, From("matching")] = Field(
        description="The number that the filter selects, with those beyond the limit."
    )
    unnamed_count: Annotated[int, From("unnamed")] = Field(
        description="Open transactions whose key is not known, and which are not listed: an earlier release saved "
        "them, and no event has come since."
    )
    counts_by_last_type: Annotated[dict[str, int], From("by_last_type")] = Field(
        description="All open transactions by the type of their newest event, the 100 most frequent; empty: unknown."
    )
    items: list[OpenCaseModel]

    @classmethod
    def from_domain(cls, report: OpenCaseReport) -> Self:
        return cls.copying(report, items=[OpenCaseModel.from_domain(trace) for trace in report.traces])
