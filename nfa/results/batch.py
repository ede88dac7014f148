"""Results of the matcher for one batch. They are stored as columns and converted to values on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa.arena import distinct, distinct_rows
from nfa.automata.query import PatternState
from nfa.conditions.projection import project
from nfa.conditions.table_rows import ROW, row_keys
from nfa.guards.protocol import TRACE_END, EventClass, Guard, MonitorState
from nfa.guards.tables import Interned
from nfa.kernels.runs.tables import BY_WORK
from nfa.kernels.traces import NIL
from nfa.registered import RunningPattern
from nfa.results.bound_events import BoundEvents, MatchColumns
from nfa.results.event_store import StoredEvents, events_of_batch, joined, select_events
from nfa.results.found import DECIDED_BY, DecidedBy, MatchTable
from streams import EventBatch, column_of, shown_texts
from streams.tables import Tables

FEW_ROWS = 24  # up to this number of matches, values cost less than columns
_FEW_EVENTS = 256  # up to this number of bound events, matches count as few


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A combination of events that satisfies a pattern. It starts with its earliest event and ends with its latest.

    Attributes:
        bindings: Ids of the bound events by alias. The aliases are in the order of the pattern's text.
        detected_us: Time at which the last trailing condition is decided, or ``end_us`` if there are none.
        decided_by: What decided the trailing conditions: the window, the end of the trace, or a constraint that
            excludes the forbidden event. None if the match did not wait.
        deviating: Whether the trace had broken a constraint when the match was emitted.
        would_be_lost: In shadow mode, whether pruning would have lost the match. Only possible in deviating traces.
    """

    pattern: str
    version: int
    key: str
    bindings: Mapping[str, tuple[str, ...]]
    start_us: int
    end_us: int
    detected_us: int
    decided_by: DecidedBy | None = None
    deviating: bool = False
    would_be_lost: bool = False
    row: Mapping[str, Any] | None = None
    returns: Mapping[str, Any] = field(default_factory=dict)


def match_order(match: Match) -> tuple[Any, ...]:
    """Return the key by which matches are sorted: end, start, bindings, pattern, correlation key and table row."""
    row = "" if match.row is None else orjson.dumps(match.row).decode()
    return match.end_us, match.start_us, sorted(match.bindings.items()), match.pattern, match.key, row


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout:
    """A partial match that could still have continued when its WITHIN had passed.

    ``start_us`` is the time of its earliest event. ``due_us`` is the time at which its window had passed. ``missing``
    has the aliases without bound events, in the order of the text.
    """

    pattern: str
    version: int
    key: str
    bindings: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    start_us: int
    due_us: int
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An early termination: after its event, a pattern can no longer match in a trace.

    ``guard_version`` is the version of the guard that terminated the pattern. ``event`` is the class of the event, as
    the guard received it. ``state`` is the state of the terminated partial match with the most progress. With FOR EACH
    ROW, ``row`` is the row of the partial matches.
    """

    pattern: str
    version: int
    key: str
    event_id: str
    event_type: str
    time_us: int
    guard_version: int
    before: MonitorState
    after: MonitorState
    event: EventClass
    state: PatternState
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The first event of a trace that its guard did not allow.

    The guard's policy decides whether the trace is afterwards matched without pruning, or no longer matched. ``event``
    is the event's class, as the guard received it. ``released`` is the number of bound events of the trace that had
    been dropped because of the guard. Matches that need one of these events are lost.
    """

    key: str
    event_id: str
    event_type: str
    time_us: int
    guard_version: int
    before: MonitorState
    event: EventClass
    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingColumns:
    """Early terminations as columns, for writing many at once.

    Early terminations of one kind have the same pattern, event type, states and event class, and so the same reason.
    ``kinds`` has the first early termination of each kind. ``kind`` has an index in ``kinds`` for each early
    termination. ``event_id`` is the event after which the pattern can no longer match, or an empty text if time
    terminated the pattern. ``rows`` are as in ``MatchColumns``.
    """

    kinds: Sequence[Ending]
    kind: NDArray[np.intp]
    key: pa.Array
    event_id: pa.Array
    time_us: NDArray[np.int64]
    rows: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The retraction of a match that was emitted early. The match relied on a constraint that was then broken."""

    pattern: str
    version: int
    key: str
    bindings: Mapping[str, tuple[str, ...]]
    event_id: str
    event_type: str
    time_us: int
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Matches and partial matches that were lost at one event because of a limit. They are counted, but not emitted.

    Attributes:
        event_id: Id of the event, or an empty text if the passing of time completed the matches.
        dropped: The number of matches beyond the limit. Alternatives of an OR with equal bindings count separately.
        runs: The number of partial matches that were not started because of the limit of runs, so matches may be
            missing.
        work: The pattern's work beyond its allowance. If this is above 0, the pattern is given up in the trace until
            the trace ends. If ``is_in_all``, the work of all traces is counted.
        is_in_all: Whether the pattern is suspended for its work in all traces. If false, a suspension is due to the
            number of traces in which the pattern was given up.
        reason: Another reason of the suspension, in words.
    """

    pattern: str
    version: int
    key: str
    event_id: str
    event_type: str
    time_us: int
    dropped: int
    runs: int = 0
    work: int = 0
    suspends: bool = False
    is_in_all: bool = False
    reason: str = ""


