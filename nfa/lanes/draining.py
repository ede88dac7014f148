"""Draining versions: older versions of patterns that finish the partial matches they had when the next version came."""

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
    """A draining version of a pattern, which finishes its partial matches after the next version has started.

    The version runs as before, but emits only results whose first event has a sequence number (in its lane) below
    ``border``. Its early terminations are not emitted: they concern whole traces, and the next version reports them.
    After ``until_us``, no partial match can complete. Without WITHIN, ``until_us`` is None.
    """

    pattern: RunningPattern
    border: int
    until_us: int | None

    def is_done(self, time_us: int) -> bool:
        """Return whether the version is finished at ``time_us``, because no partial match can complete any more."""
        return self.until_us is not None and time_us > self.until_us


def first_row_past(draining: Iterable[Draining], batch: EventBatch) -> int | None:
    """Return the first row of a batch that is late enough to finish some draining version, or None."""
    ends_us = [version.until_us for version in draining if version.until_us is not None]
    if not ends_us:
        return None
    rows = np.flatnonzero(batch.time_us > min(ends_us))
    return int(rows[0]) if len(rows) else None


def without_later(output: LaneOutput, borders: Mapping[RunningPattern, int]) -> LaneOutput:
    """Return the output without the results that belong to the next version of a draining pattern.

    Removed are the draining version's early terminations, and its results that begin at or after ``Draining.border``.
    """
    limits = np.array([borders.get(pattern, _NO_BORDER) for pattern in output.patterns], np.int64)
    if not np.any(limits < _NO_BORDER):
        return output
    return replace(
        output.chosen(_began_before(output.matches, limits)),
        corrections=output.corrections.chosen(_began_before(output.corrections, limits)),
        timeouts=output.timeouts.chosen(_began_before(output.timeouts, limits)),
        ending_rows=output.ending_rows[limits[output.ending_rows[:, 1]] == _NO_BORDER],
    )


def _began_before(table: MatchTable, limits: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(table):
        return np.zeros(0, np.bool_)
    is_earlier: NDArray[np.bool_] = np.minimum.reduceat(table.sequences, table.starts) < limits[table.patterns]
    return is_earlier
