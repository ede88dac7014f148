"""Transactions on the wire."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from api.wire import WireModel
from service import NextType, PatternInTrace, TraceReport
from streams import Event, format_time


class SeenEvent(WireModel):
    """An event of a transaction."""

    id: str
    type: str
    time: str

    @classmethod
    def from_domain(cls, event: Event) -> Self:
        """The wire form of an event."""
        return cls(id=event.id, type=event.type, time=format_time(event.time_us))


class EndedModel(WireModel):
    """Why a pattern can no longer match in a transaction."""

    event: str = Field(description="Id of the event that ended it.")
    event_type: str
    time: str
    form: str = Field(description="Form of the reason: p1 to p5, rule, workflow; end is the transaction's own end.")
    reason: str


class TracePattern(WireModel):
    """The state of a pattern in a transaction."""

    name: str
    version: int
    state: Literal["alive", "waiting", "ended", "closed", "paused", "suspended", "other-key"] = Field(
        description="'alive': it holds partial matches; 'waiting': it has bound nothing and may still match; 'ended': "
        "it can no longer match; 'closed': the transaction is over; 'paused', 'suspended': it sees nothing; "
        "'other-key': it is matched by a further key of the stream."
    )
    matched: int = Field(description="How often it has matched.")
    matches: list[dict[str, list[str]]] = Field(description="Event ids by alias, of the newest 20 matches.")
    partial_matches: int = Field(description="How many events are bound in partial matches, each for each of them.")
    ended: EndedModel | None

    @classmethod
    def from_domain(cls, found: PatternInTrace) -> Self:
        """The wire form of how a pattern stands."""
        pair = found.ended
        ended = None
        if pair is not None:
            ended = EndedModel(
                event=pair.ending.event_id,
                event_type=pair.ending.event_type,
                time=format_time(pair.ending.time_us),
                form=pair.form,
                reason=pair.reason,
            )
        return cls(
            name=found.name,
            version=found.version,
            state=found.state,
            matched=found.matched,
            matches=[{alias: list(ids) for alias, ids in match.items()} for match in found.matches],
            partial_matches=found.partial_matches,
            ended=ended,
        )


class BreachModel(WireModel):
    """The event by which a transaction broke the constraints."""

    event: str
    event_type: str
    time: str
    constraints: list[str]
    reason: str


class FollowingModel(WireModel):
    """What an event of a type would mean, by its type alone."""

    event_type: str
    possible: bool = Field(description="Whether it may come without breaking the constraints.")
    breaks: str | None = Field(description="Why it must not come.")
    ends: dict[str, str] = Field(description="The patterns that it would end, each with the reason.")

    @classmethod
    def from_domain(cls, found: NextType) -> Self:
        """The wire form of what a type would mean."""
        return cls(
            event_type=found.event_type, possible=found.breaks is None, breaks=found.breaks, ends=dict(found.ends)
        )


class TraceModel(WireModel):
    """The last transaction of a key, as far as the log holds it."""

    stream: str
    key: str
    positions: dict[int, str] = Field(description="By shard: up to which entry of the log this holds.")
    complete: bool = Field(description="Whether the beginning of the log was there; else that of this may be missing.")
    open: bool = Field(description="Whether the transaction is still open, according to the log.")
    constraints: int | None = Field(description="Version of the constraint set that it follows.")
    total_events: int
    earlier_events: int = Field(description="Events of transactions of this key that were over before.")
    events: list[SeenEvent] = Field(description="The newest 200, the oldest of them first.")
    patterns: list[TracePattern]
    deviation: BreachModel | None
    following: list[FollowingModel] = Field(
        description="For each type that the stream or its constraints name, at most 50, and fewer where it is long; "
        "none where the transaction is over or has broken the constraints."
    )

    @classmethod
    def from_domain(cls, report: TraceReport) -> Self:
        """The wire form of a report."""
        found = report.deviation
        breach = None
        if found is not None:
            breach = BreachModel(
                event=found.deviation.event_id,
                event_type=found.deviation.event_type,
                time=format_time(found.deviation.time_us),
                constraints=[str(part) for part in found.reason.constraints],
                reason=found.reason.text,
            )
        return cls(
            stream=report.stream,
            key=report.key,
            positions=dict(report.positions),
            complete=report.is_complete,
            open=report.is_open,
            constraints=report.constraints_version,
            total_events=report.total,
            earlier_events=report.earlier_events,
            events=[SeenEvent.from_domain(event) for event in report.events],
            patterns=[TracePattern.from_domain(pattern) for pattern in report.patterns],
            deviation=breach,
            following=[FollowingModel.from_domain(found) for found in report.following],
        )
