"""Emission (section 5): detection time, order, after-match rule, cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from nfa.syntax import After, Scalar
from tests.references.patterns.attempts import Attempt, Bindings
from tests.references.patterns.layout import Greedy, Negation
from tests.references.patterns.rules import deadline_us
from tests.references.patterns.traces import Trace


class DecidedBy(IntEnum):
    """What decides a match; causes of equal time are in the order in which they become known."""

    DEADLINE = 0  # before the events of this time
    EVENT = 1  # one of them alone, under ties: log
    TIME = 2  # the absence of other events of this time


@dataclass(frozen=True, slots=True, order=True)
class Detection:
    """The time when a match, or one of its conditions, is decided, and by what.

    The end of the input decides after everything else of its time. ``place`` is that of the event that decides alone;
    otherwise 0.
    """

    time_us: int
    is_at_end: bool = False
    by: DecidedBy = DecidedBy.TIME
    place: int = 0

    @property
    def order(self) -> tuple[bool, int, DecidedBy, int]:
        """Sort key; decisions by the end of the input come last."""
        return self.is_at_end, self.time_us, self.by, self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMatch:
    """A match by places in its trace, in order; it spans the times of its earliest and latest bound event.

    ``detected`` is when its last trailing condition is decided; without one, at its end.
    """

    bindings: Mapping[str, tuple[int, ...]]
    start_us: int
    end_us: int
    detected: Detection
    returns: Mapping[str, Scalar]

    @property
    def detected_us(self) -> int:
        return self.detected.time_us

    @property
    def places(self) -> list[int]:
        return sorted(place for places in self.bindings.values() for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a trace, and the time known to have passed.

    Every event before ``watermark_us`` has been seen; None: all time has passed. ``ended_us`` is the time of the end
    event. None: the trace ended with the input; then conditions with a deadline are decided at the deadline, others at
    the trace's last event.
    """

    is_open: bool = False
    ended_us: int | None = None
    watermark_us: int | None = None

    def has_passed(self, time_us: int, *, is_deadline: bool) -> bool:
        """Whether no earlier event can come (for a deadline), or no event of the time or before it (otherwise)."""
        if self.watermark_us is None:
            return True
        return self.watermark_us >= time_us if is_deadline else self.watermark_us > time_us


def detection_of(attempt: Attempt, ended: Ended) -> Detection | None:
    """Detection (5.1); None while a trailing condition is undecided."""
    every: list[Negation | Greedy] = [*attempt.layout.negations, *attempt.layout.greedies]
    trailing = [condition for condition in every if not condition.ahead]
    if not trailing and attempt.trace.ties == "log":
        return Detection(attempt.end_us, by=DecidedBy.EVENT, place=max(attempt.bound.values()))
    if not ended.has_passed(attempt.end_us, is_deadline=False):
        return None
    latest = Detection(attempt.end_us)
    for condition in trailing:
        decided = _decided(attempt, condition, ended)
        if decided is None:
            return None
        latest = max(latest, decided)
    return latest


def _decided(attempt: Attempt, condition: Negation | Greedy, ended: Ended) -> Detection | None:
    found = []
    deadline = deadline_us(attempt, condition)
    if deadline is not None and ended.has_passed(deadline, is_deadline=True):
        found.append(Detection(deadline, by=DecidedBy.DEADLINE))
    if not ended.is_open and ended.ended_us is not None:
        found.append(Detection(ended.ended_us))
    if not ended.is_open and deadline is None:
        found.append(Detection(attempt.trace.events[-1].time_us, is_at_end=ended.ended_us is None))
    mode = condition.gap.mode if isinstance(condition, Negation) else condition.mode
    following = [attempt.trace.time(place) for place in attempt.trace.after(attempt.bound.values())]
    if mode == "strict" and following and ended.has_passed(min(following), is_deadline=False):
        found.append(Detection(min(following)))
    return min(found, default=None)


def emission_order(trace: Trace, match: FoundMatch) -> tuple[Any, ...]:
    """Sort key of alerts (5.2)."""
    events = sorted(trace.rank(place) for place in match.places)
    bindings = sorted((alias, [trace.rank(place) for place in places]) for alias, places in match.bindings.items())
    return *match.detected.order, match.end_us, match.start_us, events[0], -len(events), events, bindings


def kept_matches(after: After, trace: Trace, matches: Iterable[FoundMatch]) -> list[FoundMatch]:
    """The after-match rule (5.3), over matches in detection order."""
    kept: list[FoundMatch] = []
    for match in matches:
        if all(_is_compatible(after, trace, match, earlier) for earlier in kept):
            kept.append(match)
    return kept


def _is_compatible(after: After, trace: Trace, match: FoundMatch, kept: FoundMatch) -> bool:
    first, kept_first = _first(trace, match), _first(trace, kept)
    match after.rule:
        case "none":
            return True
        case "once_per_key":
            return False
        case "skip_to_next":
            return first != kept_first
        case "skip_past_last":
            return trace.is_after_all(kept.places, first)
        case "skip_to_first" | "skip_to_last":
            places = kept.bindings.get(after.alias or "", ())
            target = (places[0] if after.rule == "skip_to_first" else places[-1]) if places else kept_first
            if target == kept_first:
                return first != kept_first
            return first == target or trace.is_before(target, first)


def _first(trace: Trace, match: FoundMatch) -> int:
    return min(match.places, key=trace.rank)


def capped(matches: Iterable[FoundMatch], limit: int) -> tuple[list[FoundMatch], int]:
    """The first ``limit`` matches of each moment of detection (5.5, 5.6), and the number of others."""
    seen: Counter[tuple[bool, int, DecidedBy, int]] = Counter()
    kept, dropped = [], 0
    for match in matches:
        seen[match.detected.order] += 1
        if seen[match.detected.order] <= limit:
            kept.append(match)
        else:
            dropped += 1
    return kept, dropped


def is_prefix(one: Bindings, other: Bindings) -> bool:
    """Whether every alias of one binding has a prefix of its events in the other."""
    longer = dict(other)
    return all(longer.get(alias, ())[: len(places)] == places for alias, places in one)
