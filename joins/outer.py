"""Joins of more than two inputs, some of which may be absent: the reasons of absences, and when keys on disk are due.

Such a join reports the full disjunction of its inputs: each combination that is part of no larger one.
``joins.WindowJoin`` finds these combinations (``optional``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joins.items import UNKEYED, JoinedColumns
from joins.kernels.paging import SEEN
from joins.kernels.tables import FINISHED, NIL

ENDED = -3
"""Entry in ``members`` of an absent input that has closed the key only because all input has ended."""

_FOREVER = np.iinfo(np.int64).max
_REASONS = {NIL: '"window"', FINISHED: '"finished"', ENDED: '"end_of_input"', UNKEYED: '"no_key"'}


def decided_by_the_end(results: JoinedColumns, closed: NDArray[np.uint64]) -> JoinedColumns:
    """Replace ``FINISHED`` by ``ENDED`` in results whose absent input had not closed the key before all input ended.

    ``results`` are the results of closing all keys by all inputs. For the key of each item, ``closed`` has the inputs
    that had closed the key before the end, as bits.
    """
    inputs = np.arange(results.members.shape[1], dtype=np.uint64)
    had_closed = (closed[results.result_items][:, None] >> inputs) & np.uint64(1) != 0
    return replace(results, members=np.where((results.members == FINISHED) & ~had_closed, ENDED, results.members))


def absence_reasons(members: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Return all reasons for the absence of an input as JSON strings, and for each combination the index of its reason.

    ``members`` has the entries of one input in combinations that lack it. They are negative.
    """
    return list(_REASONS.values()), NIL - members


def due_times(
    keys: NDArray[np.void],
    rows: NDArray[np.void],
    times_us: tuple[NDArray[np.int64], NDArray[np.int64]],
    required: np.uint64,
    inputs: int,
) -> NDArray[np.int64]:
    """Return the time at which each key on disk leads to a result or is over. The key must be in memory by then.

    Times are in microseconds, and the largest number means never. A combination that lacks inputs is reported when the
    first of its events leaves a window. A key has no such combination to report in three cases. First, a required input
    has no event. Second, all inputs without events have closed the key, so the combination was reported before. Third,
    an input without events had an event when the newest event arrived, so the combination is part of a larger one. This
    does not change while the key is on disk. If a required input has closed a key, the key is over when the last event
    of this input leaves its window. Any key that an input has closed is due at the latest when its last event leaves.

    ``keys`` are ``KEY`` of ``joins.kernels.paging``. ``rows`` are ``ROW``, and the owner of a row is the index of its
    key. ``times_us`` has two arrays: when each row leaves its window, and when the last row of each key does.
    ``required`` has the inputs that no combination may lack, as bits.
    """
    owners, bit, (out_us, gone_us) = rows["owner"], np.uint64(1), times_us
    bits = bit << rows["input"].astype(np.uint64)
    live, seen_inputs = np.zeros(len(keys), np.uint64), np.full(len(keys), ~np.uint64(0))
    np.bitwise_or.at(live, owners, bits)
    np.bitwise_and.at(seen_inputs, owners, (rows["flags"] // SEEN).astype(np.uint64))  # with the newest event
    absent = ~live & np.uint64((1 << inputs) - 1)
    is_waiting = (required & absent == 0) & (seen_inputs & absent == 0) & (absent & ~keys["closed"] != 0)
    first_us, due_us = np.full(len(keys), _FOREVER), np.full(len(keys), _FOREVER)
    np.minimum.at(first_us, owners, out_us)
    due_us[is_waiting] = first_us[is_waiting]
    last_us = np.zeros((len(keys), inputs), np.int64)
    np.maximum.at(last_us, (owners, rows["input"]), out_us)
    ends = (keys["closed"] & required)[owners] & bits != 0
    is_ending = ends & (out_us == last_us[owners, rows["input"]])
    np.minimum.at(due_us, owners[is_ending], out_us[is_ending])
    return np.where(keys["closed"] != 0, np.minimum(due_us, gone_us), due_us)