_OF_PATTERNS = (
    *("matches", "timeouts", "endings", "corrections", "released", "shadow_lost", "overflow", "lost_runs"),
    *("held", "peak_held", "nodes", "state_bytes", "guard_builds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherStats:
    """Counts since the matcher was created, except ``held`` and ``open_traces``, which are current values.

    Attributes:
        shadow_lost: Matches that pruning would have lost, counted if a guard is in shadow mode.
        overflow: Matches beyond the limit per trace, pattern and event, which are counted but not reported.
        out_of_order: Events that are older than the newest time.
        held: Pairs of a pattern and an event that it binds. ``peak_held`` is the maximum after any event.
        guard_builds: Rows of tables that were built from answers of guards.
        guard_refusals: Monitor states beyond ``Policy.max_monitor_states`` of a guard without bit tables. Their traces
            continue unguarded.
        under_bits: Traces beyond ``Policy.max_monitor_states`` that continued under the guard's bit tables.
    """

    events: int
    matches: int
    timeouts: int
    endings: int
    deviations: int
    ignored_violations: int
    corrections: int
    released: int
    shadow_lost: int
    overflow: int
    lost_runs: int
    out_of_order: int
    open_traces: int
    held: int
    peak_held: int
    nodes: int
    state_bytes: int
    guard_steps: int
    guard_builds: int
    guard_refusals: int
    under_bits: int

    def with_other_keys(self, other: MatcherStats) -> MatcherStats:
        """Return the counts of two lanes together. Both lanes process the same events, so events are counted once."""
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in _OF_PATTERNS})


