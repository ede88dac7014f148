"""A condition between the inputs of a join, which must hold in every combination that the join reports.

The join combines events by key, and this module drops combinations that contradict the condition. If the join reports
unjoined events, its kernel passes on every event that can no longer join (``reports_all``), and the condition then
drops the events that have joined another event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.emitting import MemberEvents
from joins.held_events import HeldEvents
from joins.items import JoinedColumns
from joins.retracting import Retractions
from joins.returns import Column, Placed

_PART = 65_536  # most combinations whose values are in memory at a time


class Condition(Protocol):
    """The compiled ``where`` of a join: a predicate over the events of a combination, one event of each input."""

    @property
    def reads(self) -> Sequence[Column]:
        """The attributes that the condition reads, each of one input.

        A ``time`` is passed to ``holds`` in microseconds.
        """
        ...

    def holds(self, values: Sequence[Placed], size: int) -> NDArray[np.bool_]:
        """Return a mask of the ``size`` combinations for which the condition holds.

        ``values`` has an entry for each column of ``reads``: the column's distinct values as plain JSON, and for each
        combination the index of its value.
        """
        ...


class Conditions(Protocol):
    """A function that compiles the text in ``where`` of a join."""

    def __call__(self, body: JoinBody) -> Condition | None:
        """Return the compiled ``where`` of a join, or None for a join without ``where``."""
        ...


def unconditional(body: JoinBody) -> None:
    """Raise ``ValueError`` if the join has a ``where``.

    This is the ``Conditions`` of callers that cannot compile any.
    """
    if body.where is not None:
        raise ValueError(f"nothing reads the condition {body.where!r} of a join")


@dataclass(slots=True)
class Conditional:
    """Applies the condition (``where``) of a join to its results.

    ``left_out`` has three counts of dropped results: combinations for which the condition does not hold, reports of
    events as unjoined although they have joined, and combinations beyond the limit for one event.
    """

    body: JoinBody
    condition: Condition
    left_out: list[int] = field(default_factory=lambda: [0, 0, 0])

    @classmethod
    def of(cls, body: JoinBody, conditions: Conditions, before: Conditional | None = None) -> Conditional | None:
        """Return the ``Conditional`` of a join, or None for a join without ``where``.

        Counts continue from ``before``, if given.
        """
        condition = conditions(body)
        if condition is None:
            return None
        return cls(body, condition) if before is None else cls(body, condition, before.left_out)

    def judged(
        self, results: JoinedColumns, held: HeldEvents, retractions: Retractions | None, most: int
    ) -> tuple[JoinedColumns, NDArray[np.bool_]]:
        """Apply the condition. Return the results with new ``cuts``, and the mask of the results to keep.

        A combination is kept if the condition holds for it. If an event completes more than ``most`` such combinations,
        the excess is dropped, and ``cuts`` notes this. The report of an unjoined event is kept if the event is in no
        combination for which the condition holds. Events that have joined are remembered in ``held`` or
        ``retractions``.
        """
        is_whole = np.all(results.members >= 0, axis=1)
        combinations, alone = np.flatnonzero(is_whole), np.flatnonzero(~is_whole)
        is_kept = np.ones(len(is_whole), np.bool_)
        is_kept[combinations] = self._holds(results.members[combinations], held)
        joined = np.unique(results.members[combinations[is_kept[combinations]]])
        if len(alone):
            sequences = results.members[alone].max(axis=1)
            rows = held.rows_of(sequences)
            is_joined = np.isin(sequences, joined) | held.is_counted(rows)
            if retractions is not None:
                others = {key: retractions.ledger.members_of_key(key) for key in set(held.hashes(rows).tolist())}
                pairs = zip(held.hashes(rows).tolist(), sequences.tolist(), strict=True)
                is_joined |= np.array([sequence in others[key] for key, sequence in pairs], np.bool_)
            is_kept[alone] = ~is_joined
        if retractions is None and self.body.emit == "each" and self.body.reporting:
            held.mark_counted(held.rows_of(joined))
        self.left_out[0] += int(np.count_nonzero(~is_kept[combinations]))
        self.left_out[1] += int(np.count_nonzero(~is_kept[alone]))
        held_in = combinations[is_kept[combinations]]
        items = results.result_items[held_in]
        ranks = np.arange(len(held_in)) - np.searchsorted(items, items)
        is_kept[held_in[ranks >= most]] = False
        self.left_out[2] += int(np.count_nonzero(ranks >= most))
        return replace(results, cuts=held_in[np.flatnonzero(ranks == most) - 1]), is_kept

    def counted(self, counts: dict[str, int]) -> dict[str, int]:
        """Return the counts of ``JoinStats`` without the results that the condition has dropped.

        The count ``contradicting`` is added: combinations for which the condition does not hold.
        """
        contradicting, joined, cut = self.left_out
        return {
            **counts,
            "results": counts["results"] - contradicting - joined - cut,
            "absent": counts["absent"] - joined,
            "contradicting": contradicting,
        }

    def _holds(self, members: NDArray[np.int64], held: HeldEvents) -> NDArray[np.bool_]:
        parts = [self._holds_in(members[first : first + _PART], held) for first in range(0, len(members), _PART)]
        return np.concatenate([np.zeros(0, np.bool_), *parts])

    def _holds_in(self, members: NDArray[np.int64], held: HeldEvents) -> NDArray[np.bool_]:
        aliases = [join_input.alias for join_input in self.body.inputs]
        events = {
            alias: MemberEvents(held, held.rows_of(members[:, aliases.index(alias)]))
            for alias in {column.alias for column in self.condition.reads}
        }
        values = [events[column.alias].placed(column) for column in self.condition.reads]
        return self.condition.holds(values, len(members))
