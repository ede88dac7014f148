"""Open traces as they are reported: how far each pattern is in them, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nfa.guards.protocol import MonitorState

CaseState: TypeAlias = Literal["open", "matching", "deviating"]
Keeping: TypeAlias = Literal["kept", "deviating", "none"]
Holding: TypeAlias = Literal["alive", "waiting", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseQuery:
    """Which open traces are wanted.

    Attributes:
        pattern: Only those in which it has a partial match.
        state: ``open``: all; ``matching``: some pattern has a partial match; ``deviating``: it broke a constraint.
        older_than_us: Only those whose first event is older than that, by the newest time.
        key: Only that of this correlation key.
        last_type: Only those whose newest event has this type.
        waits_for: Only those in which the furthest partial match of a pattern waits for this type.
        limit: At most this many, those with the oldest first event.
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
    """An event that a partial match has bound."""

    alias: str
    event_id: str
    time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Furthest:
    """The partial match of a pattern that has come furthest; of equally far ones the one with the newest events.

    Attributes:
        bound: Its events, in the order in which they were bound.
        waits_for: The steps that would take it on, as pattern text; ``NOT`` steps that a complete match waits for.
        expires_us: When its WITHIN ends it; None without one.
    """

    bound: Sequence[BoundStep]
    waits_for: Sequence[str]
    expires_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePattern:
    """A pattern in an open trace.

    Attributes:
        name: Of the pattern.
        version: Of the pattern.
        state: ``alive``: it holds partial matches; ``waiting``: it has bound nothing and may still match; ``ended``: it
            can no longer match.
        partial_matches: The number of partial matches.
        furthest: The one that has come furthest.
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
        key: Its correlation key.
        first_us: Time of its first event.
        newest_us: Time of its newest event.
        last_type: Type of its newest event; None where an earlier release has saved the state, and none has come since.
        events: Number of its events; None where the first ones were not counted.
        keeping: ``kept``: it keeps the constraints of its guard so far; ``deviating``: it broke one; ``none``: it
            follows none.
        guard: Version of its guard, and the monitor state; None where it follows none, or has broken one.
        patterns: At most 20: those that hold partial matches first, then others in the order of their registration;
            the one that was asked about before all.
        more_patterns: The number of further patterns.
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
    """The open traces of a matcher, or some of them.

    Attributes:
        cases: Those that are wanted, the oldest first.
        matching: The number that the query selects, with or without those beyond its limit.
        total: The number of all open traces.
        unnamed: Open traces whose key is not known: an earlier release saved them, and no event has come since.
    """

    cases: Sequence[OpenCase]
    matching: int
    total: int
    unnamed: int
