"""Old versions of patterns that continue for the partial matches that they had when the next version came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nfa.registered import RunningPattern
from nfa.results.batch import LaneOutput
from nfa.results.found import MatchTable
from streams import EventBatch

_NO_BORDER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    """A version that is on its way out.

    It runs as before, and of its results only those are emitted whose first event came before the border. Early
    terminations are not emitted: they are of whole traces, which the next version sees too.

    Attributes:
        pattern: The version.
        border: Sequence number, in the lane of its keys, of the first event that is the next version's.
        until_us: Behind this time nothing of what it had can match any more; None where it has no WITHIN.
    """

    pattern: RunningPattern
    border: int
    until_us: int | None

    def is_done(self, time_us: int) -> bool:
        """Whether nothing can come of it once time has come so far."""
        return self.until_us is not None and time_us > self.until_us


def first_row_past(draining: Iterable[Draining], batch: EventBatch) -> int | None:
    """The first row by which one of them is done; None where none is."""
    ends_us = [one.until_us for one in draining if one.until_us is not None]
    if not ends_us:
        return None
    rows = np.flatnonzero(batch.time_us > min(ends_us))
    return int(rows[0]) if len(rows) else None


def without_later(output: LaneOutput, borders: Mapping[RunningPattern, int]) -> LaneOutput:
    """What is emitted, given the borders of the patterns that are on their way out."""
    limits = np.array([borders.get(pattern, _NO_BORDER) for pattern in output.patterns], np.int64)
    if not np.any(limits < _NO_BORDER):
        return output
    told = _began_before(output.matches, limits)
    return replace(
        output.chosen(told),
        corrections=output.corrections.chosen(_began_before(output.corrections, limits)),
        timeouts=output.timeouts.chosen(_began_before(output.timeouts, limits)),
        ending_rows=output.ending_rows[limits[output.ending_rows[:, 1]] == _NO_BORDER],
    )


def _began_before(table: MatchTable, limits: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(table):
        return np.zeros(0, np.bool_)
    told: NDArray[np.bool_] = np.minimum.reduceat(table.sequences, table.starts) < limits[table.patterns]
    return told
