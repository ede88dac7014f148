"""What a join makes of some events: derived events, ends of traces, and what contradicts a finished key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joins.items import JoinedColumns
from streams import Event, EventBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An event of a key that its input had finished; it joined nothing.

    Attributes:
        event: The event.
        alias: Of its input.
    """

    event: Event
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutput:
    """What some events led to.

    Attributes:
        events: Of the derived stream, in the order in which they came about; the key is that of the join.
        passed_on: The same, and among them a row that ends the trace of each key that is finished: ``streams.ENDED``.
        broken: Events that contradict a finished key.
        is_suspended: Whether the join stops with the first of them (``late: fail``), and holds nothing any more.
        late_retractions: Retractions of events of which nothing is known, or not any more.
        lost: Why rows that were on disk are gone, so that the join has stopped here; None: it has not.
    """

    events: EventBatch
    passed_on: EventBatch
    broken: tuple[Broken, ...] = ()
    is_suspended: bool = False
    late_retractions: tuple[Broken, ...] = ()
    lost: str | None = None


def with_ends(events: EventBatch, places: NDArray[np.int64], found: JoinedColumns, *, is_each: bool) -> EventBatch:
    """Events, and behind those of each finished key a row that ends its trace.

    Args:
        events: In their order.
        places: Of each the number of its combination, or of the closing that it was made at.
        found: What the join found.
        is_each: Whether the events are of combinations.
    """
    closings = len(found.closing_keys)
    if not closings:
        return events
    ended = EventBatch.of_ended(found.closing_keys, found.closing_times_us)
    of_events, of_ends = (places, found.closing_places) if is_each else (places, np.arange(closings) + 1)
    order = np.argsort(np.concatenate([2 * of_events + 1, 2 * of_ends]), kind="stable")
    return EventBatch.joined([events, ended]).take(order)


def joined_outputs(outputs: Sequence[JoinOutput]) -> JoinOutput:
    """The outputs of the parts of something as one."""
    if len(outputs) == 1:
        return outputs[0]
    return JoinOutput(
        events=EventBatch.joined([one.events for one in outputs]),
        passed_on=EventBatch.joined([one.passed_on for one in outputs]),
        broken=tuple(broken for one in outputs for broken in one.broken),
        is_suspended=any(one.is_suspended for one in outputs),
        late_retractions=tuple(late for one in outputs for late in one.late_retractions),
        lost=next((one.lost for one in outputs if one.lost is not None), None),
    )
