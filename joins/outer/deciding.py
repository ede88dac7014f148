"""What decided that inputs are absent from a combination: one of them may be finished, and another one not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joins.items import UNKEYED, JoinedColumns
from joins.kernels.tables import FINISHED, NIL

ENDED = -3
"""In combinations that may lack inputs: absent, and the end of the input has finished the key."""

_WORDS = {NIL: '"window"', FINISHED: '"finished"', ENDED: '"end_of_input"', UNKEYED: '"no_key"'}


def decided_by_the_end(found: JoinedColumns, closed: NDArray[np.uint64]) -> JoinedColumns:
    """Combinations that are decided as every input closes every key, with ``ENDED`` where it had not before.

    Args:
        found: What the closings led to.
        closed: Of the key of each item, the inputs that had closed it before, as bits.
    """
    inputs = np.arange(found.members.shape[1], dtype=np.uint64)
    had_closed = (closed[found.result_items][:, None] >> inputs) & np.uint64(1) != 0
    return replace(found, members=np.where((found.members == FINISHED) & ~had_closed, ENDED, found.members))


def words_of(members: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """What decided that an input is absent, as JSON, and of each combination which of them.

    Args:
        members: Of the input, all absent.
    """
    return list(_WORDS.values()), NIL - members
