"""The library engine over a list of events: no Spark, no Redis, no HTTP. What ``forestall match`` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from constraints import ConstraintSet, Monitor, explain_ending
from nfa import Deviation, Ending, Match, Matcher, MatcherStats, Pattern, match_order
from streams import Event, EventBatch, format_time

BATCH_ROWS = 20_000
_GUARD_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPair:
    """The first event after which a pattern can no longer match in a trace, and why."""

    ending: Ending
    form: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchReport:
    """Everything that was found in some events.

    Attributes:
        matches: Sorted by end, start, bindings.
        ended: In the order of the events.
        deviations: Traces that broke a constraint, in the order of the events.
        stats: Counts.
    """

    matches: tuple[Match, ...]
    ended: tuple[EndedPair, ...]
    deviations: tuple[Deviation, ...]
    stats: MatcherStats

    def to_document(self) -> dict[str, Any]:
        """The JSON contract of ``forestall match --output json``; fields are added to it, never changed."""
        return {
            "matches": [match_document(match) for match in self.matches],
            "ended": [
                {
                    "pattern": pair.ending.pattern,
                    "key": pair.ending.key,
                    "event": pair.ending.event_id,
                    "reason": pair.reason,
                }
                for pair in self.ended
            ],
            "deviations": [
                {"key": deviation.key, "event": deviation.event_id, "type": deviation.event_type}
                for deviation in self.deviations
            ],
            "stats": asdict(self.stats),
        }


def match_document(match: Match) -> dict[str, Any]:
    """One match in the form of the JSON contract."""
    return {
        "pattern": match.pattern,
        "key": match.key,
        "bindings": {alias: list(ids) for alias, ids in match.bindings.items()},
        "start": format_time(match.start_us),
        "end": format_time(match.end_us),
    }


def match_events(
    patterns: Sequence[Pattern],
    events: Sequence[Event],
    constraint_set: ConstraintSet | None = None,
    *,
    is_pruning: bool = True,
    progress: Callable[[int], None] | None = None,
) -> MatchReport:
    """Run patterns over events in their order.

    Args:
        patterns: With distinct names.
        events: In the order in which they are to be seen; every trace ends with them.
        constraint_set: What the traces keep to; its end events end a trace.
        is_pruning: Whether doomed runs are ended early; the matches are the same on traces that keep the constraints.
        progress: Told the number of events done after each batch.
    """
    end_events = constraint_set.end_events if constraint_set else frozenset()
    matcher = Matcher(end_events=end_events)
    for pattern in patterns:
        matcher.add_pattern(pattern.text)
    if constraint_set is not None and is_pruning:
        matcher.set_guard(_GUARD_VERSION, Monitor(constraint_set))
    matches: list[Match] = []
    endings: list[Ending] = []
    deviations: list[Deviation] = []
    for start in range(0, len(events), BATCH_ROWS):
        output = matcher.process(EventBatch.from_events(events[start : start + BATCH_ROWS]))
        matches += output.matches()
        endings += output.endings()
        deviations += output.deviations()
        if progress:
            progress(min(start + BATCH_ROWS, len(events)))
    return MatchReport(
        matches=tuple(sorted(matches, key=match_order)),
        ended=_explained(endings, matcher, constraint_set) if constraint_set else (),
        deviations=tuple(deviations),
        stats=matcher.stats,
    )


def _explained(endings: Sequence[Ending], matcher: Matcher, constraint_set: ConstraintSet) -> tuple[EndedPair, ...]:
    """Reasons for endings; traces that ended the same way share one."""

    @cache
    def reason(pattern: str, *circumstances: Any) -> Mapping[str, str]:
        explanation = explain_ending(constraint_set, matcher.patterns[pattern].query, *circumstances)
        return {"form": explanation.form, "reason": explanation.text}

    return tuple(
        EndedPair(
            ending=ending,
            **reason(ending.pattern, ending.state, ending.before, ending.after, ending.event_type),
        )
        for ending in endings
    )
