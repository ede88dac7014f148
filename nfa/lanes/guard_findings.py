"""Results of guards for a batch: early terminations and deviations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.guards.protocol import EventClass
from nfa.guards.tables import Interned
from nfa.lanes.event_classes import monitors_named
from nfa.lanes.state import LaneState
from nfa.traces.table import Visits


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFindings:
    """Results of guards for one batch; monitors, (guard version, state), and classes are by the rows' numbers.

    Attributes:
        ending_rows: (endings, 6): row, pattern, monitor before and after, state of the pattern's automaton, class of
            the event; by row.
        deviation_rows: (deviations, 4): row, monitor before, class of the event, released events.
    """

    ending_rows: NDArray[np.int64]
    deviation_rows: NDArray[np.int64]
    monitors: Mapping[int, Interned]
    classes: Mapping[int, EventClass]


NOTHING_FOUND = GuardFindings(
    ending_rows=np.zeros((0, 6), np.int64), deviation_rows=np.zeros((0, 4), np.int64), monitors={}, classes={}
)


def guard_findings(
    state: LaneState, visits: Visits, endings: NDArray[np.int64], state_range: NDArray[np.int32]
) -> GuardFindings:
    """Results of guards for a batch whose traces are not released yet.

    ``endings`` are rows of the engines, in any order: row, pattern, two unused columns, column of the pattern's state
    in the tables. ``state_range`` has the first of these columns by pattern.

    Where traces follow the monitors of others, the others deviate, and only partial matches end: a pattern that has
    none in such a trace is not reported.
    """
    guards, table = state.guards, state.table
    if not guards.guards:
        return NOTHING_FOUND
    broken = visits.deviations()
    if state.home is not None:
        broken = broken[:0]
        is_bound = endings[:, 4] > state_range[endings[:, 1]]
        state.counts["run_endings"] -= int((~is_bound).sum())
        endings = endings[is_bound]
    if not len(endings) and not len(broken):
        return NOTHING_FOUND
    endings = endings[np.argsort(endings[:, 0], kind="stable")]
    endings[:, 4] -= state_range[endings[:, 1]]
    ending_visits = visits.places_of(endings[:, 0])
    before, after, states = monitors_named(guards, visits, ending_visits, broken)
    endings[:, 2:4] = np.column_stack([before[: len(endings)], after])
    columns, classes = _classes(state, visits, np.concatenate([ending_visits, broken]))
    released = table.released[visits.traces[broken]]
    deviations: list[NDArray[Any]] = [visits.rows[broken], before[len(endings) :], columns[len(endings) :], released]
    return GuardFindings(
        ending_rows=np.column_stack([endings, columns[: len(endings)]]).astype(np.int64),
        deviation_rows=np.column_stack(deviations).astype(np.int64),
        monitors=states,
        classes=classes,
    )


def _classes(
    state: LaneState, visits: Visits, places: NDArray[np.intp]
) -> tuple[NDArray[np.int64], dict[int, EventClass]]:
    """The numbers of the events' classes at some visits, and the class of each number.

    Where traces follow the monitors of others, patterns here may name types that are all the same to the others.
    """
    columns = visits.columns_of(places).astype(np.int64)
    if state.home is None:
        return columns, {column: state.guards.event_class(column) for column in distinct(columns).tolist()}
    own = visits.classes[visits.rows[places]].astype(np.int64)
    numbers = (own << 32) | columns
    classes = {}
    for number in distinct(numbers).tolist():
        found = state.home.guards.event_class(number & 0xFFFFFFFF)
        classes[number] = replace(found, type=found.type or state.guards.type_of(number >> 32))
    return numbers, classes
