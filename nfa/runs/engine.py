"""The run engine, for patterns that the shared-node engine cannot run. It has one run per partial match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.conditions.bytecode import new_stack
from nfa.conditions.predicates import PredicateTable
from nfa.conditions.texts import TextPool
from nfa.conditions.values import TEXT
from nfa.kernels.conditions import Bindings
from nfa.kernels.runs import rows as kernel
from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import BY_TRACES, BY_WORK, LATEST, NIL, Conditions, Ended, Limits, RunBatch, RunMatches
from nfa.runs import accounts, viewing
from nfa.runs import saving as run_saving
from nfa.runs import state as run_state
from nfa.runs.accounts import Account
from nfa.runs.columns import RunInput, run_batch
from nfa.runs.output import Chains, Collected, RunOutput, unrolled
from nfa.runs.program import RunListening, RunPattern, compile_runs, listeners
from nfa.runs.ranked_pairs import RankedPairs
from nfa.runs.state import migrated
from nfa.runs.upkeep import close_pair, finish, pass_time, unpark_all
from nfa.traces.table import Want
from streams import Ties, WorkBudget, zeros_of

RUN_LIMIT = 100_000

_ROOM = 16  # initial size of each array of results, which grows on demand
_LEAST_SWEEP = 4_096
_MOST_FOUND = 65_536  # the array of results is not enlarged in advance beyond this size


class RunEngine:
    """The engine that advances one run per partial match, in all traces of a shard.

    At most ``match_limit`` matches are emitted per trace, pattern and event. For ranked matches, the limit applies per
    trace, pattern and detection time. A pattern has at most ``run_limit`` runs in a trace. Further runs are not
    created, but counted as lost.
    """

    def __init__(
        self,
        *,
        ties: Ties = "log",
        match_limit: int = 10_000,
        run_limit: int = RUN_LIMIT,
    ) -> None:
        self._is_simultaneous = ties == "simultaneous"
        self._match_limit, self._run_limit = match_limit, run_limit
        self._texts = TextPool()
        self._compiled = compile_runs((), {}, PredicateTable.of(()), self._texts, is_simultaneous=self._is_simultaneous)
        self._heard = RunListening()
        self._budgets: tuple[WorkBudget, ...] = ()
        self._accounts: list[Account] = []
        self._state = run_state.new_state(columns=0, leads=0, width=1)
        self._last_times = np.zeros(0, np.int64)
        self._id_of: Callable[[int], str] = str
        self._found = zeros_of(RunMatches, _ROOM)
        self._ended = _new_ended(_ROOM)
        self._sweep_at = _LEAST_SWEEP

    @property
    def automata(self) -> tuple[PatternAutomaton, ...]:
        return self._compiled.automata

    @property
    def held(self) -> int:
        """Number of events in memory that at least one run binds."""
        return int(self._state.counters[tables.EVENTS])

    @property
    def runs(self) -> int:
        return int(self._state.counters[tables.RUNS])

    @property
    def peak_held(self) -> int:
        """The largest number of bound events after any event, including events of matches that were not emitted yet."""
        return int(self._state.counters[tables.PEAK_EVENTS])

    def take_released(self) -> int:
        """Return the number of bound events dropped because of a guard since the last call.

        The counter restarts from 0.
        """
        released = int(self._state.counters[tables.RELEASED])
        self._state.counters[tables.RELEASED] = 0
        return released

    def restart_peak(self) -> None:
        self._state.counters[tables.PEAK_EVENTS] = self._state.counters[tables.EVENTS]

    @property
    def used_bytes(self) -> int:
        """The memory in use for runs, bound events and their texts, in bytes. Spare capacity does not count."""
        return run_state.used_bytes(self._state) + self._texts.size_bytes

    def columns_of(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the columns of a guard's tables that belong to states of automata.

        ``states`` are numbered as in ``RunOutput.endings``.
        """
        return self._compiled.program.column[states].astype(np.int64)

    def held_sequences(self) -> NDArray[np.int64]:
        """Return the sequence numbers of the events that at least one run binds, in any order."""
        state = self._state
        return state.event_sequence[state.event_references > 0]

    def held_traces(self, capacity: int) -> NDArray[np.bool_]:
        """Return a mask of the trace numbers below ``capacity`` for which the engine retains data."""
        held = np.zeros(capacity, np.bool_)
        size = min(capacity, len(self._state.trace_pairs))
        held[:size] = self._state.trace_pairs[:size] != NIL
        return held

    def held_pairs(self, now_us: int) -> NDArray[np.int64]:
        return viewing.held_pairs(self._state, self._compiled, now_us)

    def chain(self, node: int) -> list[tuple[int, int]]:
        """Return the events of a partial match, oldest first, as (atom number, sequence number).

        ``node`` is the match's newest node, from ``held_pairs``.
        """
        return viewing.chain(self._state, node)

    def window_end(self, pattern: int, node: int) -> int | None:
        """Return the time at which the business-time window of a partial match ends, or None if it has no end.

        ``node`` is the match's newest node, from ``held_pairs``.
        """
        return viewing.window_end(self._state, self._compiled, pattern, node)

    def latest_window_end(self, pattern: int, newest_us: int) -> int | None:
        """Return the time at which the last window of a pattern's runs ends, but at least ``newest_us``.

        If a window has no end, return None.
        """
        return viewing.latest_window_end(self._state, self._compiled, pattern, newest_us)

    def configure(
        self,
        patterns: Sequence[RunPattern],
        codes: Mapping[str, int],
        predicates: PredicateTable,
        heard: RunListening | None = None,
    ) -> None:
        """Replace the running patterns. Open traces keep the runs of patterns that remain registered.

        The code after the last code in ``codes`` represents all other types. ``predicates`` has the unary conditions of
        all steps. ``heard`` limits the events to which patterns listen. If it is None, patterns listen to all events of
        their types.
        """
        sources = [pattern.source for pattern in patterns]
        self._note_work()
        self._accounts = [Account() if source == NIL else self._accounts[source] for source in sources]
        self._budgets = tuple(pattern.budget for pattern in patterns)
        old, self._heard = self._compiled, heard or RunListening()
        self._compiled = compile_runs(
            patterns, codes, predicates, self._texts, is_simultaneous=self._is_simultaneous, heard=heard
        )
        self._apply_budgets()
        if self._state.counters[tables.PAIRS] == 0:
            self._state = run_state.emptied(self._state, self._compiled)
            return
        unpark_all(self._state)
        self._state = migrated(self._state, old, self._compiled, sources)

    def wants(self, codes: Mapping[str, int]) -> list[Want]:
        places = {(cell, code) for cell, code, _ in listeners(self._compiled.automata, codes, self._heard)}
        return [Want(type_code=code, predicate=0, opens=True, cell=cell) for cell, code in sorted(places)]

    def process(self, run_input: RunInput, id_of: Callable[[int], str]) -> RunOutput:
        """Advance all runs by the relevant rows of a batch, and return the results.

        ``id_of`` returns the id of an event by its sequence number.
        """
        collected, visits = Collected(), run_input.visits
        if not self._compiled.automata or not len(visits):
            return collected.output
        self._id_of = id_of
        self.note_times(visits.traces, run_input.batch.time_us[visits.rows])
        places = run_input.concerns(self._compiled)
        columns = run_batch(run_input, places, self._compiled, self._texts)
        rows = visits.rows[places].astype(np.int64)
        self._run(columns, collected, rows, run_input.clocks)
        if len(self._texts) >= self._sweep_at:
            self._forget_texts()
        return collected.output

    def note_times(self, traces: NDArray[np.int32], times_us: NDArray[np.int64]) -> None:
        """Store the times of the latest events of traces. Matches that the end of the input decides are detected then.

        If a trace occurs more than once, its last time counts.
        """
        needed = int(traces.max(initial=-1)) + 1
        self._state = run_state.with_traces(self._state, needed)
        if needed > len(self._last_times):
            self._last_times = np.resize(self._last_times, max(needed, 2 * len(self._last_times)))
        self._last_times[traces] = times_us

    def pass_time(self, watermark_us: int, id_of: Callable[[int], str]) -> RunOutput:
        """Advance time to the watermark, and return the results that waited for this time.

        All events before the watermark must have been processed. Ranked matches are emitted once the watermark has
        passed their detection time.
        """
        collected = Collected()
        self._id_of = id_of
        self._let_time_pass(self._state.pair_pattern != NIL, watermark_us, collected)
        return collected.output

    def _let_time_pass(self, pair_mask: NDArray[np.bool_], watermark_us: int, collected: Collected) -> None:
        due = self._in_order(np.flatnonzero(pair_mask & (self._state.pair_due <= watermark_us)))
        first: tables.Int = 0
        while first < len(due):
            status, first = pass_time(self._compiled.program, self._state, self._found, due, int(first), watermark_us)
            self._drain(collected, None)
            if status == tables.NO_ROOM:
                self._make_room()
            elif status == tables.FLUSH:
                self._rank(int(due[first]), watermark_us, collected, None)
                first += 1

    def finish(self, id_of: Callable[[int], str]) -> RunOutput:
        collected = Collected()
        self._id_of = id_of
        for pair in self._in_order(np.flatnonzero(self._state.pair_pattern != NIL)):
            self._end_pair(pair, collected)
        return collected.output

    def dump_arrays(self, traces: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the state as one-dimensional arrays with dense new numbers.

        ``traces`` maps old to new trace numbers.
        """
        self._forget_texts()
        self._note_work()
        unpark_all(self._state)
        arrays = run_saving.saved(self._state, self._compiled, self._texts, self._last_times, traces)
        return {**arrays, **accounts.saved(self._accounts)}

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], *, traces: int, sequences: int) -> None:
        """Restore the result of ``dump_arrays``. Call ``configure`` with the same patterns first.

        ``traces`` is the number of open traces. Sequence numbers of bound events must be below ``sequences``. Arrays of
        another type or length, links out of range and wrong counts are rejected.
        """
        bounds = run_saving.Bounds(traces=traces, sequences=sequences, is_simultaneous=self._is_simultaneous)
        self._accounts = accounts.restored(arrays, len(self._accounts), sequences)
        self._apply_budgets()
        self._state, self._last_times = run_saving.restored(arrays, self._compiled, self._texts, bounds)

    def _in_order(self, pairs: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the pairs sorted by trace, then by pattern. Saving and loading preserve this order."""
        state = self._state
        order = np.lexsort((state.pair_pattern[pairs], state.pair_trace[pairs]))
        return pairs[order].astype(np.int32)

    def _end_pair(self, pair: np.int32, collected: Collected) -> None:
        state = self._state
        self._make_room_for(int(state.pair_count[pair]))
        state.now[tables.ROW] = NIL
        last_us = int(self._last_times[state.pair_trace[pair]])
        finish(self._compiled.program, state, self._found, int(pair), last_us)
        self._drain(collected, None)
        if self._compiled.program.flags[state.pair_pattern[pair]] != 0:
            self._rank(int(pair), LATEST, collected, None, is_input_over=True)
        close_pair(state, int(pair))

    def _make_room_for(self, runs: int) -> None:
        """Enlarge the array of results. Earlier results must have been drained, because they are discarded."""
        if runs > len(self._found.node):
            self._found = zeros_of(RunMatches, 2 * runs)

    def _rank(
        self,
        pair: int,
        time_us: tables.Int,
        collected: Collected,
        rows: NDArray[np.int64] | None,
        *,
        is_last: bool = False,
        is_input_over: bool = False,
    ) -> None:
        """Rank and emit the decided matches of a pair; see ``RankedPairs.flush``.

        ``rows`` maps visits to rows of the batch. It is None when time passes without a batch.
        """
        self._make_room_for(int(self._state.pair_count[pair]))
        ranked = RankedPairs(
            state=self._state,
            compiled=self._compiled,
            found=self._found,
            id_of=self._id_of,
            is_simultaneous=self._is_simultaneous,
            match_limit=self._match_limit,
            is_input_over=is_input_over,
        )
        row = NIL if rows is None else rows[self._state.now[tables.ROW]]
        ranked.flush(pair, time_us, collected, int(row), is_last=is_last)
        self._drain(collected, rows)

    def _forget_texts(self) -> None:
        """Drop the texts that neither conditions nor bound events use."""
        state = self._state
        held = state.event_references > 0
        is_text = held[:, None] & (state.event_kinds == TEXT)
        used = np.concatenate([self._compiled.compiler.literal_texts, state.event_values[is_text]])
        numbers = self._texts.compact(used)
        state.event_values[is_text] = numbers[state.event_values[is_text]]
        self._compiled.compiler.renumber_texts(numbers)
        self._state = run_state.with_buckets(self._state, self._compiled.program)
        self._sweep_at = max(_LEAST_SWEEP, 2 * len(self._texts))

    def _conditions(self) -> Conditions:
        state, compiled = self._state, self._compiled
        offsets, data = self._texts.offsets, self._texts.data
        bindings = Bindings(
            node_parent=state.node_parent,
            node_event=state.node_event,
            node_atom=state.node_atom,
            node_step=state.node_step,
            step_begins=compiled.program.begins,
            event_kinds=state.event_kinds,
            event_values=state.event_values,
            text_offsets=offsets,
            text_bytes=data,
        )
        stack = new_stack(compiled.depth, len(state.node_parent))
        return Conditions(compiled.compiler.code, compiled.starts, compiled.ends, bindings, stack)

    def _run(
        self, columns: RunBatch, collected: Collected, rows: NDArray[np.int64], clocks_us: NDArray[np.int64]
    ) -> None:
        limits = Limits(
            matches=self._match_limit,
            runs=self._run_limit,
            width=self._compiled.width,
        )
        conditions = self._conditions()
        visit: tables.Int = 0
        while True:
            status, visit = kernel.match_rows(
                self._compiled.program, self._state, columns, conditions, self._found, self._ended, visit, limits
            )
            if status == tables.GIVEN_UP:
                suspended = self._charge(int(columns.sequences[visit]))
                self._drain(collected, rows)
                if suspended is not None:
                    self._suspend(suspended, clocks_us[: rows[visit]], collected)
                    conditions = self._conditions()
                continue
            self._drain(collected, rows)
            if status == tables.DONE:
                return
            if status == tables.NO_ROOM:
                self._make_room()
                conditions = self._conditions()
                continue
            pair = int(self._state.counters[tables.STOP_PAIR])
            time_us = LATEST if status == tables.CLOSE else int(self._state.now[tables.CLOCK])
            self._rank(pair, time_us, collected, rows, is_last=status == tables.FAIL)
            if status != tables.FLUSH and self._state.pair_pattern[pair] != NIL:
                close_pair(self._state, pair)

    def _charge(self, sequence: int) -> int | None:
        """Charge the pattern for the pair that the kernel gave up.

        If it is now suspended, return its number, otherwise None.
        """
        pattern = int(self._state.pair_pattern[self._state.counters[tables.STOP_PAIR]])
        self._note_work()
        account, budget = self._accounts[pattern], self._budgets[pattern]
        is_once_too_often = account.charge(sequence, budget)
        if account.work > budget.in_all:
            account.is_suspended = True
        if not account.is_suspended:
            return None
        cause = BY_TRACES if is_once_too_often else BY_WORK
        self._ended.lost[self._ended.filled[1] - 1, 5] = cause  # the row that the kernel wrote last
        return pattern

    def _suspend(self, pattern: int, clocks_us: NDArray[np.int64], collected: Collected) -> None:
        """Release the runs of a pattern. Matches that were due before the current event are emitted first.

        ``clocks_us`` has the newest time at each earlier event of the batch.
        """
        self._apply_budgets()
        if len(clocks_us):
            self._let_time_pass(self._state.pair_pattern == pattern, int(clocks_us[-1]), collected)
        for pair in np.flatnonzero(self._state.pair_pattern == pattern).tolist():
            close_pair(self._state, pair)

    def _apply_budgets(self) -> None:
        program = self._compiled.program
        program.work[:] = [budget.per_trace for budget in self._budgets]
        program.work_in_all[:] = [budget.in_all for budget in self._budgets]
        program.allowance[:] = [budget.per_event for budget in self._budgets]
        program.is_suspended[:] = [account.is_suspended for account in self._accounts]
        program.worked[:] = [account.work for account in self._accounts]
        program.worked_at[:] = [account.worked_at for account in self._accounts]

    def _note_work(self) -> None:
        program = self._compiled.program
        counted = zip(program.worked.tolist(), program.worked_at.tolist(), strict=True)
        for account, (work, worked_at) in zip(self._accounts, counted, strict=True):
            account.work, account.worked_at = work, worked_at

    def _make_room(self) -> None:
        needed = int(self._state.counters[tables.NEEDED]) + 1
        self._state = run_state.with_room(self._state, needed)
        if len(self._state.run_next) > len(self._state.buckets):
            self._state = run_state.with_buckets(self._state, self._compiled.program)
        if 2 * needed > len(self._found.node):
            self._found = zeros_of(RunMatches, 4 * needed)
        if len(self._compiled.automata) > len(self._ended.rows):
            self._ended = _new_ended(2 * len(self._compiled.automata))

    def _drain(self, collected: Collected, rows: NDArray[np.int64] | None) -> None:
        filled = int(self._state.counters[tables.FILLED])
        if filled:
            visits = self._found.row[:filled]
            chains = Chains(
                nodes=self._found.node[:filled].copy(),
                patterns=self._found.pattern[:filled].copy(),
                rows=np.full(filled, NIL, np.int64) if rows is None else rows[visits],
                detected_us=self._found.detected[:filled].copy(),
                how=self._found.how[:filled].copy(),
                traces=self._found.trace[:filled].copy(),
            )
            what = self._found.what[:filled]
            for kind, parts in (
                (tables.MATCH, collected.parts),
                (tables.CORRECTION, collected.corrections),
                (tables.TIMEOUT, collected.timeouts),
            ):
                is_of_kind = what == kind
                if is_of_kind.any():
                    parts.append(unrolled(self._state, chains.chosen(is_of_kind), releases=True))
            self._state.counters[tables.FILLED] = 0
            if 2 * filled > len(self._found.node) and len(self._found.node) < _MOST_FOUND:
                self._found = zeros_of(RunMatches, 2 * len(self._found.node))
        endings, lost = self._ended.filled.tolist()
        if endings or lost:
            for target, part_rows, size in (
                (collected.endings, self._ended.rows, endings),
                (collected.lost, self._ended.lost, lost),
            ):
                copied = part_rows[:size].copy()
                copied[:, 0] = copied[:, 0] if rows is None else rows[copied[:, 0]]
                target.append(copied)
            self._ended.filled[:] = 0


def _new_ended(size: int) -> Ended:
    return Ended(rows=np.zeros((size, 5), np.int64), lost=np.zeros((size, 6), np.int64), filled=np.zeros(2, np.int64))


__all__ = ["RUN_LIMIT", "RunEngine", "RunOutput", "Ties"]
