"""How many results a join may lead to: one event at once, and its events over time.

What is counted are results, their bytes and events, never seconds. Results and events are counted in their order. So a
join is suspended at the same result however events are cut into batches, after a restart and in a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.items import ItemColumns, JoinedColumns, are_events

_SMALL_BYTES = 512  # of the values of a result that counts once
_DROPPED = 10  # combinations that a condition drops count as one result


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLimits:
    """The limits of a join. The usual values are a part of the log's format: a document without limits has them.

    Attributes:
        per_event: Results that one event of a key may lead to at once, at least 1; the others are not emitted.
        average: Results that each event of the join in a shard may lead to without counting, at least 1.
        ahead: Results beyond that, at least 1; with more the join is suspended. One of more than two inputs, or with
            values of more than 512 bytes, counts as several. Ten combinations that the join's condition drops count
            as one.
    """

    per_event: int = 10_000
    average: int = 20
    ahead: int = 200_000


class ResultAccount:
    """The results of a join in a shard beyond those that its events may lead to.

    Attributes:
        limits: Of the join.
        owed: Tenths of results that count; each event takes ``average`` results off, behind its own ones.
        cut: Events that led to more results than one may.
        has_asked: Whether its totals have been of combinations in which a condition holds. They are looked for one by
            one from then on, as events that were in none are anywhere.
    """

    def __init__(self, limits: ResultLimits, owed: int = 0, cut: int = 0, *, has_asked: bool = False) -> None:
        self.limits, self.owed, self.cut, self.has_asked = limits, owed, cut, has_asked

    def limited(self, limits: ResultLimits, *, asks: bool, is_total: bool) -> tuple[int, bool]:
        """Take limits over.

        Args:
            limits: Of the join.
            asks: Whether it has a condition.
            is_total: Whether it makes totals and nothing else of its combinations.

        Returns:
            How many combinations one event may lead to at once, and whether those are enough that have each event.
            Where combinations only may be results, more than that are too much owed.
        """
        self.limits, self.has_asked = limits, self.has_asked or (is_total and asks)
        are_candidates = asks or (is_total and self.has_asked)
        most = _DROPPED * limits.ahead + 1 if are_candidates else limits.per_event
        return most, is_total and not self.has_asked

    def measures(self) -> dict[str, int]:
        """What is owed, and how many events were cut."""
        return {"results_ahead": -(-self.owed // _DROPPED), "results_cut": self.cut}

    def to_json(self) -> dict[str, list[int]]:
        """What a saved join has of it; nothing as long as there is nothing."""
        state = [self.owed, self.cut, int(self.has_asked)]
        return {"account": state} if any(state) else {}

    @classmethod
    def from_json(cls, limits: ResultLimits, head: Mapping[str, Any]) -> ResultAccount:
        """That of a saved join."""
        owed, cut, has_asked = head.get("account", (0, 0, 0))
        return cls(limits, owed, cut, has_asked=bool(has_asked))

    def count(
        self,
        found: JoinedColumns,
        items: ItemColumns,
        sizes: NDArray[np.int64],
        is_result: NDArray[np.bool_] | None = None,
    ) -> list[int]:
        """Count results in.

        Args:
            found: What the items led to; what it has of an item behind them was decided before that item came.
            items: In their order.
            sizes: Bytes of the values of each result.
            is_result: Which are results, and not combinations that a condition drops or events that have joined
                something; None: all are.

        Returns:
            The number of the first one with which more is owed than may be; none where that is not so.
        """
        results, inputs = found.members.shape
        costs = _DROPPED * np.maximum(max(1, inputs // 2), sizes // _SMALL_BYTES)
        costs = costs if is_result is None else np.where(is_result, costs, np.all(found.members >= 0, axis=1))
        events = np.flatnonzero(are_events(items))
        order = np.argsort(np.concatenate([2 * found.result_items.astype(np.int64), 2 * events + 1]), kind="stable")
        steps = np.concatenate([costs, np.full(len(events), -_DROPPED * self.limits.average)])[order]
        sums = self.owed + np.cumsum(steps)
        owed = sums - np.minimum(np.minimum.accumulate(sums), 0)
        over = order[(owed > _DROPPED * self.limits.ahead) & (order < results)]
        self.owed = int(owed[-1]) if len(owed) else self.owed
        self.cut += len(found.cuts)
        first: list[int] = over[:1].tolist()
        return first
