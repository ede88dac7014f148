"""Reasons for the absence of inputs from a combination: one for each input, because only some may be finished."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joins.items import UNKEYED, JoinedColumns
from joins.kernels.tables import FINISHED, NIL

ENDED = -3
"""Absent, in a combination that may lack inputs: the end of the input has finished the key."""

_WORDS = {NIL: '"window"', FINISHED: '"finished"', ENDED: '"end_of_input"', UNKEYED: '"no_key"'}


def decided_by_the_end(found: JoinedColumns, closed: NDArray[np.uint64]) -> JoinedColumns:
    """Combinations decided at the end of the input, with ``ENDED`` for inputs that had not closed the key before.

    ``found`` are the results of the closings of all keys by all inputs; ``closed`` has, for the key of each item, the
    inputs that had closed it before, as bits.
    """
    inputs = np.arange(found.members.shape[1], dtype=np.uint64)
    had_closed = (closed[found.result_items][:, None] >> inputs) & np.uint64(1) != 0
    return replace(found, members=np.where((found.members == FINISHED) & ~had_closed, ENDED, found.members))


def words_of(members: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """The reasons why an input is absent, as JSON strings, and the place of each combination's reason among these."""
    return list(_WORDS.values()), NIL - members
