"""Events without a usable key in a re-keyed input: each has a key of its own, which every input has finished.

So an event joins nothing. It is reported alone where all other inputs may be absent, and its key is over at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.items import Cause, ItemColumns, JoinedColumns, Why, are_events, are_unkeyed
from joins.outer import UNKEYED

COUNT = "without_key"
"""The name of the number of these events, behind the alias of their input."""


def lone_inputs(body: JoinBody) -> NDArray[np.bool_]:
    """The inputs an event of which may be a combination alone, as all others may be absent."""
    lone = [all(other.alias in body.outer for other in body.inputs if other is not one) for one in body.inputs]
    return np.array(lone, np.bool_)


def with_lone(
    found: JoinedColumns, items: ItemColumns, is_lone: NDArray[np.bool_], first: int, now_us: int | None
) -> JoinedColumns:
    """What items led to, and among that the events without a usable key that are reported alone, and their keys.

    Args:
        found: What the other items led to.
        items: The items.
        is_lone: By input, whether its events may be reported alone.
        first: The sequence number of the first event among the items.
        now_us: How far time had come before.
    """
    chosen = np.flatnonzero(are_unkeyed(items) & is_lone[items.inputs])
    if not len(chosen):
        return found
    times_us = np.maximum.accumulate(items.times_us)
    times_us = (times_us if now_us is None else np.maximum(times_us, now_us))[chosen]
    members = np.full((len(chosen), found.members.shape[1]), UNKEYED, np.int64)
    members[np.arange(len(chosen)), items.inputs[chosen]] = first + np.cumsum(are_events(items))[chosen] - 1
    order = _order([found.result_items, chosen])
    ends = _order([found.closing_items, chosen])
    before = np.searchsorted(chosen, found.closing_items)  # of each closing the events that are reported before it
    own = np.searchsorted(found.result_items, chosen, side="right") + np.arange(1, len(chosen) + 1)

    def results(some: NDArray[np.generic], more: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.concatenate([some, more.astype(some.dtype)])[order]

    def closings(some: NDArray[np.generic], more: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.concatenate([some, more.astype(some.dtype)])[ends]

    return JoinedColumns(
        members=results(found.members, members),
        result_times_us=results(found.result_times_us, times_us),
        result_items=results(found.result_items, chosen),
        result_whys=results(found.result_whys, np.full(len(chosen), Why.NO_KEY)),
        closing_keys=closings(found.closing_keys, items.keys[chosen]),
        closing_causes=closings(found.closing_causes, np.full(len(chosen), Cause.IMMEDIATE)),
        closing_times_us=closings(found.closing_times_us, times_us),
        closing_items=closings(found.closing_items, chosen),
        closing_places=closings(found.closing_places + before, own),
        violations=found.violations,
    )


def _order(items: Sequence[NDArray[np.generic]]) -> NDArray[np.intp]:
    """The order by items of two columns of them; of one item those of the first column come first."""
    return np.argsort(np.concatenate(items), kind="stable")
