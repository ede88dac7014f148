"""The per-key matcher (*lane*), which runs the patterns of one set of keys with two engines on one table of traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import writable
from nfa.conditions.predicates import BatchColumns
from nfa.guards.protocol import TRACE_END, Guard
from nfa.guards.tables import GuardLayout
from nfa.kernels.traces import NIL, TRUE, Columns
from nfa.lanes.event_classes import classes_of, symbols_of
from nfa.lanes.layout import NO_PATTERNS, Layout, lay_out
from nfa.lanes.output import EngineResults, LaneReport
from nfa.lanes.state import LaneOptions, LaneState, SavedLane
from nfa.lanes.view import LaneView
from nfa.registered import RunningPattern
from nfa.results.batch import LaneOutput, MatcherStats
from nfa.results.event_store import events_of_batch
from nfa.runs.columns import RunInput
from nfa.runs.engine import RunOutput
from nfa.runs.program import RunListening, RunPattern, every_event, needs_trace_end
from nfa.syntax import Path
from nfa.traces.finer_keys import rows_with_keys
from nfa.traces.idle_traces import EndedTraces, IdleTraces
from nfa.traces.table import EARLIEST, Moves, Visits, Want
from streams import ENDED, EventBatch

KeyChoice: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]

_MANY_ROWS = 4_096  # for batches with more rows, only events that some partial match binds are stored


class Lane:
    """A matcher for patterns with the same key. It runs them over batches whose rows have this key.

    The key may be finer than the correlation key. ``LaneState`` has the data that must survive a batch. All other data
    are derived from patterns and guards by ``configure``, which must be called before the first batch.
    """

    def __init__(self, options: LaneOptions, *, is_finer: bool = False, home: LaneState | None = None) -> None:
        self.options = options
        self.is_followed = False  # whether lanes of rows follow the monitors of this lane
        self._is_finer = is_finer
        self._state = LaneState.empty(options, is_finer=is_finer, home=home)
        self._layout = NO_PATTERNS
        self._types = np.zeros(0, np.int32)

    @property
    def state(self) -> LaneState:
        return self._state

    @property
    def _patterns(self) -> Sequence[RunningPattern]:
        return self._layout.patterns

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        return self._state.guard_versions_in_use

    @property
    def newest_us(self) -> int:
        """The newest event time of the lane, or ``EARLIEST`` before the first event."""
        return self._state.table.newest_us

    def drained_by(self, pattern: RunningPattern) -> int | None:
        """Return the time at which a pattern's partial matches will all have ended, or None if one has no window."""
        declared = pattern.query.pattern
        if declared.within_business is None:
            return None if declared.within_us is None else self.newest_us + declared.within_us
        if pattern not in self._patterns:
            return self.newest_us
        number = self._layout.run_numbers.index(self._patterns.index(pattern))
        return self._state.runs.latest_window_end(number, self.newest_us)

    @property
    def sequence(self) -> int:
        """Number of rows so far, which is the sequence number of the next row."""
        return self._state.sequence

    @property
    def waits_for_time(self) -> bool:
        return bool(self._layout.run_numbers)

    def stats(self) -> MatcherStats:
        return self._state.stats()

    def restart_peak(self) -> None:
        self._state.restart_peak()

    def set_idle_timeout(self, timeout_us: int | None) -> None:
        """Set the idle timeout of all traces, including open traces. With None, idle traces do not end.

        If there was no timeout before, an open trace counts as idle since the newest time of the lane.
        """
        before = self._state.idle
        self._state.idle = None if timeout_us is None else IdleTraces(timeout_us)
        if self._state.idle is None:
            return
        if before is not None:
            self._state.idle.load_arrays(before.dump_arrays())
            return
        keys = np.unique(self._state.table.keys())
        self._state.idle.load_arrays({"idle_key": keys, "idle_last": np.full(len(keys), self.newest_us, np.int64)})

    def set_guard(self, version: int, guard: Guard) -> None:
        """Set the guard of new traces. Open traces keep their guard. Call ``configure`` afterwards."""
        self._state.guards.guards[version] = guard
        self._state.guard_version = version

    def view(self) -> LaneView:
        """Return a view of the open traces and partial matches. It is valid until the next batch."""
        return LaneView(state=self._state, layout=self._layout, is_finer=self._is_finer)

    def dump(self) -> SavedLane:
        return self._state.dump()

    def load(self, saved: SavedLane, patterns: Sequence[RunningPattern], guards: Mapping[int, Guard]) -> None:
        """Restore the result of ``dump`` into a new lane, which has processed no events.

        ``patterns`` must be those of the dumped lane. ``guards`` has the guards by version, and must have every
        version that a dumped trace uses. A missing guard, or a value that does not come from ``dump``, raises
        StateFormatError, ValueError, TypeError, KeyError or IndexError.
        """
        self._state.load_traces(saved, guards)
        self.configure(patterns)
        self._state.load_matches(saved)

    def configure(self, patterns: Sequence[RunningPattern]) -> None:
        """Build the tables for ``patterns`` and the current guards, and convert the open traces to these tables."""
        state, options = self._state, self.options
        state.forget_unused_guards()
        guards = () if state.home is not None else tuple(state.guards.guards.values())
        layout = lay_out(patterns, guards, options.end_events, is_log_ordered=not options.is_simultaneous)
        self._configure_engines(layout)
        state.guards.compile(
            GuardLayout(
                types=layout.types,
                views=[pattern.view if pattern.is_guarded else None for pattern in patterns],
                state_range=layout.state_range,
                negation_range=layout.negation_range,
                start=state.start_of_trace(),
                is_simultaneous=options.is_simultaneous,
            )
        )
        state.table.set_monitors(*state.guards.restart_bits())
        state.table.configure(
            types=len(layout.codes) + 1,
            wants=[*layout.wants(), *state.runs.wants(layout.codes), *self._wants_of_followers(layout)],
            end_types=[layout.codes[name] for name in sorted(options.end_events)],
            tracks_all=(options.may_be_guarded and state.home is None)
            or state.guard_version is not None
            or any(needs_trace_end(automaton.pattern, automaton) for automaton in state.runs.automata),
            end_mark=layout.codes[TRACE_END],
            index=layout.listening.index,
        )
        self._layout = layout
        self._codes = {**layout.codes, TRACE_END: len(layout.types)}
        self._symbols = symbols_of(guards, layout)
        self._report = LaneReport(layout)
        self._is_named = _is_named(layout)
        self._keeps_data = any(pattern.query.pattern.returns for pattern in patterns)

    def _wants_of_followers(self, layout: Layout) -> list[Want]:
        """Return conditions by which all events of open traces become visits, or none if that is not necessary.

        It is necessary if the traces follow the monitors of another lane.
        """
        if self._state.home is None or not self._state.guards.guards:
            return []
        return [Want(type_code=code, predicate=TRUE, opens=False) for code in every_event(layout.codes)]

    def _configure_engines(self, layout: Layout) -> None:
        patterns, before = layout.patterns, {pattern: number for number, pattern in enumerate(self._patterns)}
        self._state.shared.configure(
            [layout.shared_pattern(number, self.options.match_limit) for number in range(len(patterns))],
            [before.get(pattern, NIL) for pattern in patterns],
            state_range=layout.state_range,
            types=len(layout.codes) + 1,
            index=layout.listening.index,
        )
        numbers = layout.run_numbers
        runs_before = {self._patterns[number]: place for place, number in enumerate(self._layout.run_numbers)}
        self._state.runs.configure(
            [
                RunPattern(
                    automaton=patterns[number].automaton,
                    columns=layout.guard_columns(number),
                    budget=patterns[number].budget,
                    source=runs_before.get(patterns[number], NIL),
                )
                for number in numbers
            ],
            layout.codes,
            layout.predicates,
            RunListening(listening=layout.listening, numbers=numbers),
        )

    def process_finer(self, batch: EventBatch, keys: Sequence[Path]) -> list[LaneOutput]:
        """Match the rows of a batch that have all finer keys of the lane. All rows of the batch advance time.

        When the trace of a correlation key ends, all its finer traces end.
        """
        finer, homes, rows = self._finer_rows(batch, keys)
        self._note_finer(homes, finer.key_hashes)
        if (is_ended := batch.is_ended).any():
            ends = np.flatnonzero(is_ended)
            ended = self._state.finer.ended(ends, batch.key_hashes[ends], batch.time_us[ends])
            finer = EventBatch.joined([finer, EventBatch.of_ended(ended.keys, ended.times_us)])
            rows = np.concatenate([rows, ended.rows])
            order = np.argsort(rows, kind="stable")
            finer, rows = finer.take(order), rows[order]
        is_end, passed_us, places = finer.is_ended, self._state.table.clocks(batch.time_us)[rows], rows
        if self._state.idle is not None:
            ended = self._idle_finer(self._state.idle, batch, finer, rows)
            passed_us, places = np.insert(passed_us, ended.rows, EARLIEST), np.insert(rows, ended.rows, NIL)
            finer, is_end = _with_ends(finer, ended) if len(ended) else (finer, is_end)
        output = replace(self._advance(finer, is_end, passed_us, places), rows=rows)
        until_us = int(batch.time_us.max(initial=self.newest_us))
        return [output] if until_us == self.newest_us else [output, *self.pass_time(until_us)]

    def _finer_rows(
        self, batch: EventBatch, keys: Sequence[Path]
    ) -> tuple[EventBatch, NDArray[np.uint64], NDArray[np.intp]]:
        """Return the rows of a batch that have all finer keys, hashed by these keys.

        The arrays have the hashed correlation key and the index in ``batch`` of each returned row.
        """
        return rows_with_keys(batch, keys)

    def process(self, batch: EventBatch) -> LaneOutput:
        """Match the rows of a batch in order. The rows must be hashed by the lane's key."""
        state = self._state
        if state.idle is None or not len(batch):
            return self._advance(batch, batch.is_ended)
        ended = state.idle.advance(batch.key_hashes, batch.time_us, self._is_end_event(batch), self.newest_us)
        return self._advance(*(_with_ends(batch, ended) if len(ended) else (batch, batch.is_ended)))

    def pass_time(self, watermark_us: int) -> list[LaneOutput]:
        """Advance time to the watermark, and return the results that time decides.

        All events before the watermark must have been processed.
        """
        state, outputs = self._state, []
        if state.idle is not None and len(ended := state.idle.pass_time(watermark_us)):
            outputs.append(self._end(ended))
        state.table.pass_time(watermark_us)
        return [*outputs, self._report.of_time(state, state.runs.pass_time(watermark_us, state.id_of))]

    def finish(self) -> LaneOutput:
        return self._report.of_time(self._state, self._state.runs.finish(self._state.id_of))

    def end_traces(self, homes: NDArray[np.uint64], time_us: int) -> LaneOutput:
        keys = np.unique(np.concatenate([homes, self._state.finer.of(homes)]))
        if self._state.idle is not None:
            self._state.idle.forget(keys)
        return self._end_at(keys, time_us)

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Remove the traces whose correlation key ``is_kept`` rejects, as if they had had no events.

        Nothing is emitted. Removed traces end like any other trace, so engines retain no data for them. The lane's time
        does not change. ``is_kept`` returns a mask of the hashed keys to keep. Unless ``has_counts``, counters restart
        from 0.
        """
        is_home = is_kept(self._state.finer.pairs[:, 0])
        if self._is_finer:
            self._keep_pairs(is_home)
        else:
            self._forget(lambda keys: ~is_kept(keys), is_home)
        if not has_counts:
            self._state.forget_counts()

    def _keep_pairs(self, is_kept: NDArray[np.bool_]) -> None:
        """Remove finer traces as if they had had no events. ``is_kept`` is a mask of ``FinerTraces.pairs``."""
        gone = self._state.finer.pairs[~is_kept, 1]
        self._forget(lambda keys: np.isin(keys, gone), is_kept)

    def _forget(self, is_gone: KeyChoice, is_kept: NDArray[np.bool_]) -> None:
        """Remove the traces whose hashed keys ``is_gone`` selects, without changing counters.

        ``is_kept`` is a mask of the ``FinerTraces.pairs`` to keep.
        """
        state = self._state
        counts, matched, sequence = dict(state.counts), state.shared.counts, state.sequence
        if state.idle is not None:
            idle = state.idle.keys()
            state.idle.forget(np.unique(idle[is_gone(idle)]))
        keys = state.table.keys()
        if len(keys := np.unique(keys[is_gone(keys)])):
            self._end_at(keys, self.newest_us)
        state.finer.load(state.finer.pairs[is_kept])
        state.counts, state.shared.counts, state.sequence = counts, matched, sequence

    def _idle_finer(
        self, idle: IdleTraces, batch: EventBatch, finer: EventBatch, rows: NDArray[np.intp]
    ) -> EndedTraces:
        """Return the finer traces that the idle timeout ends, each with the row of ``finer`` before which it ends.

        ``rows`` has the index in ``batch`` of each row of ``finer``. All rows of ``batch`` advance time.
        """
        others = np.setdiff1d(np.arange(len(batch)), rows)  # rows without finer keys only advance time
        order = np.argsort(np.concatenate([rows, others]), kind="stable")
        keys = np.concatenate([finer.key_hashes, np.zeros(len(others), np.uint64)])[order]
        times_us = np.concatenate([finer.time_us, batch.time_us[others]])[order]
        is_last = np.concatenate([self._is_end_event(finer), np.ones(len(others), np.bool_)])[order]
        ended = idle.advance(keys, times_us, is_last, self.newest_us)
        before = np.cumsum(np.concatenate([[False], order < len(rows)]))
        return replace(ended, rows=before[ended.rows])

    def _is_end_event(self, batch: EventBatch) -> NDArray[np.bool_]:
        ends = np.array([name in self.options.end_events or name == ENDED for name in [*batch.type_names, ""]])
        is_end: NDArray[np.bool_] = ends[batch.type_codes]
        return is_end

    def _end_at(self, keys: NDArray[np.uint64], time_us: int) -> LaneOutput:
        size = len(keys)
        return self._end(
            EndedTraces(rows=np.zeros(size, np.int64), keys=keys, times_us=np.full(size, time_us, np.int64))
        )

    def _end(self, ended: EndedTraces) -> LaneOutput:
        return self._advance(_end_rows(ended), np.ones(len(ended), np.bool_))

    def _note_finer(self, homes: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
        finer = self._state.finer
        finer.note(homes, keys)
        if finer.is_worth_sweeping:
            finer.keep(np.concatenate([self._state.table.keys(), keys]))

    def _advance(
        self,
        batch: EventBatch,
        is_end: NDArray[np.bool_],
        passed_us: NDArray[np.int64] | None = None,
        places: NDArray[np.intp] | None = None,
    ) -> LaneOutput:
        """Match the rows of a batch, and return the output. The rows are hashed by the lane's key.

        ``is_end`` marks the rows that end their traces, including rows inserted for the ends of idle traces.
        ``passed_us`` has, for each row, the newest time so far, including events of other lanes. It is None if there
        are no other lanes. ``places`` has the index of each row in the lane's input, and ``NIL`` for an inserted row.
        If ``places`` is None, no row has an index.
        """
        state, first = self._state, self._state.sequence
        columns = self._columns(batch)
        if is_end.any():
            columns.types[is_end] = columns.classes[is_end] = self._layout.codes[TRACE_END]
            state.counts["ends"] += int(is_end.sum())
        clocks = state.table.clocks(columns.times, is_end & ~batch.is_ended)
        if passed_us is not None:
            clocks = np.maximum.accumulate(np.maximum(clocks, passed_us))
        visits = self._visits(columns, places)
        has_followers = self.is_followed and bool(state.guards.guards)
        state.moves = Moves.of(visits, ~is_end | batch.is_ended) if has_followers else None
        if state.open is not None:
            state.open.note(visits, columns, batch, mark=self._layout.codes[TRACE_END], table=state.table)
        shared = state.shared.process(
            visits, columns, clocks, state.guards.tables, first_sequence=first, released=state.table.released
        )
        runs = self._run(batch, visits, columns, clocks)
        state.counts["released"] += state.shared.take_released() + state.runs.take_released()
        state.shadow.note(visits, first, state.guards)
        results = EngineResults(
            batch=batch, times=columns.times, clocks=clocks, visits=visits, shared=shared, runs=runs
        )
        output = self._report.of_batch(state, results)
        state.shadow.forget(visits.traces[visits.ends])
        state.sequence += len(batch)
        self._remember(batch, columns.types, first)
        state.forget_closed_traces()
        return output

    def _visits(self, columns: Columns, places: NDArray[np.intp] | None) -> Visits:
        return self._state.table.advance(columns, self._state.guards)

    def _columns(self, batch: EventBatch) -> Columns:
        """Return the columns of a batch that kernels read.

        The array of types is reused, because allocating it costs more than filling it.
        """
        layout, codes, other = self._layout, self._codes, len(self._layout.types)
        lookup = np.array([codes.get(name, other) for name in [*batch.type_names, ""]], np.int32)
        rows = len(batch)
        if rows > len(self._types):
            self._types = np.zeros(rows, np.int32)
        types = self._types[:rows]
        np.take(lookup, batch.type_codes, out=types, mode="wrap")  # -1: the last entry
        reader = BatchColumns(batch)
        passed = layout.predicates.evaluate(batch, reader)
        cells = layout.listening.index.place(batch, types, reader)
        classes = classes_of(types, passed, self._symbols, self._state.guards)
        keys, times = writable(batch.key_hashes), writable(batch.time_us)
        return Columns(types=types, classes=classes, keys=keys, times=times, passed=passed, cells=cells)

    def _run(self, batch: EventBatch, visits: Visits, columns: Columns, clocks: NDArray[np.int64]) -> list[RunOutput]:
        if not self._layout.run_numbers:
            return []
        state, first, ids = self._state, self._state.sequence, batch.columns.column("id")

        def id_of(sequence: int) -> str:
            return str(ids[sequence - first].as_py()) if sequence >= first else state.id_of(sequence)

        run_input = RunInput(
            batch=batch,
            visits=visits,
            types=columns.types,
            clocks=clocks,
            passed=columns.passed,
            cells=columns.cells,
            guards=state.guards.tables,
            released=state.table.released,
            first_sequence=first,
        )
        output = state.runs.process(run_input, id_of)
        passed_us = max(state.table.newest_us, int(clocks.max(initial=EARLIEST)))  # including events of other lanes
        return [output, state.runs.pass_time(passed_us, id_of)]

    def _remember(self, batch: EventBatch, types: NDArray[np.int32], first: int) -> None:
        """Store the events that some step may have bound, because later results name these events."""
        state = self._state
        if len(types) > _MANY_ROWS:
            is_held = np.zeros(len(types), np.bool_)
            for held in (state.shared.held_sequences(), state.runs.held_sequences()):
                is_held[held[held >= first] - first] = True
            rows = np.flatnonzero(is_held)
        else:
            rows = np.flatnonzero(self._is_named[types])
        if len(rows):
            state.events.append(events_of_batch(batch, rows, first, keeps_data=self._keeps_data))
        if state.events.is_worth_compacting(state.shared.stats.held + state.runs.held):
            state.events.compact(state.held_sequences())


def _is_named(layout: Layout) -> NDArray[np.bool_]:
    """Return, for each type code, whether some step may bind an event of the type."""
    atoms = [atom for pattern in layout.patterns for atom in pattern.automaton.atoms]
    is_bound_type = np.full(len(layout.types) + 1, any(atom.is_any_type for atom in atoms))
    codes = layout.codes
    is_bound_type[[codes[name] for atom in atoms if not atom.is_any_type for name in atom.types]] = True
    is_bound_type[codes[TRACE_END]] = False
    return is_bound_type


def _end_rows(ended: EndedTraces) -> EventBatch:
    return EventBatch.of_ended(ended.keys, ended.times_us, kind=TRACE_END)


def _with_ends(batch: EventBatch, ended: EndedTraces) -> tuple[EventBatch, NDArray[np.bool_]]:
    size = len(batch)
    places = np.concatenate([2 * np.arange(size) + 1, 2 * ended.rows])
    order = np.argsort(places, kind="stable")
    mixed = EventBatch.joined([batch, _end_rows(ended)]).take(order)
    return mixed, (order >= size) | mixed.is_ended
