"""The matcher of one stream in one shard. It runs patterns and guards over batches, and its state can be saved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from nfa.automata.query import Query
from nfa.conditions.table_rows import RowsRead
from nfa.errors import PatternRefused, StateFormatError, UnknownPattern
from nfa.guards.protocol import Guard
from nfa.keys import require_key
from nfa.lanes import snapshot
from nfa.lanes.cases import CaseReading
from nfa.lanes.draining import Draining, first_row_past, without_later
from nfa.lanes.lane import KeyChoice, Lane
from nfa.lanes.row_lane import RowLane
from nfa.lanes.state import LaneOptions, LaneState
from nfa.registered import RunningPattern, registered
from nfa.results.batch import LaneOutput, MatcherStats, MatchOutput
from nfa.results.open_cases import CaseQuery, OpenCases
from nfa.syntax import Path, Pattern
from nfa.traces.table import EARLIEST
from streams import USUAL_BUDGET, EventBatch, Ties, WorkBudget, key_hash
from streams.tables import Tables

Tracked: TypeAlias = Literal["bound", "all", "listed"]
MATCH_LIMIT = 10_000

_STREAM_KEY: tuple[Path, ...] = ()


class Matcher:
    """Runs patterns over the batches of one stream.

    Callers must pass every event of the stream, even if no pattern listens to the event. A guard judges whole traces,
    and the newest event determines how far time has advanced. If an exception interrupts a batch, the state is
    incomplete and all methods raise ``RuntimeError``. Callers then continue with ``load`` from saved state.

    Args:
        end_events: Types that end a trace. A later event of the key opens a new trace.
        match_limit: Maximum number of matches reported per trace, pattern and event. Further matches are counted as
            overflow.
        ties: Whether events with equal timestamps are ordered as in the log (``log``) or not at all (``simultaneous``).
        key_paths: Names of the stream's correlation key, besides ``key``. The keys of a pattern must contain the
            correlation key. If they contain other paths as well, the traces of the pattern are finer: their events
            agree in these attributes, too.
        tracks: The traces that the matcher tracks. ``bound`` tracks only traces with bound events, so ``set_guard`` may
            not be called. ``all`` tracks every open trace. ``listed`` also stores the key, times and number of events
            of every open trace (28 bytes and the key), so ``open_cases`` may be called.
        idle_timeout_us: A trace ends when time is this far past its newest event. None means that there is no timeout.
    """

    def __init__(
        self,
        *,
        end_events: Iterable[str] = (),
        match_limit: int = MATCH_LIMIT,
        ties: Ties = "log",
        key_paths: Collection[Path] = (),
        tracks: Tracked = "all",
        idle_timeout_us: int | None = None,
    ) -> None:
        if match_limit < 1:
            raise ValueError(f"match_limit is {match_limit}; it must be at least 1")
        if idle_timeout_us is not None and idle_timeout_us < 1:
            raise ValueError(f"idle_timeout_us is {idle_timeout_us}; it must be at least 1")
        if tracks not in get_args(Tracked):
            raise ValueError(f"tracks is {tracks!r}; it must be one of {', '.join(get_args(Tracked))}")
        self._options = LaneOptions(
            end_events=frozenset(end_events),
            match_limit=match_limit,
            ties=ties,
            may_be_guarded=tracks != "bound",
            lists_open_traces=tracks == "listed",
            idle_timeout_us=idle_timeout_us,
        )
        self._key_paths = frozenset({("key",), *key_paths})
        self._patterns: dict[str, RunningPattern] = {}
        self._draining: dict[str, Draining] = {}
        self._lanes: dict[tuple[Path, ...], Lane] = {_STREAM_KEY: Lane(self._options)}
        self._tables: Tables | None = None  # tables for patterns with FOR EACH ROW
        self._is_stale = True
        self._are_counts_stale = False  # whether a pattern was removed since the last compilation
        self._is_midway = False

    def set_end_events(self, end_events: Iterable[str]) -> None:
        """Replace the types that end a trace. An open trace ends at its next event of one of these types."""
        if self._set(replace(self._options, end_events=frozenset(end_events))):
            self._is_stale = True

    def set_idle_timeout(self, timeout_us: int | None) -> MatchOutput:
        """Set the idle timeout of traces, or remove it with None.

        The timeout also applies to open traces. A trace that has been idle for longer ends now. If the matcher had no
        timeout before, open traces count as idle since the newest time.
        """
        self._check_whole()
        newest_us = self.newest_us
        if not self._set(replace(self._options, idle_timeout_us=timeout_us)):
            return MatchOutput(())
        for lane in self._lanes.values():
            lane.set_idle_timeout(timeout_us)
        return MatchOutput(()) if newest_us is None else self.pass_time(newest_us)

    def _set(self, options: LaneOptions) -> bool:
        if options == self._options:
            return False
        self._options = options
        for lane in self._lanes.values():
            lane.options = options
        return True

    @property
    def patterns(self) -> Mapping[str, RunningPattern]:
        """The registered patterns by name."""
        return MappingProxyType(self._patterns)

    @property
    def versions(self) -> Mapping[tuple[str, int], RunningPattern]:
        """The running patterns by name and version, including draining versions."""
        running = [*(draining.pattern for draining in self._draining.values()), *self._patterns.values()]
        return {(pattern.name, pattern.version): pattern for pattern in running}

    def add_pattern(
        self,
        text: str,
        *,
        parsed: Pattern | None = None,
        version: int = 1,
        is_guarded: bool = True,
        drains: bool = False,
        budget: WorkBudget = USUAL_BUDGET,
    ) -> Query:
        """Register a pattern for later events. It replaces the pattern of the same name, if there is one.

        The partial matches of the replaced pattern are dropped, unless ``drains``.

        Args:
            text: The pattern.
            parsed: The parsed pattern, if the caller has it.
            version: Version of the pattern.
            is_guarded: Whether guards may end its partial matches. Must be false for a pattern that looks for
                violations of the guard's constraints.
            drains: Whether the replaced version may finish its current partial matches. It runs until its WITHIN has
                passed or another version is added. All its results count in the stats and towards its limits. Only
                results that began before the replacement are emitted.
            budget: The work limit of the pattern. A pattern that exceeds it is given up in the trace. After repeated
                excesses it is suspended: it gets no events until it is added again.

        Raises:
            PatternRefused: The text is refused.
            KeyMismatch: ``WHERE [..]`` contains neither ``key`` nor one of ``key_paths``.
        """
        pattern = registered(text, version, is_guarded=is_guarded, budget=budget, parsed=parsed)
        require_key(pattern.query.pattern, self._key_paths)
        self._draining.pop(pattern.name, None)
        replaced = self._patterns.pop(pattern.name, None)
        if drains and replaced is not None:
            self._drain(replaced)
        self._patterns[pattern.name] = pattern
        self._is_stale = True
        self._are_counts_stale |= replaced is not None
        return pattern.query

    def remove_pattern(self, name: str) -> None:
        """Remove a pattern and its partial matches.

        Raises:
            UnknownPattern: No pattern with this name is registered.
        """
        if name not in self._patterns:
            names = ", ".join(sorted(self._patterns)) or "none"
            raise UnknownPattern(f"no pattern {name!r} is registered here; registered: {names}", name=name)
        del self._patterns[name]
        self._draining.pop(name, None)
        self._is_stale = self._are_counts_stale = True

    def set_guard(self, version: int, guard: Guard) -> None:
        """Set the guard of new traces. Open traces keep their guard.

        Raises:
            ValueError: The matcher was created with ``tracks="bound"``.
        """
        if not self._options.may_be_guarded:
            raise ValueError("this matcher was made with tracks='bound'")
        self._main.set_guard(version, guard)
        self._is_stale = True

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        """The versions of guards that open traces follow or new traces will follow."""
        return self._main.guard_versions_in_use

    @property
    def stats(self) -> MatcherStats:
        """The counts since the matcher was created. Each event is counted once, even if patterns use several keys.

        After a change of patterns, the counts may lack a new pattern until the next batch.
        """
        if self._are_counts_stale:
            self._compile()
        main, *others = (lane.stats() for lane in self._lanes.values())
        for lane_stats in others:
            main = main.with_other_keys(lane_stats)
        return main

    def open_cases(self, query: CaseQuery) -> OpenCases:
        """Return the open traces that ``query`` selects, with the progress of patterns in each.

        Traces are those of the correlation key. The state is not changed. The call visits all open traces and partial
        matches, and computes the details of at most ``query.limit`` traces.

        Raises:
            ValueError: The matcher was not created with ``tracks="listed"``.
        """
        if not self._options.lists_open_traces:
            raise ValueError("this matcher was not made with tracks='listed'")
        self._check_whole()
        self._compile()
        others = [lane.view() for keys, lane in self._lanes.items() if keys != _STREAM_KEY]
        return CaseReading(self._main.view(), others, self._patterns).answer(query, self._main.newest_us)

    def open_keys(self) -> NDArray[np.uint64]:
        """Return the hashed correlation keys of the open traces, in any order. The state is not changed."""
        self._check_whole()
        self._compile()
        return self._main.view().open_keys() if self._options.may_be_guarded else np.zeros(0, np.uint64)

    def restart_peak(self) -> None:
        """Reset ``MatcherStats.peak_held`` to the current value."""
        self._compile()
        for lane in self._lanes.values():
            lane.restart_peak()

    def read_tables(self, tables: Tables) -> None:
        """Replace the tables that patterns with FOR EACH ROW read, between two batches.

        Partial matches of rows that changed or were removed are dropped without a report. A call before ``process`` is
        not necessary, because each batch brings its own tables.
        """
        self._tables = tables
        if not any(pattern.rows is not None for pattern in self.versions.values()):
            return
        self._check_whole()
        self._compile()
        for lane in self._lanes.values():
            if isinstance(lane, RowLane):
                lane.read_tables(tables)

    def process(self, batch: EventBatch) -> MatchOutput:
        """Match the events of a batch in the order of rows, and return the results."""
        self._check_whole()
        if batch.tables is not None and batch.tables is not self._tables:
            self.read_tables(batch.tables)
        outputs: list[LaneOutput] = []
        done = 0
        while (row := first_row_past(self._draining.values(), batch)) is not None:
            outputs += self._process(batch.slice(0, row + 1), done)
            self._forget_drained(int(batch.time_us[row]))
            batch, done = batch.slice(row + 1), done + row + 1
        if len(batch) or not outputs:
            outputs += self._process(batch, done)
        return MatchOutput(tuple(outputs))

    def _process(self, batch: EventBatch, done: int) -> list[LaneOutput]:
        self._compile()
        self._is_midway = True
        outputs: list[LaneOutput] = []
        for keys, lane in self._lanes.items():
            if keys == _STREAM_KEY:
                output = lane.process(batch)
                outputs.append(replace(output, first_row=done) if done else output)
            else:
                outputs += [
                    replace(output, first_row=done + output.first_row) for output in lane.process_finer(batch, keys)
                ]
        self._is_midway = False
        return self._without_later(outputs)

    def pass_time(self, watermark_us: int) -> MatchOutput:
        """Advance time to the watermark, and decide the matches that waited for this time.

        All events before the watermark must have been processed. The watermark counts as the newest time, as if it were
        the time of an event. ``process`` advances time to the newest event by itself.
        """
        self._check_whole()
        self._compile()
        self._is_midway = True
        outputs = [output for lane in self._lanes.values() for output in lane.pass_time(watermark_us)]
        self._is_midway = False
        outputs = self._without_later(outputs)
        self._forget_drained(watermark_us)
        return MatchOutput(tuple(outputs))

    def end_traces(self, keys: Iterable[str], time_us: int | None = None) -> MatchOutput:
        """End the open traces of the given correlation keys at ``time_us``, without an event.

        A later event of such a key opens a new trace. Matches that wait for the end of their trace are decided. Guards
        do not see this end, so a constraint that still requires an event is not broken. Keys without an open trace are
        ignored. By default, or if ``time_us`` is after the newest time, the traces end at the newest time.
        """
        self._check_whole()
        self._compile()
        self._is_midway = True
        homes = np.array(sorted({key_hash(key) for key in keys}), np.uint64)
        newest_us = self._main.newest_us  # of the stream, because other lanes may lag behind
        when_us = newest_us if time_us is None else min(time_us, newest_us)
        outputs = [lane.end_traces(homes, when_us) for lane in self._lanes.values()]
        self._is_midway = False
        return MatchOutput(tuple(self._without_later(outputs)))

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Drop the traces of the keys that ``is_kept`` rejects, as if their events had never occurred.

        This divides the state of a shard between several shards. No results are emitted. Patterns, guards and the
        newest time do not change. ``is_kept`` gets hashed keys. If ``has_counts`` is false, ``stats`` restart from 0.
        """
        self._check_whole()
        self._compile()
        self._is_midway = True
        for lane in self._lanes.values():
            lane.keep(is_kept, has_counts=has_counts)
        self._is_midway = False

    @property
    def waits_for_time(self) -> bool:
        """Whether some pattern may have matches that wait for time to pass."""
        self._compile()
        return any(lane.waits_for_time for lane in self._lanes.values())

    @property
    def newest_us(self) -> int | None:
        """The newest time of the stream, or None before the first event."""
        newest_us = self._main.newest_us
        return None if newest_us == EARLIEST else newest_us

    def finish(self) -> MatchOutput:
        """End every trace at the end of a finite input."""
        self._check_whole()
        self._compile()
        return MatchOutput(tuple(self._without_later([lane.finish() for lane in self._lanes.values()])))

    def dump(self) -> bytes:
        """Return the whole state as bytes. ``load`` returns a matcher that continues from this state."""
        self._check_whole()
        self._compile()
        options = self._options
        header = snapshot.Header(
            end_events=sorted(options.end_events),
            match_limit=options.match_limit,
            ties=options.ties,
            key_paths=sorted(list(path) for path in self._key_paths),
            may_be_guarded=options.may_be_guarded,
            idle_timeout_us=options.idle_timeout_us,
            patterns=[
                (pattern.name, pattern.version, pattern.text, pattern.is_guarded, *_saved_budget(pattern))
                for pattern in self._patterns.values()
            ],
            lanes=[],
            draining=[
                (
                    draining.pattern.version,
                    draining.pattern.text,
                    draining.pattern.is_guarded,
                    draining.border,
                    draining.until_us,
                    *_saved_budget(draining.pattern),
                )
                for draining in self._draining.values()
            ],
        )
        return snapshot.dump(header, self._lanes)

    @classmethod
    def load(cls, body: bytes, guards: Mapping[int, Guard], *, lists_open_traces: bool = False) -> Matcher:
        """Return a matcher that continues from the bytes of ``dump``.

        ``guards`` must have all ``guard_versions_in_use`` of the saved matcher. If the saved matcher listed its open
        traces, the new matcher lists them too. Otherwise it lists them only with ``lists_open_traces``. The keys of the
        saved traces then remain unknown.

        Raises:
            StateFormatError: The bytes are damaged, of another version, or name a guard that ``guards`` lacks.
        """
        header, arrays = snapshot.read(body)
        matcher = cls(
            end_events=header.end_events,
            match_limit=header.match_limit,
            ties=header.ties,
            key_paths=[tuple(path) for path in header.key_paths],
            tracks=_tracked(header, is_listed=lists_open_traces or snapshot.has_listed(arrays)),
            idle_timeout_us=header.idle_timeout_us,
        )
        try:
            for _, version, text, is_guarded, *saved in header.patterns:
                pattern = registered(text, version, is_guarded=is_guarded, budget=_read_budget(saved))
                matcher._patterns[pattern.name] = pattern
            for version, text, is_guarded, border, until_us, *saved in header.draining:
                pattern = registered(text, version, is_guarded=is_guarded, budget=_read_budget(saved))
                matcher._draining[pattern.name] = Draining(pattern=pattern, border=border, until_us=until_us)
        except PatternRefused as error:
            raise StateFormatError(f"saved state holds a pattern that is refused now: {error.message}") from error
        matcher._is_stale = False
        matcher._arrange_lanes()
        snapshot.restore(header, arrays, matcher._lanes, matcher._patterns_by_lane(), guards)
        return matcher

    @property
    def _main(self) -> Lane:
        return self._lanes[_STREAM_KEY]

    def _compile(self) -> None:
        if not self._is_stale:
            return
        self._arrange_lanes()
        for keys, patterns in self._patterns_by_lane().items():
            self._lanes[keys].configure(patterns)
        self._is_stale = self._are_counts_stale = False
        if self._tables is not None:
            self.read_tables(self._tables)

    def _arrange_lanes(self) -> None:
        """Keep one lane (per-key matcher) for each set of keys in use, and always one for the correlation key."""
        patterns_by_lane = self._patterns_by_lane()
        self._lanes = {
            keys: self._lanes.get(keys) or _new_lane(keys, self._options, self._main.state) for keys in patterns_by_lane
        }
        self._main.is_followed = any(isinstance(lane, RowLane) for lane in self._lanes.values())

    def _patterns_by_lane(self) -> dict[tuple[Path, ...], list[RunningPattern]]:
        patterns_by_lane: dict[tuple[Path, ...], list[RunningPattern]] = {_STREAM_KEY: []}
        for pattern in [*self._patterns.values(), *(draining.pattern for draining in self._draining.values())]:
            patterns_by_lane.setdefault(self._lane_keys(pattern), []).append(pattern)
        return patterns_by_lane

    def _lane_keys(self, pattern: RunningPattern) -> tuple[Path, ...]:
        if pattern.rows is not None:
            return pattern.rows.keys
        return tuple(sorted(path for path in pattern.keys if path not in self._key_paths))

    def _drain(self, pattern: RunningPattern) -> None:
        lane = self._lanes.get(self._lane_keys(pattern))
        if lane is None or lane.newest_us == EARLIEST:
            return
        until_us = lane.drained_by(pattern)
        self._draining[pattern.name] = Draining(pattern=pattern, border=lane.sequence, until_us=until_us)

    def _without_later(self, outputs: list[LaneOutput]) -> list[LaneOutput]:
        """Remove the results that draining versions began after they were replaced."""
        borders = {draining.pattern: draining.border for draining in self._draining.values()}
        return [without_later(output, borders) for output in outputs] if borders else outputs

    def _forget_drained(self, time_us: int) -> None:
        for name, draining in list(self._draining.items()):
            if draining.is_done(time_us):
                del self._draining[name]
                self._is_stale = self._are_counts_stale = True

    def _check_whole(self) -> None:
        if self._is_midway:
            raise RuntimeError("an earlier batch was interrupted: this matcher is half advanced, load saved state")


def _new_lane(keys: tuple[Path, ...], options: LaneOptions, home: LaneState) -> Lane:
    rows_read = RowsRead.of_keys(keys)
    return Lane(options, is_finer=keys != _STREAM_KEY) if rows_read is None else RowLane(options, rows_read, home)


def _saved_budget(pattern: RunningPattern) -> list[dict[str, int]]:
    """Return a pattern's work budget for a snapshot.

    The default budget is saved as an empty list, which earlier releases can read.
    """
    return [] if pattern.budget == USUAL_BUDGET else [pattern.budget.to_json()]


def _read_budget(saved: Sequence[Any]) -> WorkBudget:
    try:
        return WorkBudget.from_json(saved[0]) if saved else USUAL_BUDGET
    except ValueError as error:
        raise StateFormatError(f"saved state: {error}") from error


def _tracked(header: snapshot.Header, *, is_listed: bool) -> Tracked:
    if not header.may_be_guarded:
        return "bound"
    return "listed" if is_listed else "all"
