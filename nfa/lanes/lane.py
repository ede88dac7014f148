"""The patterns of one correlation key: both engines over one table of traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct, writable
from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.conditions.predicates import BatchColumns
from nfa.guards.protocol import TRACE_END, Guard
from nfa.guards.tables import GuardLayout, GuardTables, Interned
from nfa.kernels.traces import NIL, UNGUARDED, Columns
from nfa.lanes.event_classes import classes_of
from nfa.lanes.guard_findings import NOTHING_FOUND, guard_findings
from nfa.lanes.layout import CompiledPattern, Layout, compile_pattern, lay_out
from nfa.lanes.shadow import ShadowLedger
from nfa.registered import RegisteredPattern
from nfa.results.batch import LaneOutput, MatcherStats
from nfa.results.event_store import EventStore, events_of_batch
from nfa.results.found import NO_MATCHES, MatchTable, joined, of_findings, of_runs, without_repeats
from nfa.runs.columns import RunInput
from nfa.runs.engine import FoundRuns, RunEngine, RunOutput, Ties
from nfa.runs.program import RunListening, needs_trace_end
from nfa.shared.engine import Findings, SharedEngine
from nfa.traces.finer_keys import FinerTraces
from nfa.traces.idle_traces import EndedTraces, IdleTraces
from nfa.traces.table import TraceTable, Visits, is_deviant
from nfa.traces.trace_ends import end_rows, with_ends
from streams import EventBatch

KeyChoice: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]

_MANY_ROWS = 4_096  # from here on it pays to ask which of a batch's events are bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOptions:
    """What is the same for all lanes of a matcher.

    Attributes:
        end_events: Types that end a trace.
        match_limit: Most matches told per trace, pattern and event.
        ties: Whether events of one time are ordered by the log or not at all.
        may_be_guarded: A guard may come: then traces are known from their first event on.
        idle_timeout_us: How long a trace may be without an event before it ends; None: for ever.
    """

    end_events: frozenset[str]
    match_limit: int
    ties: Ties
    may_be_guarded: bool
    idle_timeout_us: int | None = None


_COUNTS = (
    "timeouts",
    "run_matches",
    "run_endings",
    "lost_matches",
    "lost_runs",
    "corrections",
    "released",
    "shadow_lost",
    "ends",
)


class Lane:
    """Runs patterns over batches whose rows carry the lane's key.

    Args:
        options: Those of the matcher.
        is_finer: The key is finer than the correlation key.
    """

    def __init__(self, options: LaneOptions, *, is_finer: bool = False) -> None:
        self.options = options
        self.is_finer = is_finer
        self.patterns: tuple[RegisteredPattern, ...] = ()
        self.guards = GuardTables({})
        self.guard_version: int | None = None
        self.loading: frozenset[int] = frozenset()  # guards that traces of saved state will follow
        self.table = TraceTable(is_simultaneous=options.ties == "simultaneous")
        self.shadow = ShadowLedger()
        self.shared = SharedEngine()
        self.runs = RunEngine(ties=options.ties, match_limit=options.match_limit)
        self.events = EventStore()
        timeout_us = options.idle_timeout_us
        self.idle = None if timeout_us is None else IdleTraces(timeout_us)
        self.finer = FinerTraces()
        self.sequence = 0
        self.counts = dict.fromkeys(_COUNTS, 0)
        self._types = np.zeros(0, np.int32)
        self._layout = lay_out((), frozenset(), options.end_events)
        self._compiled: dict[RegisteredPattern, CompiledPattern] = {}
        self._keeps_data = False
        self.configure(())

    def set_guard(self, version: int, guard: Guard) -> None:
        """Let traces that begin from here on follow a guard; open traces keep theirs. ``configure`` follows."""
        self.guards.guards[version] = guard
        self.guard_version = version

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        """Versions that open traces follow or new traces will."""
        states = (self.guards.states[monitor] for monitor in np.unique(self.table.monitors()).tolist())
        versions = {state[0] for state in states if state is not None}
        versions |= self.shadow.versions() | self.guards.bits.versions_in_use() | self.loading
        return frozenset(versions if self.guard_version is None else versions | {self.guard_version})

    def configure(self, patterns: Sequence[RegisteredPattern]) -> None:
        """Tables for these patterns and the current guards; the state of open traces moves along."""
        self._forget_unused_guards()
        is_log_ordered = self.options.ties == "log"
        self._compiled = {
            pattern: self._compiled.get(pattern)
            or compile_pattern(pattern.automaton, pattern.view, is_log_ordered=is_log_ordered)
            for pattern in patterns
        }
        layout = lay_out(list(self._compiled.values()), self.guards.guards.values(), self.options.end_events)
        codes = layout.codes
        number_before = {pattern: number for number, pattern in enumerate(self.patterns)}
        sources = [number_before.get(pattern, NIL) for pattern in patterns]
        limit = self.options.match_limit
        self.shared.configure(
            [layout.shared_pattern(number, limit) for number in range(len(patterns))],
            sources,
            state_range=layout.state_range,
            types=len(codes) + 1,
            index=layout.listening.index,
        )
        self._configure_runs(layout, patterns)
        self.guards.compile(
            GuardLayout(
                types=layout.types,
                views=[pattern.view if pattern.is_guarded else None for pattern in patterns],
                state_range=layout.state_range,
                negation_range=layout.negation_range,
                start=self._start_of_trace(),
                is_simultaneous=self.options.ties == "simultaneous",
            )
        )
        self.table.set_monitors(*self.guards.restart_bits())
        self.table.configure(
            types=len(codes) + 1,
            wants=[*layout.wants(), *self.runs.wants(codes)],
            end_types=[codes[name] for name in sorted(self.options.end_events)],
            tracks_all=self.options.may_be_guarded
            or self.guard_version is not None
            or any(needs_trace_end(automaton.pattern, automaton) for automaton in self.runs.automata),
            end_mark=codes[TRACE_END],
            index=layout.listening.index,
        )
        self._layout, self.patterns = layout, tuple(patterns)
        self._is_named = _is_named(layout)
        self._keeps_data = any(pattern.query.pattern.returns for pattern in patterns)

    def _configure_runs(self, layout: Layout, patterns: Sequence[RegisteredPattern]) -> None:
        numbers = layout.run_numbers
        automata = [layout.patterns[number].automaton for number in numbers]
        columns = [layout.guard_columns(number) for number in numbers]
        heard = RunListening(listening=layout.listening, numbers=numbers)
        budgets = [patterns[number].budget for number in numbers]
        self.runs.configure(automata, layout.codes, layout.predicates, columns, heard, budgets)
        self._run_numbers, self._run_aliases = np.array(numbers, np.int32), _aliases_of(automata)
        self._repeating = [number for number, one in zip(numbers, automata, strict=True) if one.may_repeat]

    def enter_bits(self, traces: NDArray[np.int32], states: Sequence[Interned]) -> None:
        """Put open traces of saved state under bit tables again; unguarded, if their guard has none."""
        bits = self.guards.bits
        monitors = [
            bits.enter(trace, version, state.seen, self.guards) if bits.takes(version) else UNGUARDED
            for trace, (version, state) in zip(traces.tolist(), states, strict=True)
        ]
        self.table.set_monitors(traces, np.array(monitors, np.int32))

    def process(self, batch: EventBatch, homes: NDArray[np.uint64] | None = None) -> LaneOutput:
        """Match one batch; rows are taken in their order.

        Args:
            batch: Its hashed keys are those of the lane.
            homes: The hashed correlation keys, where the lane's are finer.
        """
        if homes is not None:
            self._note_finer(homes, batch.key_hashes)
        if self.idle is None or not len(batch):
            return self._advance(batch)
        ended = self.idle.advance(batch.key_hashes, batch.time_us, self._is_end_event(batch), self.table.newest_us)
        return self._advance(*with_ends(batch, ended)) if len(ended) else self._advance(batch)

    def end_traces(self, homes: NDArray[np.uint64], time_us: int | None) -> LaneOutput:
        """End the traces of some correlation keys.

        Args:
            homes: Hashed correlation keys.
            time_us: When they end; at the newest time if that is earlier, or None.
        """
        newest_us = self.table.newest_us
        keys = np.unique(np.concatenate([homes, self.finer.of(homes)]))
        if self.idle is not None:
            self.idle.forget(keys)
        when = newest_us if time_us is None else min(time_us, newest_us)
        times = np.full(len(keys), when, np.int64)
        return self._end(EndedTraces(rows=np.zeros(len(keys), np.int64), keys=keys, times_us=times))

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        """Forget the traces of other correlation keys, as if none of their events had come; nothing is emitted for
        them.

        They end as any trace does, so that nothing in an engine is left of them. How far time has come stays.

        Args:
            is_kept: Which of some hashed correlation keys stay.
            has_counts: Go on from the counts so far; else from 0.
        """
        counts, matched, sequence = dict(self.counts), self.shared.counts, self.sequence
        pairs = self.finer.pairs
        is_home = is_kept(pairs[:, 0])

        def gone(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
            is_gone = np.isin(keys, pairs[~is_home, 1]) if self.is_finer else ~is_kept(keys)
            return np.unique(keys[is_gone])

        if self.idle is not None:
            self.idle.forget(gone(self.idle.keys()))
        if len(keys := gone(self.table.keys())):
            times = np.full(len(keys), self.table.newest_us, np.int64)
            self._end(EndedTraces(rows=np.zeros(len(keys), np.int64), keys=keys, times_us=times))
        self.finer.load(pairs[is_home])
        self.counts, self.shared.counts, self.sequence = counts, matched, sequence
        if not has_counts:
            self._forget_counts()

    def pass_time(self, watermark_us: int) -> list[LaneOutput]:
        """Decide what is decided once every event before the watermark has been seen; it is remembered."""
        found = []
        if self.idle is not None and len(ended := self.idle.pass_time(watermark_us)):
            found.append(self._end(ended))
        self.table.pass_time(watermark_us)
        return [*found, self._output_of_time(self.runs.pass_time(watermark_us, self._id_of))]

    def _is_end_event(self, batch: EventBatch) -> NDArray[np.bool_]:
        ends = np.array([name in self.options.end_events for name in [*batch.type_names, ""]])
        found: NDArray[np.bool_] = ends[batch.type_codes]
        return found

    def _end(self, ended: EndedTraces) -> LaneOutput:
        return self._advance(end_rows(ended), np.ones(len(ended), np.bool_))

    def _forget_counts(self) -> None:
        self.counts = {**dict.fromkeys(_COUNTS, 0), "ends": self.sequence}  # no row so far counts as an event
        self.shared.counts = (0, 0, 0)
        self.table.forget_counts()
        self.restart_peak()

    def _note_finer(self, homes: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
        self.finer.note(homes, keys)
        if self.finer.is_worth_sweeping:
            self.finer.keep(np.concatenate([self.table.keys(), keys]))

    def _advance(self, batch: EventBatch, is_end: NDArray[np.bool_] | None = None) -> LaneOutput:
        """Match rows, some of which may be no events but end their trace."""
        first = self.sequence
        columns = self._columns(batch)
        if is_end is not None:
            columns.types[is_end] = columns.classes[is_end] = self._layout.codes[TRACE_END]
            self.counts["ends"] += int(is_end.sum())
        visits = self.table.advance(columns, self.guards)
        found = self.shared.process(
            visits, columns, self.guards.tables, first_sequence=first, released=self.table.released
        )
        runs = self._run(batch, visits, columns)
        self.counts["released"] += self.shared.take_released() + self.runs.take_released()
        self.shadow.note(visits, first, self.guards)
        output = self._output(batch, visits, found, runs, columns.times)
        self.shadow.forget(visits.traces[visits.ends])
        self.sequence += len(batch)
        self._remember(batch, columns.types, first)
        self.table.release_closed(self.guards)
        if self.table.is_worth_sweeping:
            capacity = self.table.capacity
            held = self.shared.held_traces(capacity) | self.runs.held_traces(capacity)
            self.table.forget_idle(held, int(self.guards.tables.start[0]))
        return output

    def finish(self) -> LaneOutput:
        """End every trace: the input is finite and was all of it."""
        return self._output_of_time(self.runs.finish(self._id_of))

    @property
    def waits_for_time(self) -> bool:
        """Whether some pattern is decided by time that passes."""
        return bool(self._layout.run_numbers)

    def stats(self) -> MatcherStats:
        """Counts so far."""
        shared, traces, counts = self.shared.stats, self.table.counters, self.counts
        return MatcherStats(
            events=self.sequence - counts["ends"],
            matches=shared.matches + counts["run_matches"],
            timeouts=counts["timeouts"],
            endings=shared.endings + counts["run_endings"],
            corrections=counts["corrections"],
            released=counts["released"],
            shadow_lost=counts["shadow_lost"],
            ignored_violations=traces["ignored"],
            deviations=traces["deviations"],
            overflow=shared.overflow + counts["lost_matches"],
            lost_runs=counts["lost_runs"],
            out_of_order=traces["out_of_order"],
            open_traces=traces["open"],
            held=shared.held + self.runs.held,
            peak_held=shared.peak_held + self.runs.peak_held,
            nodes=shared.nodes + self.runs.runs,
            state_bytes=shared.state_bytes + self.runs.used_bytes + 16 * traces["open"],
            guard_steps=traces["guard_steps"],
            guard_builds=self.guards.builds,
            guard_refusals=self.guards.refused,
            under_bits=self.guards.bits.entered,
        )

    def restart_peak(self) -> None:
        """Count ``peak_held`` from here on."""
        self.shared.restart_peak()
        self.runs.restart_peak()

    def held_sequences(self) -> NDArray[np.int64]:
        """Sequence numbers of bound events, ascending."""
        return distinct(np.concatenate([self.shared.held_sequences(), self.runs.held_sequences()]))

    def _columns(self, batch: EventBatch) -> Columns:
        """The batch as kernels take it; the room for types is kept, as fresh memory costs more than filling it."""
        codes, other = self._layout.codes, len(self._layout.types)
        known = {**codes, TRACE_END: other}
        lookup = np.array([known.get(name, other) for name in [*batch.type_names, ""]], np.int32)
        rows = len(batch)
        if rows > len(self._types):
            self._types = np.zeros(rows, np.int32)
        types = self._types[:rows]
        np.take(lookup, batch.type_codes, out=types, mode="wrap")  # -1 is the last
        reader = BatchColumns(batch)
        passed = self._layout.predicates.evaluate(batch, reader)
        cells = self._layout.listening.index.place(batch, types, reader)
        classes = classes_of(types, passed, self._layout, self.guards)
        keys, times = writable(batch.key_hashes), writable(batch.time_us)
        return Columns(types=types, classes=classes, keys=keys, times=times, passed=passed, cells=cells)

    def _run(self, batch: EventBatch, visits: Visits, columns: Columns) -> list[RunOutput]:
        if not self._layout.run_numbers:
            return []
        first, ids = self.sequence, batch.columns.column("id")

        def id_of(sequence: int) -> str:
            return str(ids[sequence - first].as_py()) if sequence >= first else self._id_of(sequence)

        given = RunInput(
            batch=batch,
            visits=visits,
            types=columns.types,
            passed=columns.passed,
            cells=columns.cells,
            guards=self.guards.tables,
            released=self.table.released,
            first_sequence=first,
        )
        found = self.runs.process(given, id_of)
        return [found, self.runs.pass_time(self.table.newest_us, id_of)]

    def _id_of(self, sequence: int) -> str:
        stored = self.events.events
        row = int(stored.find(np.array([sequence], np.int64))[0])
        return str(stored.columns.column("id")[row].as_py())

    def _output(
        self, batch: EventBatch, visits: Visits, found: Findings, runs: Sequence[RunOutput], times: NDArray[np.int64]
    ) -> LaneOutput:
        matches = joined([of_findings(found, times), *(self._table_of(run.matches) for run in runs)])
        run_endings, run_lost, timeouts = self._of_runs(runs)
        endings = np.concatenate([found.endings, run_endings])
        guarded = guard_findings(self.guards, self.table, visits, endings, self._layout.state_range)
        dropped = np.column_stack([found.dropped, np.zeros((len(found.dropped), 3), np.int64)])
        is_deviating, is_lost = self._of_deviating(matches, visits, times)
        return LaneOutput(
            patterns=self.patterns,
            batch=batch,
            first_sequence=self.sequence,
            stored=self.events.parts,
            matches=matches,
            is_deviating=is_deviating,
            is_lost=is_lost,
            corrections=self._corrections(runs),
            timeouts=timeouts,
            ending_rows=guarded.ending_rows,
            deviation_rows=guarded.deviation_rows,
            lost_rows=np.concatenate([dropped, run_lost]),
            monitors=guarded.monitors,
            classes=guarded.classes,
            guards=self.guards.guards,
        )

    def _of_deviating(
        self, matches: MatchTable, visits: Visits, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which matches are of traces that broke a constraint, and which of them eviction would have lost.

        What time alone decides is decided before the first event that is later, whatever event happens to tell it; so
        it is not of a deviating trace if the trace deviates by that event or after it.
        """
        is_deviating, is_lost = np.zeros(len(matches), np.bool_), np.zeros(len(matches), np.bool_)
        if not self.guards.guards or not len(matches):
            return is_deviating, is_lost
        is_told = matches.rows != NIL
        places = visits.places_of(matches.rows[is_told])
        is_deviating[is_told] = is_deviant(visits.after[places])
        waited = np.flatnonzero(~is_told)
        if len(waited):
            numbers, monitors = self.table.numbers(), self.table.monitors()
            found = np.searchsorted(numbers, matches.traces[waited])
            is_open = found < len(numbers)
            is_open[is_open] = numbers[found[is_open]] == matches.traces[waited[is_open]]
            is_deviating[waited[is_open]] = is_deviant(monitors[found[is_open]])
        broken = visits.deviations()
        passed_us = np.maximum.accumulate(times)[visits.rows[broken]]
        since_us = dict(zip(visits.traces[broken].tolist(), passed_us.tolist(), strict=True))
        by_time = ~is_told
        by_time[is_told] = times[matches.rows[is_told]] > matches.detected_us[is_told]
        for match in np.flatnonzero(is_deviating & by_time).tolist() if since_us else []:
            since = since_us.get(int(matches.traces[match]))
            is_deviating[match] = since is None or since <= matches.detected_us[match]
        starts = matches.starts
        for place in np.flatnonzero(is_deviating).tolist() if len(self.shadow) else []:
            events = slice(starts[place], matches.ends[place])
            bound = list(zip(matches.aliases[events].tolist(), matches.sequences[events].tolist(), strict=True))
            pattern, trace = self.patterns[int(matches.patterns[place])], int(matches.traces[place])
            is_lost[place] = self.shadow.would_be_lost(pattern, trace, bound, self.guards.guards)
        self.counts["shadow_lost"] += int(is_lost.sum())
        return is_deviating, is_lost

    def _corrections(self, runs: Sequence[RunOutput]) -> MatchTable:
        if not runs:
            return NO_MATCHES
        found = joined([self._table_of(run.corrections) for run in runs])
        self.counts["corrections"] += len(found)
        return found

    def _output_of_time(self, run: RunOutput) -> LaneOutput:
        matches = self._table_of(run.matches)
        endings, lost, timeouts = self._of_runs([run])
        is_deviating, is_lost = self._of_deviating(matches, self.table.no_visits, np.zeros(0, np.int64))
        return LaneOutput(
            patterns=self.patterns,
            batch=EventBatch.from_events([]),
            first_sequence=self.sequence,
            stored=self.events.parts,
            matches=matches,
            is_deviating=is_deviating,
            is_lost=is_lost,
            corrections=self._corrections([run]),
            timeouts=timeouts,
            ending_rows=np.zeros((len(endings), 6), np.int64),
            deviation_rows=NOTHING_FOUND.deviation_rows,
            lost_rows=lost,
            monitors={},
            classes={},
            guards={},
        )

    def _of_runs(self, runs: Sequence[RunOutput]) -> tuple[NDArray[np.int64], NDArray[np.int64], MatchTable]:
        """Endings, losses and timeouts of the run engine under the lane's pattern numbers; all of it counted."""
        if not runs:
            return np.zeros((0, 5), np.int64), np.zeros((0, 6), np.int64), NO_MATCHES
        endings = np.concatenate([np.zeros((0, 5), np.int64), *(run.endings for run in runs)])
        endings[:, 4] = self.runs.columns_of(endings[:, 4])
        lost = np.concatenate([np.zeros((0, 6), np.int64), *(run.lost for run in runs)])
        for rows in (endings, lost):
            rows[:, 1] = self._run_numbers[rows[:, 1]] if len(rows) else rows[:, 1]
        timeouts = joined([self._table_of(run.timeouts) for run in runs])
        self.counts["timeouts"] += len(timeouts)
        self.counts["run_matches"] += sum(len(run.matches) for run in runs)
        self.counts["run_endings"] += len(endings)
        self.counts["lost_matches"] += int(lost[:, 2].sum())
        self.counts["lost_runs"] += int(lost[:, 3].sum())
        return endings, lost, timeouts

    def _table_of(self, found: FoundRuns) -> MatchTable:
        return without_repeats(of_runs(found, self._run_numbers, self._run_aliases), self._repeating)

    def _remember(self, batch: EventBatch, types: NDArray[np.int32], first: int) -> None:
        """Keep the events that some step may have bound; now and then forget those that nothing binds."""
        if len(types) > _MANY_ROWS:
            is_held = np.zeros(len(types), np.bool_)
            for held in (self.shared.held_sequences(), self.runs.held_sequences()):
                is_held[held[held >= first] - first] = True
            rows = np.flatnonzero(is_held)
        else:
            rows = np.flatnonzero(self._is_named[types])
        self.events.append(events_of_batch(batch, rows, first, keeps_data=self._keeps_data))
        if self.events.is_worth_compacting(self.shared.stats.held + self.runs.held):
            self.events.compact(self.held_sequences())

    def _start_of_trace(self) -> int:
        """Monitor state of a new trace."""
        version = self.guard_version
        return UNGUARDED if version is None else self.guards.intern(version, self.guards.guards[version].start)

    def _forget_unused_guards(self) -> None:
        """Monitor states and guard versions that neither an open trace nor a new one can be in are given up."""
        old = self.guards
        fresh = GuardTables({version: old.guards[version] for version in self.guard_versions_in_use})
        fresh.builds, fresh.refused, fresh.bits = old.builds, old.refused, old.bits
        numbers = np.arange(len(old.states), dtype=np.int32)
        for number in np.unique(self.table.monitors()).tolist():
            if (state := old.states[number]) is not None:
                numbers[number] = fresh.intern(*state)
        self.table.renumber_monitors(numbers)
        self.guards = fresh


def _aliases_of(automata: Sequence[PatternAutomaton]) -> NDArray[np.int32]:
    """Number of each atom's alias in its pattern, (patterns, atoms)."""
    rows = [[one.aliases.index(atom.alias) for atom in one.atoms] for one in automata]
    width = max(map(len, rows), default=1)
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], np.int32).reshape(-1, width)


def _is_named(layout: Layout) -> NDArray[np.bool_]:
    """Whether some step may bind an event, by type code."""
    atoms = [atom for pattern in layout.patterns for atom in pattern.automaton.atoms]
    named = np.full(len(layout.types) + 1, any(atom.is_any_type for atom in atoms))
    codes = layout.codes
    named[[codes[name] for atom in atoms if not atom.is_any_type for name in atom.types]] = True
    named[codes[TRACE_END]] = False
    return named
