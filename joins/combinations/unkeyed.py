"""Events without a usable key, in inputs that are joined by another key than the correlation key.

Such an event joins nothing. It gets a unique key that every input has finished, so the key is over at once. The event
is reported alone if all other inputs may be absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.items import UNKEYED, Cause, ItemColumns, JoinedColumns, Why, are_events, are_unkeyed

COUNT = "without_key"
"""Name of the counter of events without a usable key. For a single input, its alias and ``FIGURE`` come first."""
FIGURE = ":"
"""Separator of an input's alias and the rest of a counter's name; no other counter name contains this character."""


def lone_inputs(body: JoinBody) -> NDArray[np.bool_]:
    """Return a mask over the inputs of a join: true if all other inputs may be absent (``outer``).

    An event without a usable key is reported alone if its input is in the mask.
    """
    lone = [
        all(other.alias in body.outer for other in body.inputs if other is not join_input) for join_input in body.inputs
    ]
    return np.array(lone, np.bool_)


class UnkeyedEvents:
    """Counts a join's events without a usable key (null, an object or a list), by input.

    ``counts`` are the numbers so far, or None to begin with 0.
    """

    def __init__(self, body: JoinBody, counts: Sequence[int] | None = None) -> None:
        self._aliases = [join_input.alias for join_input in body.inputs]
        self._is_lone = lone_inputs(body)
        self._counts = np.array([0] * len(body.inputs) if counts is None else counts, np.int64)

    @property
    def counts(self) -> list[int]:
        """The number of events without a usable key, by input. Empty if there were none."""
        counts: list[int] = self._counts.tolist() if self._counts.any() else []
        return counts

    def reported(self, results: JoinedColumns, items: ItemColumns, first: int, now_us: int | None) -> JoinedColumns:
        """Count the events without a usable key among ``items``, and add their results as ``with_lone`` does."""
        self._counts += np.bincount(items.inputs[are_unkeyed(items)], minlength=len(self._counts))
        return with_lone(results, items, self._is_lone, first, now_us)

    def measures(self) -> dict[str, int]:
        """Return how many events had no usable key: in total, and for each input with such events."""
        if not self.counts:
            return {}
        pairs = zip(self._aliases, self.counts, strict=True)
        return {COUNT: sum(self.counts), **{f"{alias}{FIGURE}{COUNT}": count for alias, count in pairs if count}}


def with_lone(
    joined: JoinedColumns, items: ItemColumns, is_lone: NDArray[np.bool_], first: int, now_us: int | None
) -> JoinedColumns:
    """Return ``joined`` with a result and a closed key for each event that has no usable key and is reported alone.

    ``joined`` has the results of the other items. ``is_lone`` is the mask of the inputs whose events are reported alone
    (``lone_inputs``). ``first`` is the sequence number of the first event in ``items``. ``now_us`` is the time of the
    join before the items.
    """
    lone_items = np.flatnonzero(are_unkeyed(items) & is_lone[items.inputs])
    if not len(lone_items):
        return joined
    times_us = np.maximum.accumulate(items.times_us)
    times_us = (times_us if now_us is None else np.maximum(times_us, now_us))[lone_items]
    members = np.full((len(lone_items), joined.members.shape[1]), UNKEYED, np.int64)
    members[np.arange(len(lone_items)), items.inputs[lone_items]] = first + np.cumsum(are_events(items))[lone_items] - 1
    order = _order([joined.result_items, lone_items])
    ends = _order([joined.closing_items, lone_items])
    lone_before_closings = np.searchsorted(
        lone_items, joined.closing_items
    )  # for each closing, the lone events reported before it
    lone_places = np.searchsorted(joined.result_items, lone_items, side="right") + np.arange(1, len(lone_items) + 1)
    lone_before_cuts = np.searchsorted(
        lone_items, joined.result_items[joined.cuts]
    )  # for each cut, the lone events that are reported before it

    def results(values: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, more.astype(values.dtype)])[order]

    def closings(values: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, more.astype(values.dtype)])[ends]

    return JoinedColumns(
        members=results(joined.members, members),
        result_times_us=results(joined.result_times_us, times_us),
        result_items=results(joined.result_items, lone_items),
        result_whys=results(joined.result_whys, np.full(len(lone_items), Why.NO_KEY)),
        closing_keys=closings(joined.closing_keys, items.keys[lone_items]),
        closing_causes=closings(joined.closing_causes, np.full(len(lone_items), Cause.IMMEDIATE)),
        closing_times_us=closings(joined.closing_times_us, times_us),
        closing_items=closings(joined.closing_items, lone_items),
        closing_places=closings(joined.closing_places + lone_before_closings, lone_places),
        violations=joined.violations,
        cuts=joined.cuts + lone_before_cuts,
    )


def _order(items: Sequence[NDArray[np.generic]]) -> NDArray[np.intp]:
    return np.argsort(np.concatenate(items), kind="stable")
