"""Partial matches of a transaction that ended without a match: the last one of each pattern, and why it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from constraints import ConstraintSet
from nfa import CasePattern, Furthest, Pattern
from service.trials.matching import MatchOptions, match_stepwise, shown_time
from streams import Event

_MOST_EVENTS = 300
_AT_ONCE = 20  # patterns that an answer about open traces shows


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenMatch:
    """How the last partial match of a pattern ended without a match.

    Attributes:
        event: The event that ended it; None where time passed or the transaction was idle.
        bound: Event ids by alias.
        reason: In words.
    """

    event: Event | None
    bound: Mapping[str, tuple[str, ...]]
    reason: str


def broken_matches(
    patterns: Sequence[Pattern], events: Sequence[Event], constraint_set: ConstraintSet, options: MatchOptions
) -> dict[str, BrokenMatch]:
    """By pattern the last partial match, where it ended without a match and none has begun since.

    Transactions of more than 300 events are not examined.

    Args:
        patterns: With distinct names.
        events: Of one transaction, in the order of the log.
        constraint_set: What the transaction keeps to.
        options: How patterns are run.
    """
    if len(events) - options.first > _MOST_EVENTS:
        return {}
    found: dict[str, BrokenMatch] = {}
    events, options = _in_order(events, options)
    for start in range(0, len(patterns), _AT_ONCE):
        found |= _broken(patterns[start : start + _AT_ONCE], events, constraint_set, options)
    return found


def _broken(
    patterns: Sequence[Pattern], events: Sequence[Event], constraint_set: ConstraintSet, options: MatchOptions
) -> dict[str, BrokenMatch]:
    last: dict[str, Furthest] = {}
    broken: dict[str, BrokenMatch] = {}
    ends = options.end_events | constraint_set.trace_ends
    for event, states, matched in match_stepwise(patterns, events, constraint_set, options):
        for name in list(last):
            if name not in states:
                furthest = last.pop(name)
                if name not in matched:
                    broken[name] = _end_of(furthest, event, ends, options)
        for name, furthest in _held(states):
            last[name] = furthest
            broken.pop(name, None)
        for name in matched:
            broken.pop(name, None)
    return broken


def _held(states: Mapping[str, CasePattern]) -> Iterator[tuple[str, Furthest]]:
    return ((name, one.furthest) for name, one in states.items() if one.furthest is not None)


def _end_of(furthest: Furthest, event: Event | None, ends: frozenset[str], options: MatchOptions) -> BrokenMatch:
    """How a partial match ended by an event, or by time where no event came."""
    bound: dict[str, tuple[str, ...]] = {}
    for step in furthest.bound:
        bound[step.alias] = (*bound.get(step.alias, ()), step.event_id)
    words = " ".join(f"{alias}={','.join(ids)}" for alias, ids in bound.items())
    now_us = options.now_us if event is None else event.time_us
    due_us = furthest.expires_us
    if due_us is not None and now_us is not None and now_us >= due_us:
        return BrokenMatch(
            event=None, bound=bound, reason=f"WITHIN ended the partial match {words} at {shown_time(due_us)}"
        )
    if event is None:
        return BrokenMatch(event=None, bound=bound, reason=f"the idle transaction ended with the partial match {words}")
    how = "ended the transaction and" if event.type in ends else "ended"
    return BrokenMatch(event=event, bound=bound, reason=f"{event.type} {event.id} {how} its partial match {words}")


def _in_order(events: Sequence[Event], options: MatchOptions) -> tuple[Sequence[Event], MatchOptions]:
    """The events in the order in which they are matched, and how far time has come.

    Where the stream has a lateness: by time, up to the watermark, without late events that are set aside.
    """
    lateness_us = options.lateness_us
    if lateness_us is None:
        return events, options
    kept, newest_us = [], events[0].time_us
    for event in events:
        if options.late == "process" or event.time_us >= newest_us - lateness_us:
            kept.append(event)
        newest_us = max(newest_us, event.time_us)
    watermark_us = max(newest_us, options.now_us or newest_us) - lateness_us
    kept = sorted((event for event in kept if event.time_us <= watermark_us), key=lambda event: event.time_us)
    return kept, replace(options, lateness_us=None, now_us=watermark_us)
