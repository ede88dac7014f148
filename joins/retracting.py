"""What follows in a join from the retraction of an event that it has taken in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.emitting import DerivedEvents, MemberEvents
from joins.held_events import HeldEvents
from joins.items import JoinedColumns, Why
from joins.ledger import Ledger, Life, Said, members_of
from joins.returns import Totals
from joins.windowed import WindowJoin
from streams import EventBatch, texts_of

Removed = Sequence[tuple[Life, Said]]


def left_alone(
    ledger: Ledger, join: WindowJoin, held: HeldEvents, reporting: Sequence[int], of: tuple[int, int], removed: Removed
) -> list[tuple[Life, int, int]]:
    """Events whose absences are reported that are in no combination any more, and can no longer join anything.

    Those that can count as events that have joined nothing.

    Args:
        ledger: What is known otherwise.
        join: What stores events.
        held: Which of them have taken part in something for good.
        reporting: Inputs whose events are reported where they joined nothing.
        of: The hashed key and the sequence number of the event that is retracted.
        removed: The combinations that it was in.

    Returns:
        Of each the life of its key, its input and its sequence number, by the latter.
    """
    key, sequence = of
    others, found = ledger.others(key), dict[int, tuple[Life, int, int]]()
    for life, said in removed:
        for number in reporting:
            one = said.members[number]
            if one >= 0 and one != sequence and one not in others:
                found[one] = life, number, one
    alone = []
    for _, (life, number, one) in sorted(found.items()):
        is_fixed = held.has_counted(held.rows_of(np.array([one], np.int64)))[0]
        if not is_fixed and not join.unjoin(key, number, one):
            alone.append((life, number, one))
    return alone


def absences(alone: Sequence[tuple[Life, int, int]], inputs: int, time_us: int) -> JoinedColumns:
    """The results that say of some events that the others are absent, as they were retracted."""
    members = np.full((len(alone), inputs), -1, np.int64)
    for place, (_, number, one) in enumerate(alone):
        members[place, number] = one
    none = np.zeros(0, np.int64)
    return JoinedColumns(
        members=members,
        result_times_us=np.full(len(alone), time_us, np.int64),
        result_items=np.zeros(len(alone), np.int32),
        result_whys=np.full(len(alone), Why.BY_RETRACTION, np.uint8),
        closing_keys=none.astype(np.uint64),
        closing_causes=none.astype(np.uint8),
        closing_times_us=none,
        closing_items=none.astype(np.int32),
        closing_places=none,
        violations=none.astype(np.int32),
    )


def total_of(life: Life | None, base: list[Any] | None, held: HeldEvents, totals: Totals, body: JoinBody) -> list[Any]:
    """The totals of a key: of the events that are in its combinations, each once, in the order in which they came.

    Args:
        life: Its combinations.
        base: The total of what was counted before they were noted.
        held: Holds the events; those that are marked there are in ``base``.
        totals: How events are counted.
        body: Of the join.
    """
    total = totals.empty() if base is None else base
    sequences = np.array([] if life is None else members_of(life.said.values()), np.int64)
    of = dict[int, int]()
    for said in () if life is None else life.said.values():
        of |= {one: number for number, one in enumerate(said.members) if one >= 0}
    rows = held.rows_of(sequences)
    fresh = ~held.has_counted(rows)
    sequences, rows = sequences[fresh], rows[fresh]
    inputs = np.array([of[one] for one in sequences.tolist()], np.int64)
    counted: list[tuple[int, int, Sequence[Any]]] = []
    for number, one in enumerate(body.inputs):
        columns = [column for column in body.columns if column.alias == one.alias]
        if columns and (inputs == number).any():
            events = MemberEvents(held, rows[inputs == number])
            values = zip(*(events.values(column) for column in columns), strict=True)
            counted += zip(
                sequences[inputs == number].tolist(), [number] * int((inputs == number).sum()), values, strict=True
            )
    for sequence, number, some in sorted(counted, key=lambda event: event[0]):
        for (place, added), value in zip(totals.adding[body.inputs[number].alias], some, strict=True):
            total[place] = added(total[place], sequence, value)
    return total


def hashed(key: str, key_hash: int) -> tuple[Any, NDArray[np.uint64]]:
    """A key as derived events take it."""
    return texts_of([key]), np.array([key_hash], np.uint64)


def retractions_of(derived: DerivedEvents, said: Sequence[Said], behind: str, key: str, time_us: int) -> EventBatch:
    """The events that take back those that some combinations became."""
    return derived.of_retractions(
        [(one.event_id, one.event_type) for one in said if one.event_id], behind, key, time_us
    )
