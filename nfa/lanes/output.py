"""Output of a lane: the results of both engines, in one order and with the lane's pattern numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.guards.protocol import EventClass
from nfa.kernels.traces import NIL
from nfa.lanes.event_classes import monitors_named
from nfa.lanes.layout import Layout
from nfa.lanes.state import LaneState
from nfa.results.batch import LaneOutput
from nfa.results.found import NO_MATCHES, MatchTable, joined, of_runs, without_repeats
from nfa.runs.engine import RunOutput
from nfa.runs.output import NOTHING
from nfa.shared.engine import Findings
from nfa.traces.table import Visits, is_deviant
from streams import EventBatch

_NO_EVENTS = EventBatch.from_events([])


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResults:
    """The engines' results for one batch, as ``LaneReport`` needs them.

    Attributes:
        clocks: For each row, the newest time so far in all traces.
        runs: The run engine's results of the rows, then the results that passing time decided.
    """

    batch: EventBatch
    times: NDArray[np.int64]
    clocks: NDArray[np.int64]
    visits: Visits
    shared: Findings
    runs: Sequence[RunOutput]


class LaneReport:
    """Converter of the engines' results to ``LaneOutput`` with the lane's pattern numbers. Results are counted, too."""

    def __init__(self, layout: Layout) -> None:
        self._patterns = layout.patterns
        self._state_range = layout.state_range
        automata = [layout.patterns[number].automaton for number in layout.run_numbers]
        self._run_numbers, self._run_aliases = np.array(layout.run_numbers, np.int32), _aliases_of(automata)
        self._repeating = [
            number for number, automaton in zip(layout.run_numbers, automata, strict=True) if automaton.may_repeat
        ]

    def of_batch(self, state: LaneState, results: EngineResults) -> LaneOutput:
        """Return the output of a batch. Call this before ``state.sequence`` advances by the rows of the batch."""
        shared, visits, runs = results.shared, results.visits, results.runs
        matches = joined([shared.matches, *(self._table_of(run.matches) for run in runs)])
        endings, output = self._output(state, matches, runs, results)
        dropped = np.column_stack([shared.dropped, np.zeros((len(shared.dropped), 3), np.int64)])
        lost_rows = np.concatenate([dropped, output.lost_rows])
        output = replace(output, batch=results.batch, lost_rows=lost_rows, guards=state.guards.guards)
        return _guarded(output, state, visits, np.concatenate([shared.endings, endings]), self._state_range)

    def of_time(self, state: LaneState, run: RunOutput) -> LaneOutput:
        """Return the output of time that passes without a batch."""
        return self._output(state, self._table_of(run.matches), [run], None)[1]

    def _output(
        self, state: LaneState, matches: MatchTable, runs: Sequence[RunOutput], batch: EngineResults | None
    ) -> tuple[NDArray[np.int64], LaneOutput]:
        """Return (early terminations of the run engine, output).

        The output does not contain any early terminations yet.
        """
        endings, lost, timeouts = self._of_runs(state, runs)
        is_deviating, is_lost = self._of_deviating(state, matches, batch)
        return endings, LaneOutput(
            patterns=self._patterns,
            batch=_NO_EVENTS,
            first_sequence=state.sequence,
            stored=state.events.parts,
            matches=matches,
            is_deviating=is_deviating,
            is_lost=is_lost,
            corrections=self._corrections(state, runs),
            timeouts=timeouts,
            ending_rows=np.zeros((0, 6), np.int64),
            deviation_rows=np.zeros((0, 4), np.int64),
            lost_rows=lost,
            monitors={},
            classes={},
            guards={},
        )

    def _of_deviating(
        self, state: LaneState, matches: MatchTable, batch: EngineResults | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks of the matches: the trace had deviated, and pruning would have lost the match.

        A match that time alone decides counts as decided before the first later event of any trace. If its own trace
        deviates only at this event or later, the match is not marked.
        """
        is_deviating, is_lost = np.zeros(len(matches), np.bool_), np.zeros(len(matches), np.bool_)
        if not state.guards.guards or not len(matches):
            return is_deviating, is_lost
        visits = state.table.no_visits if batch is None else batch.visits
        has_row = matches.rows != NIL
        is_deviating[has_row] = is_deviant(visits.after[visits.places_of(matches.rows[has_row])])
        waited = np.flatnonzero(~has_row)
        if len(waited):
            numbers, monitors = state.table.numbers(), state.table.monitors()
            places = np.searchsorted(numbers, matches.traces[waited])
            is_open = places < len(numbers)
            is_open[is_open] = numbers[places[is_open]] == matches.traces[waited[is_open]]
            is_deviating[waited[is_open]] = is_deviant(monitors[places[is_open]])
        broken = visits.deviations()
        by_time, since_us = ~has_row, {}
        if batch is not None:
            passed_us = batch.clocks[visits.rows[broken]]
            since_us = dict(zip(visits.traces[broken].tolist(), passed_us.tolist(), strict=True))
            rows, detected_us = matches.rows[has_row], matches.detected_us[has_row]
            by_time[has_row] = (batch.clocks[rows] > detected_us) & (batch.times[rows] != detected_us)
        for match in np.flatnonzero(is_deviating & by_time).tolist() if since_us else []:
            since = since_us.get(int(matches.traces[match]))
            is_deviating[match] = since is None or since <= matches.detected_us[match]
        self._judge(state, matches, np.flatnonzero(is_deviating), is_lost)
        return is_deviating, is_lost

    def _judge(
        self, state: LaneState, matches: MatchTable, deviating: NDArray[np.intp], is_lost: NDArray[np.bool_]
    ) -> None:
        """Write to ``is_lost`` which of the matches ``deviating`` pruning would have lost, and count the lost matches.

        ``deviating`` has the indices of matches in deviating traces. Pruning can lose only such matches.
        """
        if not len(state.shadow):
            return
        starts = matches.starts
        for place in deviating.tolist():
            events = slice(starts[place], matches.ends[place])
            bound = list(zip(matches.aliases[events].tolist(), matches.sequences[events].tolist(), strict=True))
            pattern, trace = self._patterns[int(matches.patterns[place])], int(matches.traces[place])
            is_lost[place] = state.shadow.would_be_lost(pattern, trace, bound, state.guards.guards)
        state.counts["shadow_lost"] += int(is_lost.sum())

    def _corrections(self, state: LaneState, runs: Sequence[RunOutput]) -> MatchTable:
        corrections = joined([self._table_of(run.corrections) for run in runs])
        state.counts["corrections"] += len(corrections)
        return corrections

    def _of_runs(
        self, state: LaneState, runs: Sequence[RunOutput]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], MatchTable]:
        if all(run is NOTHING for run in runs):
            return np.zeros((0, 5), np.int64), np.zeros((0, 6), np.int64), NO_MATCHES
        endings = np.concatenate([np.zeros((0, 5), np.int64), *(run.endings for run in runs)])
        endings[:, 4] = state.runs.columns_of(endings[:, 4])
        lost = np.concatenate([np.zeros((0, 6), np.int64), *(run.lost for run in runs)])
        for rows in (endings, lost):
            rows[:, 1] = self._run_numbers[rows[:, 1]] if len(rows) else rows[:, 1]
        timeouts = joined([self._table_of(run.timeouts) for run in runs])
        counts = state.counts
        counts["timeouts"] += len(timeouts)
        counts["run_matches"] += sum(len(run.matches) for run in runs)
        counts["run_endings"] += len(endings)
        counts["lost_matches"] += int(lost[:, 2].sum())
        counts["lost_runs"] += int(lost[:, 3].sum())
        return endings, lost, timeouts

    def _table_of(self, matches: MatchTable) -> MatchTable:
        if not len(matches):
            return NO_MATCHES
        return without_repeats(of_runs(matches, self._run_numbers, self._run_aliases), self._repeating)


