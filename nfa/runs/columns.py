"""The relevant rows of a batch, as columns for the run kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.bytecode import event_columns
from nfa.conditions.predicates import BatchColumns
from nfa.conditions.texts import TextPool
from nfa.kernels.runs.tables import Gates, RunBatch
from nfa.kernels.traces import NOTHING_ENDS, RESERVED, Guards
from nfa.runs.program import CompiledRuns, takes_every_type
from nfa.traces.table import Visits
from streams import EventBatch

_OF_GUARDS = tuple(name for name in Gates._fields if name in Guards._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """Input of the run engine for a batch.

    Attributes:
        clocks: For each row, the newest time of all traces up to the row.
        passed: Mask (conditions, rows) of the events for which a condition is true.
        cells: Cells of the events in the filter index (dimensions, rows).
        released: For each trace number, how many bound events were dropped because of the guard.
    """

    batch: EventBatch
    visits: Visits
    types: NDArray[np.int32]
    clocks: NDArray[np.int64]
    passed: NDArray[np.bool_]
    cells: NDArray[np.int32]
    guards: Guards
    released: NDArray[np.int32]
    first_sequence: int

    def concerns(self, compiled: CompiledRuns) -> NDArray[np.intp]:
        """Return the indices of the visits (relevant rows) that the run engine must process.

        These are visits to whose event a pattern listens, and visits that end their trace, break a constraint or
        make a pattern state dead.
        """
        visits = self.visits
        program = compiled.program
        is_listened = (np.diff(program.listen_from) > 0)[self.types[visits.rows]]
        for cells in self.cells:
            is_listened |= (program.cell_end > program.cell_begin)[cells[visits.rows]]
        is_broken = (visits.after != visits.before) & (visits.after < RESERVED)
        return np.flatnonzero(is_listened | (visits.kill != NOTHING_ENDS) | is_broken | visits.ends)


def run_batch(run_input: RunInput, places: NDArray[np.intp], compiled: CompiledRuns, texts: TextPool) -> RunBatch:
    """Return the visits at the indices ``places`` as columns for the kernel.

    Texts that conditions read are interned in ``texts``.
    """
    batch, visits = run_input.batch, run_input.visits
    rows = visits.rows[places].astype(np.int64)
    times = np.array(batch.time_us[rows], np.int64)
    sequences = rows + run_input.first_sequence
    kinds, values = event_columns(batch, rows, compiled.columns, texts, BatchColumns(batch))
    return RunBatch(
        types=run_input.types[rows],
        times=times,
        clocks=run_input.clocks[rows],
        orders=times if compiled.program.is_simultaneous[0] else sequences,
        sequences=sequences,
        traces=visits.traces[places],
        before=visits.before[places],
        after=visits.after[places],
        kill=visits.kill[places],
        ends=visits.ends[places],
        taken=_taken_mask(run_input, rows, compiled),
        cells=np.ascontiguousarray(run_input.cells[:, rows]),
        kinds=kinds,
        values=values,
        gates=Gates(released=run_input.released, **{name: getattr(run_input.guards, name) for name in _OF_GUARDS}),
    )


def _taken_mask(run_input: RunInput, rows: NDArray[np.int64], compiled: CompiledRuns) -> NDArray[np.bool_]:
    """Return a mask (symbols, rows) of the events that have a type of the symbol and meet its condition."""
    mask = np.zeros((max(1, len(compiled.symbols)), len(rows)), np.bool_)
    names = {name: code for code, name in enumerate(run_input.batch.type_names)}
    codes = run_input.batch.type_codes[rows]
    for number, (types, predicate) in enumerate(compiled.symbols):
        mask[number] = run_input.passed[predicate, rows]
        if not takes_every_type(types):
            is_wanted = np.zeros(len(names) + 1, np.bool_)
            is_wanted[[names[name] for name in types if name in names]] = True
            mask[number] &= is_wanted[codes]
    return mask
