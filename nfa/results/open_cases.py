"""Reports of open traces: the progress of each pattern, and the events for which it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nfa.guards.protocol import MonitorState

CaseState: TypeAlias = Literal["open", "matching", "deviating"]
Keeping: TypeAlias = Literal["kept", "deviating", "none"]
Holding: TypeAlias = Literal["alive", "waiting", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseQuery:
    """A query for open traces. A trace is selected if it satisfies all conditions.

    Attributes:
        state: ``open`` selects all traces, ``matching`` traces in which some pattern has a partial match, ``deviating``
            traces that broke a constraint.
        older_than_us: Only traces whose first event is older than the newest time by more than this.
        waits_for: Only traces in which the furthest partial match of a pattern waits for this type.
        limit: Maximum number of traces in the result. Traces with the oldest first events are preferred.
    """

    pattern: str | None = None
    state: CaseState = "open"
    older_than_us: int = 0
    key: str | None = None
    last_type: str | None = None
    waits_for: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class BoundStep:
    """An event bound by a partial match."""

    alias: str
    event_id: str
    time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Furthest:
    """The partial match of a pattern with the most progress. Of several, the match with the newest events is chosen.

    Attributes:
        waits_for: Texts of the steps that would extend the match or, if the match is pending, of ``NOT`` steps.
    """

    bound: Sequence[BoundStep]
    waits_for: Sequence[str]
    expires_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePattern:
    """The progress of a pattern in an open trace.

    The pattern is ``alive`` if it has partial matches, ``waiting`` if it has no bound event and may still match, and
    ``ended`` if it can no longer match.
    """

    name: str
    version: int
    state: Holding
    partial_matches: int = 0
    furthest: Furthest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCase:
    """An open trace.

    Attributes:
        last_type: Type of its newest event. None if an earlier release saved the state, and no event has occurred
            since.
        events: Number of its events, or None if its first events were not counted.
        keeping: ``kept`` if the trace conforms to its guard so far, ``deviating`` if it broke a constraint, ``none`` if
            it has no guard.
        guard: Version of its guard, and the monitor state. None unless ``kept``.
        patterns: At most 20 patterns: the requested one, then patterns with partial matches, then others in the order
            of registration. Further patterns are only counted.
    """

    key: str
    first_us: int
    newest_us: int
    last_type: str | None
    events: int | None
    keeping: Keeping
    guard: tuple[int, MonitorState] | None
    patterns: Sequence[CasePattern]
    more_patterns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCases:
    """The result of a query for open traces: the selected traces up to the limit, oldest first.

    ``matching`` counts all selected traces, and ``total`` all open traces. ``unnamed`` counts the open traces with
    unknown keys. An earlier release saved these traces, and no event has occurred in them since. ``by_last_type``
    counts the open traces by the type of their newest event. The type is empty if it is unknown.
    """

    cases: Sequence[OpenCase]
    matching: int
    total: int
    unnamed: int
    by_last_type: Mapping[str, int]
