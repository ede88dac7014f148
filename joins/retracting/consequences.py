"""Consequences of a retraction in a join: events that become unjoined, and new totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.held_events import HeldEvents
from joins.items import JoinedColumns, Why
from joins.retracting.ledger import Ledger, Life, ReportedCombination, members_of
from joins.totalling import KeyTotals
from joins.windowed import WindowJoin
from streams import zeros_of

Removed = Sequence[tuple[Life, ReportedCombination]]
"""Combinations that were removed from the ledger, and the lives that they were in."""


def left_alone(
    ledger: Ledger, join: WindowJoin, held: HeldEvents, reporting: Sequence[int], of: tuple[int, int], removed: Removed
) -> list[tuple[Life, int, int]]:
    """The events that a retraction leaves without a combination, and that are reported as unjoined because they can no
    longer join.

    Events that are still stored are marked as unjoined in ``join`` instead. ``held`` knows which events were part of a
    result that can no longer be retracted. ``of``: hashed key and sequence number of the retracted event; ``removed``:
    the combinations of the retracted event, which the ledger no longer has. Returns for each event the life of its key,
    its input and its sequence number, by sequence number.
    """
    key, sequence = of
    others, found = ledger.others(key), dict[int, tuple[Life, int, int]]()
    for life, combination in removed:
        for number in reporting:
            one = combination.members[number]
            if one >= 0 and one != sequence and one not in others:
                found[one] = life, number, one
    alone = []
    for _, (life, number, one) in sorted(found.items()):
        is_fixed = held.is_counted(held.rows_of(np.array([one], np.int64)))[0]
        if not is_fixed and not join.unjoin(key, number, one):
            alone.append((life, number, one))
    return alone


def absences(alone: Sequence[tuple[Life, int, int]], inputs: int, time_us: int) -> JoinedColumns:
    """Results for events whose partners are absent because they were retracted."""
    members = np.full((len(alone), inputs), -1, np.int64)
    for place, (_, number, one) in enumerate(alone):
        members[place, number] = one
    return zeros_of(
        JoinedColumns,
        0,
        members=members,
        result_times_us=np.full(len(alone), time_us, np.int64),
        result_items=len(alone),
        result_whys=np.full(len(alone), Why.BY_RETRACTION, np.uint8),
    )


def total_of(
    life: Life | None, base: list[Any] | None, held: HeldEvents, totals: KeyTotals, body: JoinBody
) -> list[Any]:
    """The totals of a key over the events of its combinations; each event counts once, in the order of arrival.

    ``base`` is the total of events counted before combinations were noted, None without such events; they are marked in
    ``held``.
    """
    total = totals.columns.empty() if base is None else base
    combinations = () if life is None else life.reported.values()
    sequences = np.array(members_of(combinations), np.int64)
    rows = held.rows_of(sequences)
    is_fresh = ~held.is_counted(rows)
    sequences, rows = sequences[is_fresh], rows[is_fresh]
    of = {one: number for some in combinations for number, one in enumerate(some.members)}
    numbers: NDArray[np.int64] = np.array([of[one] for one in sequences.tolist()], np.int64)
    values = totals.values(held, rows, numbers)
    for sequence, number, some in zip(sequences.tolist(), numbers.tolist(), values, strict=True):
        for (place, added), value in zip(totals.columns.adding.get(body.inputs[number].alias, []), some, strict=True):
            total[place] = added(total[place], sequence, value)
    return total