@dataclass(frozen=True)
class LaneOutput:
    """Results of one lane (per-key matcher) for one batch, or for the passing of time without a batch.

    ``first_sequence`` is the sequence number of the batch's first row. Results refer to monitors and to classes of
    events by number. ``monitors`` maps the number of a monitor to (guard version, state). ``classes`` maps the number
    of a class to the class.

    Attributes:
        stored: The bound events that precede the batch, in consecutive parts.
        is_deviating: For each match, whether its trace broke a constraint.
        corrections: Matches that were emitted early, and are now contradicted by an event. ``rows`` has the rows of
            these events.
        ending_rows: Early terminations (endings, 6): row, pattern, monitor before, monitor after, state of the
            pattern's automaton, class of the event.
        deviation_rows: Deviations (deviations, 4): row, monitor before, class of the event, number of released events.
        lost_rows: Losses (losses, 6): row, pattern, number of lost matches, number of lost runs, work, reason. The work
            is 0 unless the pattern was given up for it. The reason is 0 unless the pattern was suspended.
        tables: The tables that lookups in RETURN read, if there are any.
        first_row: Index of the batch's first event in the matcher's input.
        suspended: Suspensions of patterns for reasons other than their work.
        rows: For each event of the batch, its offset from ``first_row``. None if the batch has all events of the input.
    """

    patterns: Sequence[RunningPattern]
    batch: EventBatch
    first_sequence: int
    stored: Sequence[StoredEvents]
    matches: MatchTable
    is_deviating: NDArray[np.bool_]
    is_lost: NDArray[np.bool_]
    corrections: MatchTable
    timeouts: MatchTable
    ending_rows: NDArray[np.int64]
    deviation_rows: NDArray[np.int64]
    lost_rows: NDArray[np.int64]
    monitors: Mapping[int, Interned]
    classes: Mapping[int, EventClass]
    guards: Mapping[int, Guard]
    first_row: int = 0
    tables: Tables | None = None
    rows: NDArray[np.intp] | None = None
    suspended: Sequence[Overflow] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the output has no results of any kind."""
        tables: tuple[Sized, ...] = (self.matches, self.corrections, self.timeouts)
        rows: tuple[Sized, ...] = (self.ending_rows, self.deviation_rows, self.lost_rows)
        return not self.suspended and not any(map(len, (*tables, *rows)))

    @property
    def has_few_matches(self) -> bool:
        """Whether the output has so few matches that values cost less to build than columns."""
        return len(self.matches) <= FEW_ROWS and len(self.matches.sequences) <= _FEW_EVENTS

    def places_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each of ``rows``, the index of its event in the matcher's input.

        The index is ``NIL`` for a row without an event, such as the end of an idle trace.
        """
        if not len(self.batch):
            return np.full(len(rows), NIL, np.int64)
        names = self.batch.type_names
        is_event = self.batch.type_codes != (names.index(TRACE_END) if TRACE_END in names else NIL)
        places = np.cumsum(is_event) - 1
        if self.rows is not None:
            places = self.rows[places] if len(self.rows) else places
        indices: NDArray[np.int64] = np.where((rows == NIL) | ~is_event[rows], NIL, places[rows] + self.first_row)
        return indices

    def chosen(self, keep: NDArray[np.bool_]) -> LaneOutput:
        return replace(
            self,
            matches=self.matches.chosen(keep),
            is_deviating=self.is_deviating[keep],
            is_lost=self.is_lost[keep],
        )

    def values_of_matches(self) -> Iterator[Match]:
        table, bound = self.matches, self._bound
        columns = bound.starts_us, bound.ends_us, table.detected_us, table.how, self.is_deviating, self.is_lost
        rows = zip(bound.members(), self._returns(bound), *(column.tolist() for column in columns), strict=True)
        for (_, members), returns, start_us, end_us, detected_us, how, deviating, lost in rows:
            yield Match(
                **members,
                start_us=start_us,
                end_us=end_us,
                detected_us=detected_us,
                decided_by=DECIDED_BY[how],
                deviating=deviating,
                would_be_lost=lost,
                returns=returns,
            )

    def columns_of_matches(self, *, is_compact: bool = False) -> MatchColumns:
        """Return the matches as columns, without the values of RETURN.

        If ``is_compact``, ids may be numbers and keys may be a dictionary. Otherwise both are texts.
        """
        table, bound = self.matches, self._bound
        ids = bound.events.columns.column("id")
        return MatchColumns(
            patterns=self.patterns,
            pattern=table.patterns,
            key=bound.keys if is_compact else shown_texts(bound.keys),
            start_us=bound.starts_us,
            end_us=bound.ends_us,
            detected_us=table.detected_us,
            how=table.how,
            is_deviating=self.is_deviating,
            is_lost=self.is_lost,
            ends=table.ends,
            aliases=bound.aliases,
            events=bound.rows,
            names=ids if is_compact else shown_texts(ids),
            rows=bound.row_keys,
        )

    def values_of_returns(self, table: MatchTable | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the values of RETURN for each match of ``table``, by default for the matches of this output.

        Nothing is yielded if none of their patterns has RETURN.
        """
        matches = self.matches if table is None else table
        if not any(self.patterns[number].query.pattern.returns for number in distinct(matches.patterns).tolist()):
            return
        yield from self._returns(self._bound if table is None else self._bound_of(matches))

    def _returns(self, bound: BoundEvents) -> list[Mapping[str, Any]]:
        owners = bound.table.patterns
        projections: list[Mapping[str, Any]] = [{}] * len(owners)
        for pattern in distinct(owners).tolist():
            if returns := self.patterns[pattern].query.pattern.returns:
                numbers = np.flatnonzero(owners == pattern).tolist()
                values = project(returns, [bound.read(number) for number in numbers], self.tables)
                for number, projection in zip(numbers, values, strict=True):
                    projections[number] = projection
        return projections

    def values_of_corrections(self) -> Iterator[Correction]:
        if not len(self.corrections):
            return
        events = self._events_at(self.corrections.rows)
        for event, (_, members) in zip(events, self._bound_of(self.corrections).members(), strict=True):
            yield Correction(**{**event, **members})

    def values_of_timeouts(self) -> Iterator[Timeout]:
        if not len(self.timeouts):
            return
        bound = self._bound_of(self.timeouts)
        times_us = bound.starts_us.tolist(), self.timeouts.detected_us.tolist()
        for (pattern, members), start_us, due_us in zip(bound.members(), *times_us, strict=True):
            missing = tuple(alias for alias in pattern.automaton.aliases if alias not in members["bindings"])
            yield Timeout(**members, missing=missing, start_us=start_us, due_us=due_us)

    def values_of_endings(self, newest: int | None = None) -> Iterator[Ending]:
        """Return early terminations as values. With ``newest``, only the last ``newest`` are returned."""
        return self._endings(self.ending_rows if newest is None else self.ending_rows[self._older(newest) :])

    def columns_of_endings(self, newest: int | None = None) -> EndingColumns:
        """Return early terminations as columns. With ``newest``, only the last ``newest`` are returned."""
        rows = self.ending_rows if newest is None else self.ending_rows[self._older(newest) :]
        types = np.append(self.batch.type_codes, NIL)[rows[:, 0]]  # the last entry is for passing time
        firsts, kind = distinct_rows(np.column_stack([rows[:, 1:], types]))
        rows_of_events = pa.array(rows[:, 0], mask=rows[:, 0] == NIL)
        columns = self.batch.columns.select(["key", "id"]).take(rows_of_events)
        return EndingColumns(
            kinds=list(self._endings(rows[firsts])),
            kind=kind,
            key=shown_texts(columns.column(0)).fill_null(""),
            event_id=shown_texts(columns.column(1)).fill_null(""),
            time_us=np.append(self.batch.time_us, 0)[rows[:, 0]],
            rows=self._row_keys(rows_of_events),
        )

    def counts_of_endings(self, newest: int) -> Iterator[tuple[Ending, int]]:
        """Yield (first early termination, number) for each kind of early termination.

        The last ``newest`` are not counted.
        """
        rows = self.ending_rows[: self._older(newest)]
        firsts, kind = distinct_rows(rows[:, 1:])
        return zip(self._endings(rows[firsts]), np.bincount(kind).tolist(), strict=True)

    def _older(self, newest: int) -> int:
        return max(0, len(self.ending_rows) - newest)

    def _endings(self, rows: NDArray[np.int64]) -> Iterator[Ending]:
        ended: dict[tuple[int, ...], PatternState] = {}
        events, names = self._events_at(rows[:, 0]), self._row_keys(column_of(rows[:, 0]))
        keys = [None] * len(rows) if names is None else [orjson.loads(name) for name in names.to_pylist()]
        for (_, number, before, after, state, event), members, key in zip(rows.tolist(), events, keys, strict=True):
            pattern = self.patterns[number]
            guard_version, state_before = self.monitors[before]
            following = self.monitors[after][1]
            place = number, state, before, after
            if place not in ended:
                ended[place] = self._ended_state(pattern, state, self.guards[guard_version], state_before, following)
            yield Ending(
                pattern=pattern.name,
                version=pattern.version,
                **members,
                guard_version=guard_version,
                before=state_before,
                after=following,
                event=self.classes[event],
                state=ended[place],
                row=key,
            )

    def _row_keys(self, rows: pa.Array) -> pa.Array | None:
        names = self.batch.attributes.get(ROW)
        return None if names is None else row_keys(names.take(rows))

    def values_of_overflows(self) -> Iterator[Overflow]:
        yield from self.suspended
        events = self._events_at(self.lost_rows[:, 0])
        for (_, number, dropped, runs, work, cause), event in zip(self.lost_rows.tolist(), events, strict=True):
            pattern, is_in_all = self.patterns[number], cause == BY_WORK
            lost = {"dropped": dropped, "runs": runs, "work": work, "suspends": cause > 0, "is_in_all": is_in_all}
            yield Overflow(pattern=pattern.name, version=pattern.version, **event, **lost)

    def values_of_deviations(self) -> Iterator[Deviation]:
        events = self._events_at(self.deviation_rows[:, 0])
        for (_, before, event, released), members in zip(self.deviation_rows.tolist(), events, strict=True):
            version, state = self.monitors[before]
            yield Deviation(
                **members, guard_version=version, before=state, event=self.classes[event], released=released
            )

    def _ended_state(
        self, pattern: RunningPattern, state: int, guard: Guard, before: MonitorState, after: MonitorState
    ) -> PatternState:
        """Return the first pattern state of ``state`` that was alive before the event and is dead after it."""
        query = pattern.view.query
        return pattern.view.ended(state, guard.live(before, query), guard.live(after, query))

    @cached_property
    def _bound(self) -> BoundEvents:
        return self._bound_of(self.matches)

    def _bound_of(self, table: MatchTable) -> BoundEvents:
        needed = distinct(table.sequences)
        border = int(np.searchsorted(needed, self.first_sequence))
        old = select_events(self.stored, needed[:border])
        rows = (needed[border:] - self.first_sequence).astype(np.intp)
        keeps_data = any(pattern.query.pattern.returns for pattern in self.patterns)
        new = events_of_batch(self.batch, rows, self.first_sequence, keeps_data=keeps_data)
        return BoundEvents.of(table, joined([old, new]), self.patterns)

    def _events_at(self, rows: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        if not len(rows):
            return
        event_rows = rows[rows != NIL]
        columns = self.batch.columns.select(["key", "id", "type"]).take(column_of(event_rows))
        texts = (shown_texts(column).to_pylist() for column in columns.columns)
        members = zip(*texts, self.batch.time_us[event_rows].tolist(), strict=True)
        for row in rows.tolist():
            key, event_id, event_type, time_us = ("", "", "", 0) if row == NIL else next(members)
            yield {"key": key, "event_id": event_id, "event_type": event_type, "time_us": time_us}


@dataclass(frozen=True)
class MatchOutput:
    """Results for one batch, or for the passing of time. ``lanes`` has the outputs of all lanes (per-key matchers)."""

    lanes: tuple[LaneOutput, ...]

    @property
    def versions(self) -> Mapping[tuple[str, int], RunningPattern]:
        """The patterns that results may name, by name and version. Patterns that were removed since are included."""
        return {(pattern.name, pattern.version): pattern for lane in self.lanes for pattern in lane.patterns}

    @property
    def n_matches(self) -> int:
        return sum(len(lane.matches) for lane in self.lanes)

    def matches(self) -> list[Match]:
        return [match for lane in self.lanes for match in lane.values_of_matches()]

    def timeouts(self) -> list[Timeout]:
        """Return the partial matches that WITHIN ended. Only patterns with EMIT TIMEOUTS report them."""
        return [timeout for lane in self.lanes for timeout in lane.values_of_timeouts()]

    def endings(self, newest: int | None = None) -> list[Ending]:
        """Return early terminations as values. With ``newest``, only the last ``newest`` of each lane."""
        return [ending for lane in self.lanes for ending in lane.values_of_endings(newest)]

    def older_endings(self, newest: int) -> list[tuple[Ending, int]]:
        """Return the early terminations that ``endings(newest)`` omits, counted by kind.

        The result has (first early termination, number) for each kind. Early terminations of a kind have the same
        pattern, state, monitor states and event class, so the same reason.
        """
        return [ending_count for lane in self.lanes for ending_count in lane.counts_of_endings(newest)]

    def overflows(self) -> list[Overflow]:
        """Return what was lost beyond limits. Losses of one pattern at one event are added up."""
        return [overflow for lane in self.lanes for overflow in lane.values_of_overflows()]

    def corrections(self) -> list[Correction]:
        """Return the retractions of matches that were emitted early."""
        return [correction for lane in self.lanes for correction in lane.values_of_corrections()]

    def deviations(self) -> list[Deviation]:
        return [deviation for lane in self.lanes for deviation in lane.values_of_deviations()]