def _aliases_of(automata: Sequence[PatternAutomaton]) -> NDArray[np.int32]:
    """Return an array (patterns, atoms): the index of each atom's alias in the list of its pattern's aliases."""
    rows = [[automaton.aliases.index(atom.alias) for atom in automaton.atoms] for automaton in automata]
    width = max(map(len, rows), default=1)
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], np.int32).reshape(-1, width)


def _guarded(
    output: LaneOutput, state: LaneState, visits: Visits, endings: NDArray[np.int64], state_range: NDArray[np.int32]
) -> LaneOutput:
    """Return the output of a batch with early terminations and deviations added.

    ``endings`` are the engines' early terminations, in any order. The columns are row, pattern, two unused columns, and
    the column of the pattern's state in the guard's tables. ``state_range`` has the first state column of each pattern.
    Call this before the batch's closed traces are released.

    If the traces follow the monitors of another lane, the other lane reports the deviations. In this case, early
    terminations of patterns without partial matches in the trace are not reported.
    """
    guards, table = state.guards, state.table
    if not guards.guards:
        return output
    broken = visits.deviations()
    if state.home is not None:
        broken = broken[:0]
        is_bound = endings[:, 4] > state_range[endings[:, 1]]
        state.counts["run_endings"] -= int((~is_bound).sum())
        endings = endings[is_bound]
    if not len(endings) and not len(broken):
        return output
    endings = endings[np.argsort(endings[:, 0], kind="stable")]
    endings[:, 4] -= state_range[endings[:, 1]]
    ending_visits = visits.places_of(endings[:, 0])
    before, after, states = monitors_named(guards, visits, ending_visits, broken)
    endings[:, 2:4] = np.column_stack([before[: len(endings)], after])
    columns, classes = _classes(state, visits, np.concatenate([ending_visits, broken]))
    released = table.released[visits.traces[broken]]
    deviations: list[NDArray[Any]] = [visits.rows[broken], before[len(endings) :], columns[len(endings) :], released]
    return replace(
        output,
        ending_rows=np.column_stack([endings, columns[: len(endings)]]).astype(np.int64),
        deviation_rows=np.column_stack(deviations).astype(np.int64),
        monitors=states,
        classes=classes,
    )


def _classes(
    state: LaneState, visits: Visits, places: NDArray[np.intp]
) -> tuple[NDArray[np.int64], dict[int, EventClass]]:
    """Return the number of the event class of each visit in ``places``, and the class of each number.

    If the traces follow another lane's monitors, the type code is part of the number, because patterns may use types
    that the other lane does not distinguish.
    """
    columns = visits.columns_of(places).astype(np.int64)
    if state.home is None:
        return columns, {column: state.guards.event_class(column) for column in distinct(columns).tolist()}
    codes = visits.classes[visits.rows[places]].astype(np.int64)
    numbers = (codes << 32) | columns
    classes = {}
    for number in distinct(numbers).tolist():
        event_class = state.home.guards.event_class(number & 0xFFFFFFFF)
        classes[number] = replace(event_class, type=event_class.type or state.guards.type_of(number >> 32))
    return numbers, classes
