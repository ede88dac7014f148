"""Finds, for each pattern, the last partial match of a transaction that ended without a match, and why it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from nfa import CasePattern, Furthest
from service.runs import RunPlan
from service.runs.stream_run import Change, StreamRun
from streams import Event, EventBatch, StreamDeclaration, StreamOn, format_time, shown_time

MOST_EVENTS = 300
"""The number of events that a pattern may see for its partial matches to be examined."""
MOST_PATTERNS = 20
"""The number of patterns in an answer about open traces."""

Broken: TypeAlias = dict[str, Any]
"""How a partial match ended, in the form of ``broken`` in ``GET /v1/traces/{stream}/{key}``."""
_State: TypeAlias = tuple[Event | None, Mapping[str, CasePattern], frozenset[str]]
"""An event or None, then the partial matches by pattern, and the names of the patterns that the event completed."""


def broken_matches(
    plan: RunPlan, events: Sequence[Event], changes: Sequence[Change], *, first: int, now_us: int | None
) -> dict[str, Broken]:
    """Explain how the last partial match of each pattern ended, unless it became a match.

    The plan has one stream, and at most ``MOST_PATTERNS``, with the same key. ``events`` are one transaction, in log
    order. ``changes`` start the patterns at index ``first``, so that they see at most ``MOST_EVENTS``. ``now_us`` is
    the event time.
    """
    ((stream, declaration),) = plan.declarations.items()
    events, now_us = _in_order(events, declaration, now_us)
    declared = {stream: replace(declaration, lateness=None, late="dead_letter")}
    ends = set[str]().union(*(constraint_set.trace_ends for constraint_set in plan.sets.values()))
    in_force = [record.declaration for _, record in changes if isinstance(record, StreamOn)]
    ends.update((in_force or [declaration])[-1].end_events)
    end = next((event for event in events[-1:] if event.type in ends), None)
    return _broken(_states(replace(plan, declarations=declared), events, changes, first, now_us), end, now_us)


def _states(
    plan: RunPlan, events: Sequence[Event], changes: Sequence[Change], first: int, now_us: int | None
) -> Iterator[_State]:
    """Yield the state of the patterns after each event from index ``first`` on, and a last state at ``now_us``."""
    (patterns,) = plan.patterns.values()
    route = patterns[0][0].route
    run = StreamRun(plan, lists=("matches",), follows_all=True, changes=changes)
    before, after = events[:first], events[first:]
    run.feed(EventBatch.from_events(before), route=route)
    for event in (*after, None):
        if event is not None:
            run.feed(EventBatch.from_events([event]), route=route)
        elif now_us is not None:
            run.pass_time(now_us)
        yield event, run.partial_matches(route), run.matched()


def _broken(states: Iterable[_State], end: Event | None, now_us: int | None) -> dict[str, Broken]:
    last: dict[str, Furthest] = {}
    broken: dict[str, Broken] = {}
    for event, alive, matched in states:
        for name in list(last):
            if name not in alive:
                furthest = last.pop(name)
                if name not in matched:
                    broken[name] = _end_of(furthest, event, end, now_us)
        for name, case_pattern in alive.items():
            if case_pattern.furthest is not None:
                last[name] = case_pattern.furthest
                broken.pop(name, None)
        for name in matched:
            broken.pop(name, None)
    return broken


def _end_of(furthest: Furthest, event: Event | None, end: Event | None, now_us: int | None) -> Broken:
    """Describe how an event ended a partial match, or how passing time ended it if ``event`` is None.

    ``end`` is the event that ended the transaction, if one did.
    """
    bound: dict[str, list[str]] = {}
    for step in furthest.bound:
        bound.setdefault(step.alias, []).append(step.event_id)
    words = " ".join(f"{alias}={','.join(ids)}" for alias, ids in bound.items())
    now_us = now_us if event is None else event.time_us
    due_us = furthest.expires_us
    if due_us is not None and now_us is not None and now_us >= due_us:
        reason = f"WITHIN ended the partial match {words} at {shown_time(due_us)}"
    elif event is not None:
        how = "ended the transaction and" if event is end else "ended"
        reason = f"{event.type} {event.id} {how} its partial match {words}"
        ended_by = {"event": event.id, "event_type": event.type, "time": format_time(event.time_us)}
        return {**ended_by, "bindings": bound, "reason": reason}
    else:
        reason = f"the transaction ended with the partial match {words}"
    return {"event": None, "event_type": None, "time": None, "bindings": bound, "reason": reason}


def _in_order(
    events: Sequence[Event], declaration: StreamDeclaration, now_us: int | None
) -> tuple[Sequence[Event], int | None]:
    """Return the events in the order of matching, and the event time that matching has reached.

    If the stream has a lateness, the events up to the watermark are sorted by time. Late events are left out, unless
    the stream processes them.
    """
    lateness_us = declaration.lateness_us
    if lateness_us is None:
        return events, now_us
    punctual_events, newest_us = [], events[0].time_us
    for event in events:
        if declaration.late == "process" or event.time_us >= newest_us - lateness_us:
            punctual_events.append(event)
        newest_us = max(newest_us, event.time_us)
    watermark_us = max(newest_us, now_us or newest_us) - lateness_us
    return sorted(
        (punctual_event for punctual_event in punctual_events if punctual_event.time_us <= watermark_us),
        key=lambda punctual_event: punctual_event.time_us,
    ), watermark_us
