"""Open transactions on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field

from api.wire import WireModel
from service import OpenCaseReport
from streams import format_time


class BoundStepModel(WireModel):
    """An event that a partial match has bound."""

    alias: str
    event: str = Field(description="Its id.")
    time: str

    @classmethod
    def from_domain(cls, found: Mapping[str, Any]) -> Self:
        """The wire form of a bound event."""
        return cls(alias=found["alias"], event=found["event"], time=format_time(found["time_us"]))


class FurthestModel(WireModel):
    """The partial match of a pattern that has come furthest; of equally far ones the one with the newest events."""

    since: str = Field(description="Time of its earliest event.")
    bound: list[BoundStepModel] = Field(description="The newest 50 of its events, the oldest of them first.")
    bound_events: int = Field(description="The number of its events.")
    waits_for: list[str] = Field(
        description="The steps that would take it on, at most 10. A `NOT` step: the match is complete and waits for "
        "that not to come."
    )
    expires: str | None = Field(description="When WITHIN ends it.")

    @classmethod
    def from_domain(cls, found: Mapping[str, Any]) -> Self:
        """The wire form of a partial match."""
        expires_us = found["expires_us"]
        return cls(
            since=format_time(found["since_us"]),
            bound=[BoundStepModel.from_domain(step) for step in found["bound"]],
            bound_events=found["bound_events"],
            waits_for=found["waits_for"],
            expires=None if expires_us is None else format_time(expires_us),
        )


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
    def from_domain(cls, found: Mapping[str, Any]) -> Self:
        """The wire form of a pattern in a transaction."""
        furthest = found["furthest"]
        return cls(**{**found, "furthest": None if furthest is None else FurthestModel.from_domain(furthest)})


class MayFollow(WireModel):
    """Which event types may come next by the constraints and the workflow, by type alone."""

    possible: list[str]
    excluded: list[str]


class OpenCaseModel(WireModel):
    """An open transaction."""

    key: str
    since: str = Field(description="Time of its first event.")
    newest: str = Field(description="Time of its newest event.")
    events: int | None = Field(description="The number of its events; null where the first ones were not counted.")
    constraints: Literal["kept", "deviating", "complete", "none"] = Field(
        description="'kept': it keeps the constraints so far; 'deviating': it broke one; 'complete': it is over by "
        "the workflow or an end event, and nothing may follow; 'none': it follows no constraints."
    )
    constraints_version: int | None = Field(description="Version of the set that it keeps.")
    patterns: list[CasePatternModel] = Field(
        description="At most 20: those with partial matches first, the one that was asked for before all."
    )
    more_patterns: int = Field(description="The number of further patterns.")
    following: MayFollow | None = Field(
        description="Of the types that the stream or its constraints name, at most 50; no possible ones where it is "
        "over or has broken the constraints; null where a shard had too many different ones to examine."
    )

    @classmethod
    def from_domain(cls, found: Mapping[str, Any]) -> Self:
        """The wire form of an open transaction."""
        following = found["following"]
        return cls(
            key=found["key"],
            since=format_time(found["first_us"]),
            newest=format_time(found["newest_us"]),
            events=found["events"],
            constraints=found["constraints"],
            constraints_version=found["version"],
            patterns=[CasePatternModel.from_domain(pattern) for pattern in found["patterns"]],
            more_patterns=found["more_patterns"],
            following=None if following is None else MayFollow(**following),
        )


class OpenCaseList(WireModel):
    """Open transactions of a stream, the oldest first."""

    stream: str
    positions: dict[int, str] = Field(description="By shard: the place of the log that this is true of.")
    time: str | None = Field(description="How far event time has come; null before the first event.")
    open: int = Field(description="The number of all open transactions.")
    matching: int = Field(description="The number that the filter selects, with those beyond the limit.")
    unnamed: int = Field(
        description="Open transactions whose key is not known, and which are not listed: an earlier release saved "
        "them, and no event has come since."
    )
    traces: list[OpenCaseModel]

    @classmethod
    def from_domain(cls, report: OpenCaseReport) -> Self:
        """The wire form of a report."""
        return cls(
            stream=report.stream,
            positions=dict(report.positions),
            time=None if report.time_us is None else format_time(report.time_us),
            open=report.total,
            matching=report.matching,
            unnamed=report.unnamed,
            traces=[OpenCaseModel.from_domain(trace) for trace in report.traces],
        )
