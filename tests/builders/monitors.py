"""Helpers for tests of monitors: events of a type, the state after a word, and verdicts by the reference."""

from __future__ import annotations

from constraints import ConstraintSet, Monitor, remainder_of
from nfa import EventClass, MonitorState, Query
from tests.references.alive import alive


def event(name: str) -> EventClass:
    """An event that shows only its type."""
    return EventClass(type=name)


def after(monitor: Monitor, word: str) -> MonitorState | None:
    """The state after events, given as words; None if one of them deviates."""
    state: MonitorState | None = monitor.start
    for name in word.split():
        if state is not None:
            state = monitor.step(state, event(name))
    return state


def verdicts(constraint_set: ConstraintSet, state: MonitorState, query: Query) -> list[bool]:
    """``Monitor.live`` by the reference."""
    return [alive(constraint_set, state.seen, remainder_of(query, one), state.settled).is_alive for one in query.states]
