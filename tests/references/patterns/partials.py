"""Timeouts (section 5.4): partial matches that are alive when WITHIN ends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nfa.syntax import Pattern
from streams import Event
from tests.references.patterns.attempts import Attempt, Bindings
from tests.references.patterns.bindings import begun_bindings
from tests.references.patterns.emission import Ended, is_prefix
from tests.references.patterns.rules import RULES, RULES_OF_PARTS, is_kept_by
from tests.references.patterns.traces import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPartial:
    """A partial match that its window ended, with the places of the bound events in order, by alias.

    ``due_us``, the time of its report, is the end of the window.
    """

    bindings: Mapping[str, tuple[int, ...]]
    start_us: int
    due_us: int


def timeouts_of(pattern: Pattern, trace: Trace, matches: Iterable[Bindings], ended: Ended) -> list[FoundPartial]:
    """The maximal partial matches that were alive at the end of the window, once the watermark has reached it."""
    living: dict[Bindings, tuple[int, int]] = {}
    partials: set[Bindings] = set()
    for attempt in begun_bindings(pattern, trace):
        end_us = attempt.window_end_us
        begun = attempt if end_us is None else replace(attempt, horizon_us=end_us - 1)
        if is_kept_by(RULES, begun):
            partials.add(begun.bindings())
            if end_us is not None and is_alive(begun, end_us - 1):
                living[begun.bindings()] = begun.start_us, end_us
    found = [
        FoundPartial(bindings=dict(bindings), start_us=start_us, due_us=end_us)
        for bindings, (start_us, end_us) in living.items()
        if ended.has_passed(end_us, is_deadline=True)
        and not any(is_prefix(bindings, match) for match in matches)
        and not any(is_prefix(bindings, other) for other in partials if other != bindings)
    ]
    return sorted(found, key=lambda partial: (partial.due_us, sorted(partial.bindings.items())))


def is_alive(attempt: Attempt, last_us: int) -> bool:
    """Whether a step could still take an event at the end of the window's last microsecond."""
    past = tuple(event for event in attempt.trace.events if event.time_us <= last_us)
    supposed = Event(id="supposed", type="supposed", time_us=last_us, key="supposed")
    trace = replace(attempt.trace, events=(*past, supposed), clocks=())
    return any(
        is_kept_by(
            RULES_OF_PARTS,
            replace(attempt, trace=trace, bound={**attempt.bound, number: len(past)}, ghost=len(past)),
        )
        for number, occurrence in enumerate(attempt.layout.occurrences)
        if not occurrence.is_bound
    )
