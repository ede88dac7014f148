"""The visits of a batch as columns that the run kernel reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.bytecode import event_columns
from nfa.conditions.predicates import BatchColumns
from nfa.conditions.texts import TextPool
from nfa.kernels.run_tables import RunBatch
from nfa.runs.program import CompiledRuns, takes_every_type
from nfa.traces import Visits
from streams import EventBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """What the run engine is given of a batch.

    Attributes:
        batch: The events.
        visits: Its visited rows.
        types: int32, type code by row.
        passed: Truth of the unary conditions, (conditions, rows).
        live: The guard's table over (monitors, columns).
        first_sequence: Sequence number of row 0.
    """

    batch: EventBatch
    visits: Visits
    types: NDArray[np.int32]
    passed: NDArray[np.bool_]
    live: NDArray[np.bool_]
    first_sequence: int

    def concerns(self, compiled: CompiledRuns) -> NDArray[np.intp]:
        """Places of the visits that a pattern listens to, that move a monitor, or that end a trace."""
        visits = self.visits
        listens = np.diff(compiled.program.listen_from) > 0
        return np.flatnonzero(listens[self.types[visits.rows]] | (visits.before != visits.after) | visits.ends)


def run_batch(
    given: RunInput, places: NDArray[np.intp], compiled: CompiledRuns, texts: TextPool, *, is_simultaneous: bool
) -> RunBatch:
    """Some visits of a batch.

    Args:
        given: The batch.
        places: Which of its visits.
        compiled: The patterns.
        texts: Gains the texts that conditions read.
        is_simultaneous: Whether events of one time are not ordered.
    """
    batch, visits = given.batch, given.visits
    rows = visits.rows[places].astype(np.int64)
    times = np.array(batch.time_us[rows], np.int64)
    sequences = rows + given.first_sequence
    kinds, values = event_columns(batch, rows, compiled.columns, texts, BatchColumns(batch))
    return RunBatch(
        types=given.types[rows],
        times=times,
        orders=times if is_simultaneous else sequences,
        sequences=sequences,
        traces=visits.traces[places],
        before=visits.before[places],
        after=visits.after[places],
        ends=visits.ends[places],
        taken=_taken(given, rows, compiled),
        kinds=kinds,
        values=values,
        live=np.ascontiguousarray(given.live),
        is_simultaneous=np.array([is_simultaneous]),
    )


def _taken(given: RunInput, rows: NDArray[np.int64], compiled: CompiledRuns) -> NDArray[np.bool_]:
    """Which symbols take which of the rows, (symbols, rows)."""
    taken = np.zeros((max(1, len(compiled.symbols)), len(rows)), np.bool_)
    names = {name: code for code, name in enumerate(given.batch.type_names)}
    codes = given.batch.type_codes[rows]
    for number, (wanted, predicate) in enumerate(compiled.symbols):
        taken[number] = given.passed[predicate, rows]
        if not takes_every_type(wanted):
            is_wanted = np.zeros(len(names) + 1, np.bool_)
            is_wanted[[names[name] for name in wanted if name in names]] = True
            taken[number] &= is_wanted[codes]
    return taken
