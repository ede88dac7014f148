"""What a running join says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    events: EventBatch
    passed_on: EventBatch
    broken: tuple[Broken, ...] = ()
    is_suspended: bool = False
    late_retractions: tuple[Broken, ...] = ()


def joined_outputs(outputs: Sequence[JoinOutput]) -> JoinOutput:
    """Some outputs behind each other."""
    return JoinOutput(
        events=EventBatch.joined([one.events for one in outputs]),
        passed_on=EventBatch.joined([one.passed_on for one in outputs]),
        broken=tuple(broken for one in outputs for broken in one.broken),
        is_suspended=any(one.is_suspended for one in outputs),
        late_retractions=tuple(late for one in outputs for late in one.late_retractions),
    )
