"""The per-key matcher of patterns with FOR EACH ROW: a correlation key has one trace for each row of a table.

An event is matched in the traces of the rows that it concerns (``RowIndex``), with the columns of the row as further
attributes. So one automaton serves all rows, and the trace of a partial match determines its row. A guard judges the
whole transaction: the traces of rows use the monitor states of the correlation key's trace. An event that rules out
matches or breaks a constraint is processed in the traces of all open rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa import row_bounds
from nfa.conditions.predicates import BatchColumns, sources_of
from nfa.conditions.table_rows import ROW, Concerned, RowIndex, RowsRead, TableRows
from nfa.errors import TooManyRows
from nfa.kernels.traces import NIL, Columns
from nfa.lanes.lane import Lane
from nfa.lanes.state import LaneOptions, LaneState, SavedLane
from nfa.lanes.view import LaneView
from nfa.registered import RunningPattern
from nfa.results.batch import LaneOutput, Overflow
from nfa.runs.program import atoms_to_test, listened_types
from nfa.syntax import Path
from nfa.traces.table import Moves, Visits
from streams import Event, EventBatch, column_of
from streams.tables import OpenTable, Tables

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # ``_rows_of`` computes a row's hash from the hashes of its trace and key
_PAIRS_AT_ONCE = 1 << 20
_LEAST_TIMES = 4_096


class RowLane(Lane):
    """A lane for patterns with FOR EACH ROW. Each correlation key has one trace for each row of a table."""

    def __init__(self, options: LaneOptions, read: RowsRead, home: LaneState) -> None:
        self._read = read
        self._versions: Sequence[OpenTable] = ()
        self._opened: OpenTable | None = None
        self._rows = TableRows.none(read.columns)
        self._index: RowIndex | None = None
        self._home = home
        self._moves: Moves | None = None
        self._begin = 0  # index in the input of the first event of the part that is being processed
        self._refused: dict[RunningPattern, str] = {}  # reasons for patterns whose table has too many rows
        self._last_times: dict[int, int] = {}  # by hashed correlation key: time of its last event, if not stored yet
        super().__init__(options, is_finer=True, home=home)

    def configure(self, patterns: Sequence[RunningPattern]) -> None:
        super().configure(patterns)
        self._index = None
        steps = [atom.condition for pattern in patterns for atom in atoms_to_test(pattern.automaton)]
        conditions = [*steps, *(pattern.automaton.pattern.where for pattern in patterns)]
        sources = (source for condition in conditions if condition is not None for source in sources_of(condition))
        self._store_last_times()
        self._needs_last_times = any(
            pattern.automaton.is_trailing and pattern.automaton.pattern.within_us is None for pattern in patterns
        )
        self._paths = list(dict.fromkeys(path for path in sources if isinstance(path, tuple) and path))

    def read_tables(self, tables: Tables) -> None:
        """Replace the versions of the lane's table, and drop the partial matches of removed rows.

        A row in which a column that patterns read has changed counts as removed and added again.
        """
        versions = tables.versions.get(self._read.table, ())
        if versions is not self._versions:
            self._versions = versions
            self._open()

    def _open(self) -> None:
        """Read the rows of the table version in force at the lane's time, and drop the traces of removed rows."""
        opened = next(iter(self._versions), None)
        for candidate in self._versions[1:]:
            opened = (
                candidate
                if candidate.version.since_us is not None and candidate.version.since_us <= self.newest_us
                else opened
            )
        if opened is self._opened:
            return
        self._opened, self._index, self._rows = opened, None, TableRows.none(self._read.columns)
        if opened is not None and len(opened.rows()) <= row_bounds.MOST_ROWS:
            self._rows = TableRows.of(opened.rows(), opened.version.form.key, self._read.columns)
        pairs = self._state.finer.pairs
        is_kept = self._rows.numbers(_rows_of(pairs)) >= 0
        if not is_kept.all():
            self._keep_pairs(is_kept)

    def process_finer(self, batch: EventBatch, keys: Sequence[Path]) -> list[LaneOutput]:
        """Match a batch, in parts if its events concern many rows or a table version takes effect within the batch."""
        outputs: list[LaneOutput] = []
        self._moves, begin = self._following(), 0
        while begin < len(batch) or not begin:
            size = min(len(batch) - begin, max(1, _PAIRS_AT_ONCE // max(1, self._built().most_rows)))
            part = batch.slice(begin, size)
            due_us = self._due_us
            if due_us is not None and (later := np.flatnonzero(part.time_us >= due_us)).size:
                if not later[0]:
                    outputs += self.pass_time(due_us)
                    continue
                part = part.slice(0, int(later[0]))
            self._begin = begin
            outputs += [
                replace(output, first_row=output.first_row + begin) for output in super().process_finer(part, keys)
            ]
            if self._needs_last_times:
                self._last_times.update(zip(part.key_hashes.tolist(), part.time_us.tolist(), strict=True))
                if len(self._last_times) > max(_LEAST_TIMES, len(self._state.finer.pairs)):
                    self._store_last_times()
            begin += max(1, len(part))
        if self._refused and len(batch):
            outputs[0] = replace(outputs[0], suspended=self._suspended(batch.slice(0, 1).to_events()[0]))
        return outputs

    def finish(self) -> LaneOutput:
        self._store_last_times()
        return super().finish()

    def dump(self) -> SavedLane:
        self._store_last_times()
        return super().dump()

    def _store_last_times(self) -> None:
        """Store the time of each transaction's last event in the run engine, for the traces of the transaction's rows.

        By itself, the run engine knows only the times of events that concern these rows.
        """
        if not self._last_times:
            return
        pairs, (keys, traces, _) = self._state.finer.pairs, self._state.table.open_traces()
        order = np.argsort(pairs[:, 1])
        homes = pairs[order[np.searchsorted(pairs[:, 1], keys, sorter=order)], 0]
        is_met = np.isin(homes, np.fromiter(self._last_times, np.uint64))
        times_us = [self._last_times[home] for home in homes[is_met].tolist()]
        self._state.runs.note_times(traces[is_met], np.array(times_us, np.int64))
        self._last_times.clear()

    def view(self) -> LaneView:
        self._state.guards.follow(self._home.guards)
        return super().view()

    def _following(self) -> Moves | None:
        """Return the monitor transitions of the correlation key's traces, with lists of the states that die here.

        The states are those of this lane's patterns.
        """
        moves, guards = self._home.moves, self._state.guards
        if moves is None:
            return None
        guards.follow(self._home.guards)
        return replace(moves, kill=guards.kills_of(moves.before, moves.after))

    def _visits(self, columns: Columns, places: NDArray[np.intp] | None) -> Visits:
        visits = super()._visits(columns, places)
        if self._moves is not None:
            rows = np.full(len(columns.types), NIL) if places is None else places
            visits = visits.following(self._moves, np.where(rows == NIL, NIL, rows + self._begin))
            self._state.table.note_deviant(visits)
        return visits

    def pass_time(self, watermark_us: int) -> list[LaneOutput]:
        """Advance time to the watermark. Table versions that start by then take effect at their times."""
        outputs: list[LaneOutput] = []
        while (due_us := self._due_us) is not None and due_us <= watermark_us:
            outputs += super().pass_time(due_us)
            self._open()
        return [*outputs, *super().pass_time(watermark_us)]

    @property
    def _due_us(self) -> int | None:
        times = [table.version.since_us for table in self._versions[1:]]
        return next((time_us for time_us in times if time_us is not None and time_us > self.newest_us), None)

    def _finer_rows(
        self, batch: EventBatch, keys: Sequence[Path]
    ) -> tuple[EventBatch, NDArray[np.uint64], NDArray[np.intp]]:
        """Return a batch of all pairs of an event and a table row that the event concerns, with the columns of both.

        The arrays have, for each pair, the hashed correlation key, and the index of the event in ``batch``.
        """
        reader = BatchColumns(batch)
        concerned = self._concerned(batch, reader)
        homes = batch.key_hashes[concerned.events]
        event_columns, rows = batch.columns.take(column_of(concerned.events)), column_of(concerned.rows)
        place = event_columns.schema.get_field_index("key_hash")
        hashes = column_of(homes * _FACTOR ^ self._rows.hashes[concerned.rows])
        attributes = {path: column.take(column_of(concerned.events)) for path, column in batch.attributes.items()}
        attributes |= self._parsed(reader, concerned.events, attributes)
        attributes |= {(self._read.alias, name): column.take(rows) for name, column in self._rows.columns.items()}
        attributes[ROW] = self._rows.names.take(rows)
        columns = event_columns.set_column(place, event_columns.schema.field(place), hashes)
        return EventBatch(columns, attributes, tables=batch.tables), homes, concerned.events

    def _parsed(
        self, reader: BatchColumns, events: NDArray[np.int64], present_paths: Collection[Path]
    ) -> Iterator[tuple[Path, pa.Array]]:
        """Yield the attributes of ``events`` that the batch has only as JSON, each as (path, column).

        The JSON of an event is parsed once, although the event may occur for many table rows.
        """
        rows, places = np.unique(events, return_inverse=True)
        paths = [path for path in self._paths if path not in present_paths and path[:1] != (self._read.alias,)]
        for path, values in reader.read(rows, paths).items() if len(rows) else ():
            column = values.to_arrow()
            if column is not None and isinstance(path, tuple):
                yield path, column.take(column_of(places))

    def _concerned(self, batch: EventBatch, reader: BatchColumns) -> Concerned:
        pairs = self._state.finer.pairs
        rows = self._rows.numbers(_rows_of(pairs))
        ending = np.zeros(0, np.intp)
        if self._moves is not None:
            ending = np.flatnonzero(self._moves.matters[self._begin : self._begin + len(batch)])
        return self._built().concerned(batch, reader, (pairs[rows >= 0, 0], rows[rows >= 0]), ending)

    def _built(self) -> RowIndex:
        if self._index is None:
            patterns = [pattern for pattern in self._patterns if self._may_have_rows(pattern)]
            every = any(listened_types(pattern.automaton) is None for pattern in patterns)
            follows = None if every or self.options.idle_timeout_us is not None else self.options.end_events
            events = [pattern.automaton.pattern.event for pattern in patterns]
            self._index = RowIndex(self._rows, events, self._read.alias, follows)
        return self._index

    def _may_have_rows(self, pattern: RunningPattern) -> bool:
        """Check whether the table's current rows are within a pattern's limits, and note the refusal otherwise.

        The check is repeated here, because concurrent requests may together exceed the limits.
        """
        try:
            row_bounds.require_rows(pattern.compiled.pattern, Tables(versions={self._read.table: self._current}))
        except TooManyRows as refusal:
            self._refused[pattern] = refusal.message
            return False
        return True

    def _suspended(self, first: Event) -> list[Overflow]:
        """Return the suspensions of the patterns that were refused since the last call.

        They are reported at ``first``, the first event after the check.
        """
        at: dict[str, Any] = {"event_id": first.id, "event_type": first.type, "time_us": first.time_us}
        suspensions = [
            Overflow(
                pattern=pattern.name,
                version=pattern.version,
                key=first.key,
                **at,
                dropped=0,
                suspends=True,
                reason=reason,
            )
            for pattern, reason in self._refused.items()
        ]
        self._refused = {}
        return suspensions

    @property
    def _current(self) -> tuple[OpenTable, ...]:
        return () if self._opened is None else (self._opened,)


def _rows_of(pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of each pair's table row.

    A pair has a hashed correlation key and the hashed key of the row's trace.
    """
    hashes: NDArray[np.uint64] = pairs[:, 1] ^ (pairs[:, 0] * _FACTOR)
    return hashes
