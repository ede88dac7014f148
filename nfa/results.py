"""What the matcher found in one batch: columns inside, values on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.automaton import Automaton
from nfa.guards import Seen
from nfa.kernels.matching import DROPPED, MATCH_HEADER, NIL
from nfa.query import PatternState
from streams import EventBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One combination of events that satisfies a pattern.

    Attributes:
        pattern: Name.
        version: Of the pattern.
        key: Correlation key of the trace.
        term: The alternative of the pattern that matched; not part of equality.
        bindings: Ids of the bound events by alias, aliases in the order of the text.
        start_us: Time of the earliest bound event.
        end_us: Time of the latest.
    """

    pattern: str
    version: int
    key: str
    term: int = field(compare=False)
    bindings: Mapping[str, tuple[str, ...]]
    start_us: int
    end_us: int


def match_order(match: Match) -> tuple[Any, ...]:
    """Sort key of a result: end, start, bindings, then pattern and key."""
    return match.end_us, match.start_us, sorted(match.bindings.items()), match.pattern, match.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The first event after which a pattern can no longer match in a trace.

    Attributes:
        pattern: Name.
        version: Of the pattern.
        key: Correlation key of the trace.
        event_id: The event that dooms it.
        event_type: Its type.
        time_us: Its time.
        guard_version: The guard that knows why.
        before: Monitor state before the event.
        after: Monitor state after it.
        state: The furthest partial match that it ended.
    """

    pattern: str
    version: int
    key: str
    event_id: str
    event_type: str
    time_us: int
    guard_version: int
    before: Seen
    after: Seen
    state: PatternState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The first event of a trace that its guard did not allow; from here on the trace is not pruned.

    Attributes:
        key: Correlation key of the trace.
        event_id: The event.
        event_type: Its type.
        time_us: Its time.
        guard_version: The guard that did not allow it.
        before: Monitor state before the event.
    """

    key: str
    event_id: str
    event_type: str
    time_us: int
    guard_version: int
    before: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Matches that one event completed beyond the limit; they are counted here and reported nowhere.

    Attributes:
        pattern: Name.
        version: Of the pattern.
        key: Correlation key of the trace.
        event_id: The completing event.
        event_type: Its type.
        time_us: Its time.
        dropped: How many; where alternatives of an OR bind the same events each counts.
    """

    pattern: str
    version: int
    key: str
    event_id: str
    event_type: str
    time_us: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherStats:
    """Counts since the matcher began; ``held`` and ``open_traces`` are of now.

    Attributes:
        events: Events processed.
        matches: Matches reported.
        endings: (trace, pattern) pairs that a guard ended.
        deviations: Traces that deviated from their guard.
        overflow: Matches beyond the limit per trace, pattern and event: counted, not reported.
        out_of_order: Events older than the last event of their trace.
        open_traces: Traces held.
        held: (pattern, instance) pairs bound in a kept partial match.
        peak_held: Largest ``held`` after any event.
        nodes: Nodes in use.
        state_bytes: Bytes in use.
        guard_steps: Events that moved a monitor.
        guard_builds: Rows that a guard was asked for.
        guard_refusals: Monitor states beyond the cap: their traces go on unguarded.
    """

    events: int
    matches: int
    endings: int
    deviations: int
    overflow: int
    out_of_order: int
    open_traces: int
    held: int
    peak_held: int
    nodes: int
    state_bytes: int
    guard_steps: int
    guard_builds: int
    guard_refusals: int


@dataclass(frozen=True)
class MatchOutput:
    """Findings of one batch, in the order in which events completed or doomed something.

    Attributes:
        names: (name, version) by pattern number.
        automaton: The automaton that found them.
        batch: The batch.
        match_rows: int64 (matches, 3 + atoms): row, pattern, term, then the bound events as indices of ``event_ids``
            in the order of the term's atoms, -1 past its end.
        event_ids: Ids of the bound events.
        event_times_us: int64, their times.
        ending_rows: int64 (endings, 5): row, pattern (-1: a deviation), monitor before and after, state (-2: matches
            were dropped, and their number stands in place of the monitors).
        monitors: (guard version, seen) by monitor number, for the numbers in ``ending_rows``.
    """

    names: tuple[tuple[str, int], ...]
    automaton: Automaton
    batch: EventBatch
    match_rows: NDArray[np.int64]
    event_ids: pa.Array
    event_times_us: NDArray[np.int64]
    ending_rows: NDArray[np.int64]
    monitors: Mapping[int, tuple[int, Seen]]

    @property
    def n_matches(self) -> int:
        """Number of matches."""
        return len(self.match_rows)

    def matches(self) -> list[Match]:
        """The matches as values."""
        rows, patterns, terms = self.match_rows[:, 0], self.match_rows[:, 1], self.match_rows[:, 2]
        bound = self.match_rows[:, MATCH_HEADER:]
        if not len(rows):
            return []
        times = np.where(bound == NIL, np.iinfo(np.int64).max, self.event_times_us[bound])
        starts = times.min(axis=1)
        ends = np.where(bound == NIL, np.iinfo(np.int64).min, self.event_times_us[bound]).max(axis=1)
        keys = self.batch.columns.column("key").take(pa.array(rows)).to_pylist()
        ids = self.event_ids.to_pylist()
        return [
            Match(
                pattern=self.names[pattern][0],
                version=self.names[pattern][1],
                key=key,
                term=term,
                bindings={
                    atom.alias: (ids[event],)
                    for atom, event in zip(self.automaton.queries[pattern].terms[term].atoms, events, strict=False)
                },
                start_us=int(start),
                end_us=int(end),
            )
            for pattern, term, key, events, start, end in zip(
                patterns.tolist(), terms.tolist(), keys, bound.tolist(), starts, ends, strict=True
            )
        ]

    def endings(self) -> list[Ending]:
        """The ended (trace, pattern) pairs as values."""
        found = []
        for row, pattern, before, after, state in self.ending_rows.tolist():
            if pattern == NIL or state == DROPPED:
                continue
            name, version = self.names[pattern]
            guard_version, seen = self.monitors[before]
            found.append(
                Ending(
                    pattern=name,
                    version=version,
                    **self._event(row),
                    guard_version=guard_version,
                    before=seen,
                    after=self.monitors[after][1],
                    state=self.automaton.state_of(state),
                )
            )
        return found

    def overflows(self) -> list[Overflow]:
        """Where matches were dropped; several rows of one event and pattern add up."""
        return [
            Overflow(
                pattern=self.names[pattern][0], version=self.names[pattern][1], **self._event(row), dropped=dropped
            )
            for row, pattern, dropped, _, state in self.ending_rows.tolist()
            if state == DROPPED
        ]

    def deviations(self) -> list[Deviation]:
        """The deviating traces as values."""
        return [
            Deviation(**self._event(row), guard_version=self.monitors[before][0], before=self.monitors[before][1])
            for row, pattern, before, _, _ in self.ending_rows.tolist()
            if pattern == NIL
        ]

    def _event(self, row: int) -> dict[str, Any]:
        columns = self.batch.columns
        return {
            "key": columns.column("key")[row].as_py(),
            "event_id": columns.column("id")[row].as_py(),
            "event_type": columns.column("type")[row].as_py(),
            "time_us": int(self._times_us[row]),
        }

    @cached_property
    def _times_us(self) -> NDArray[np.int64]:
        return self.batch.time_us
