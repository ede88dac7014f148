"""Limits of the number of results of a join: per event at once, and over time.

The account counts results, bytes and events in their order, and never seconds. So a join is suspended at the same
result whatever the batch boundaries are, and a restart or a replay changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.items import ItemColumns, JoinedColumns, are_events

_SMALL_BYTES = 512  # most bytes of the values of a result that counts once
_DROPPED = 10  # this number of combinations dropped by a condition counts as one result


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLimits:
    """The limits of a join's results, from the member ``results`` of its document.

    The defaults apply to a document without limits. They are part of the log's format.

    Attributes:
        per_event: The most results that an event may lead to at once, at least 1. More results are not emitted.
        average: Number of results that each event of the join allows in a shard, at least 1.
        ahead: Most results beyond those that the events so far allow, at least 1. The next result suspends the join. A
            result of n inputs counts n / 2 times (rounded down, at least once). A large result counts once for each 512
            bytes of its values, if this is more. Ten combinations that the join's condition drops count as one result.
    """

    per_event: int = 10_000
    average: int = 20
    ahead: int = 200_000


class ResultAccount:
    """Counts how many results of a join in a shard exceed the number that its events allow (``ResultLimits``).

    Attributes:
        owed: The excess, in tenths of a result, at least 0. Each event first adds its results and then deducts
            ``average`` results.
        cut: Number of events that led to more than ``per_event`` results.
        has_asked: Whether the join has ever made totals under a condition. If so, all combinations are examined,
            because the condition may exclude an event from every combination.
    """

    def __init__(self, limits: ResultLimits, owed: int = 0, cut: int = 0, *, has_asked: bool = False) -> None:
        self.limits, self.owed, self.cut, self.has_asked = limits, owed, cut, has_asked

    def limited(self, limits: ResultLimits, *, asks: bool, is_total: bool) -> tuple[int, bool]:
        """Set the limits.

        Return the most combinations of an event to compute at once, and whether some of them suffice. ``asks`` says
        that the join has a condition, and ``is_total`` that it emits only totals. Totals without a condition need each
        event once, so enough combinations to contain each event suffice. If a condition may drop combinations, the
        returned number is so high that a larger number suspends the join.
        """
        self.limits, self.has_asked = limits, self.has_asked or (is_total and asks)
        are_candidates = asks or (is_total and self.has_asked)
        most = _DROPPED * limits.ahead + 1 if are_candidates else limits.per_event
        return most, is_total and not self.has_asked

    def measures(self) -> dict[str, int]:
        """Return the excess of results (``results_ahead``) and the number of events with cut results."""
        return {"results_ahead": -(-self.owed // _DROPPED), "results_cut": self.cut}

    def clear_counts(self) -> None:
        """Set the excess of results and the number of cut events to 0."""
        self.owed = self.cut = 0

    def to_json(self) -> dict[str, list[int]]:
        """Return the member ``account`` of a join's saved state, or no member if all counters are 0."""
        state = [self.owed, self.cut, int(self.has_asked)]
        return {"account": state} if any(state) else {}

    @classmethod
    def from_json(cls, limits: ResultLimits, head: Mapping[str, Any]) -> ResultAccount:
        """Read the account that ``to_json`` wrote into the saved join ``head``."""
        owed, cut, has_asked = head.get("account", (0, 0, 0))
        return cls(limits, owed, cut, has_asked=bool(has_asked))

    def count(
        self,
        joined: JoinedColumns,
        items: ItemColumns,
        sizes: NDArray[np.int64],
        is_result: NDArray[np.bool_] | None = None,
    ) -> list[int]:
        """Add results and events to the account.

        Return the index of the first result beyond ``ahead``, in a list, or ``[]``. Some results may belong to the item
        after ``items``, because time has advanced to this item. ``sizes`` are the bytes of each result's values.
        ``is_result`` is false for results that the condition drops. None means that no result is dropped.
        """
        results, inputs = joined.members.shape
        costs = _DROPPED * np.maximum(max(1, inputs // 2), sizes // _SMALL_BYTES)
        costs = costs if is_result is None else np.where(is_result, costs, np.all(joined.members >= 0, axis=1))
        events = np.flatnonzero(are_events(items))
        order = np.argsort(np.concatenate([2 * joined.result_items.astype(np.int64), 2 * events + 1]), kind="stable")
        steps = np.concatenate([costs, np.full(len(events), -_DROPPED * self.limits.average)])[order]
        sums = self.owed + np.cumsum(steps)
        owed = sums - np.minimum(np.minimum.accumulate(sums), 0)
        over = order[(owed > _DROPPED * self.limits.ahead) & (order < results)]
        self.owed = int(owed[-1]) if len(owed) else self.owed
        self.cut += len(joined.cuts)
        first: list[int] = over[:1].tolist()
        return first
