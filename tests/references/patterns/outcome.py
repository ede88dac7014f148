"""The executable meaning of patterns: the outcome of a pattern on a trace, and on a stream of traces.

The standard for the kernels: slow and obvious. This folder was written from sections 3 to 6 of ``docs/semantics.md``
alone, over the syntax tree: skeletons (``skeletons``), their conditions (``layout``), distinct events for their
occurrences (``bindings``), each rule of section 4.3 on the finished tree (``rules``), emission (``emission``) and
timeouts (``partials``). Only the definition of JSON values is shared with the matcher.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from nfa.results.batch import Match, match_order
from nfa.syntax import Pattern
from streams import Event, Ties
from tests.references.patterns.attempts import Bindings, finished_scope
from tests.references.patterns.bindings import bindings_of
from tests.references.patterns.emission import (
    Detection,
    Ended,
    FoundMatch,
    capped,
    detection_of,
    emission_order,
    kept_matches,
)
from tests.references.patterns.partials import FoundPartial, timeouts_of
from tests.references.patterns.traces import Split, Trace, split_traces
from tests.references.patterns.values import value_of

LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceResult:
    """Result of a pattern for a trace, in order of emission; timeouts are in order of ``due_us``.

    ``dropped`` is the number of matches beyond the cap.
    """

    matches: list[FoundMatch]
    timeouts: list[FoundPartial]
    dropped: int


def reference_outcome(
    pattern: Pattern,
    trace: Sequence[Event],
    *,
    ties: Ties = "log",
    is_open: bool = False,
    watermark_us: int | None = None,
    limit: int = LIMIT,
    open_us: Collection[int] = (),
) -> ReferenceResult:
    """The result of a pattern that the front end accepts for one trace in log order, times not decreasing.

    A trace that is not open has ended with the input. The watermark of an open trace is by default the time of its last
    event; ``limit`` is the cap for a pattern without LIMIT, ``open_us`` is the business time.
    """
    whole = Trace(tuple(trace), ties, open_us=frozenset(open_us))
    if not is_open:
        return outcome_of(pattern, whole, Ended(), limit=limit)
    seen_us = trace[-1].time_us if watermark_us is None and trace else watermark_us
    return outcome_of(pattern, whole, Ended(is_open=True, watermark_us=seen_us), limit=limit)


def outcome_of(pattern: Pattern, trace: Trace, ended: Ended, *, limit: int = LIMIT) -> ReferenceResult:
    """The result of a pattern for one trace, given the end of the trace."""
    every, found = _found(pattern, trace, ended)
    ordered = sorted(found, key=lambda match: emission_order(trace, match))
    chosen = kept_matches(pattern.after, trace, ordered)
    kept, dropped = capped(chosen, limit if pattern.limit is None else pattern.limit)
    timeouts = timeouts_of(pattern, trace, every, ended) if pattern.timeouts else []
    return ReferenceResult(matches=kept, timeouts=timeouts, dropped=dropped)


def reference_matches(
    patterns: Iterable[Pattern],
    events: Iterable[Event],
    end_events: Collection[str] = (),
    *,
    ties: Ties = "log",
    is_open: bool = False,
) -> list[Match]:
    """All matches of some patterns in a stream in log order, sorted by ``match_order``.

    If ``is_open``, traces without end event continue after the last event of the stream.
    """
    stream = list(events)
    last_us = max((event.time_us for event in stream), default=0)
    found = []
    for pattern in patterns:
        for split in split_traces(pattern, stream, end_events):
            goes_on = is_open and split.ended_us is None
            ended = Ended(is_open=goes_on, ended_us=split.ended_us, watermark_us=last_us if goes_on else None)
            outcome = outcome_of(pattern, Trace(split.events, ties, split.clocks), ended)
            found += [_match(pattern, split, match) for match in outcome.matches]
    return sorted(found, key=match_order)


def _found(pattern: Pattern, trace: Trace, ended: Ended) -> tuple[set[Bindings], list[FoundMatch]]:
    """All matches, and the decided ones; of several bindings with an equal map the first detected counts."""
    every: set[Bindings] = set()
    detected: dict[Bindings, Detection] = {}
    intervals: dict[Bindings, tuple[int, int]] = {}
    for attempt in bindings_of(pattern, trace):
        bindings = attempt.bindings()
        if pattern.where is not None and value_of(pattern.where, finished_scope(bindings, trace)) is not True:
            continue
        every.add(bindings)
        decided = detection_of(attempt, ended)
        if decided is not None:
            detected[bindings] = min(decided, detected.get(bindings, decided), key=lambda one: one.order)
            intervals[bindings] = attempt.start_us, attempt.end_us
    found = []
    for bindings, decided in detected.items():
        scope = finished_scope(bindings, trace)
        start_us, end_us = intervals[bindings]
        found.append(
            FoundMatch(
                bindings=dict(bindings),
                start_us=start_us,
                end_us=end_us,
                detected=decided,
                returns={column.name: value_of(column.expression, scope) for column in pattern.returns},
            )
        )
    return every, found


def _match(pattern: Pattern, split: Split, found: FoundMatch) -> Match:
    return Match(
        pattern=pattern.name,
        version=1,
        key=split.events[0].key,
        bindings={alias: tuple(split.events[place].id for place in places) for alias, places in found.bindings.items()},
        start_us=found.start_us,
        end_us=found.end_us,
        detected_us=found.detected_us,
        returns=found.returns,
    )
