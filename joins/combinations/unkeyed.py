"""Events without a usable key, in inputs that are joined by another key than the correlation key.

Each event gets a unique key that counts as finished by every input, so the event joins nothing. The event is reported
alone if all other inputs may be absent, and its key is over at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.items import UNKEYED, Cause, ItemColumns, JoinedColumns, Why, are_events, are_unkeyed

COUNT = "without_key"
"""Name of the counter of these events; for a single input, the part after its alias and ``FIGURE``."""
FIGURE = ":"
"""Separator of an input's alias and the rest of a counter's name; no other counter name contains this character."""


def lone_inputs(body: JoinBody) -> NDArray[np.bool_]:
    """Mask of the inputs whose event can be a combination alone, because all other inputs may be absent."""
    lone = [all(other.alias in body.outer for other in body.inputs if other is not one) for one in body.inputs]
    return np.array(lone, np.bool_)


class UnkeyedEvents:
    """Counts a join's events without a usable key, by input; ``counts``: the numbers so far (None: all 0)."""

    def __init__(self, body: JoinBody, counts: Sequence[int] | None = None) -> None:
        self._aliases = [one.alias for one in body.inputs]
        self._is_lone = lone_inputs(body)
        self._counts = np.array([0] * len(body.inputs) if counts is None else counts, np.int64)

    @property
    def counts(self) -> list[int]:
        """The number of events without a usable key, by input; empty if there were none."""
        counts: list[int] = self._counts.tolist() if self._counts.any() else []
        return counts

    def reported(self, found: JoinedColumns, items: ItemColumns, first: int, now_us: int | None) -> JoinedColumns:
        """Count the events without a usable key among some items, and add them to the results (``with_lone``)."""
        self._counts += np.bincount(items.inputs[are_unkeyed(items)], minlength=len(self._counts))
        return with_lone(found, items, self._is_lone, first, now_us)

    def measures(self) -> dict[str, int]:
        """The number of events without a usable key: in total, and for each input that had some."""
        if not self.counts:
            return {}
        pairs = zip(self._aliases, self.counts, strict=True)
        return {COUNT: sum(self.counts), **{f"{alias}{FIGURE}{COUNT}": count for alias, count in pairs if count}}


def with_lone(
    found: JoinedColumns, items: ItemColumns, is_lone: NDArray[np.bool_], first: int, now_us: int | None
) -> JoinedColumns:
    """Add to the results of some items the events without a usable key that are reported alone, and end their keys.

    ``found`` are the results of the other items, ``is_lone`` is the mask of the inputs whose events may be reported
    alone, ``first`` is the sequence number of the first event, ``now_us`` the time of the join before the items.
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
    before = np.searchsorted(chosen, found.closing_items)  # for each closing, the lone events reported before it
    own = np.searchsorted(found.result_items, chosen, side="right") + np.arange(1, len(chosen) + 1)
    behind = np.searchsorted(
        chosen, found.result_items[found.cuts]
    )  # for each cut, the lone events that are reported before it

    def results(some: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([some, more.astype(some.dtype)])[order]

    def closings(some: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
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
        cuts=found.cuts + behind,
    )


def _order(items: Sequence[NDArray[np.generic]]) -> NDArray[np.intp]:
    """The order that merges two columns of item numbers; for equal items, the first column comes first."""
    return np.argsort(np.concatenate(items), kind="stable")
