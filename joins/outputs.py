"""The output of a join: derived events, ends of traces, and events that contradict a finished key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.held_events import HeldEvents
from joins.items import ItemColumns, JoinedColumns, are_events
from joins.merging import original_of
from streams import Event, EventBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An event that a report of ``JoinOutput`` names, with the alias of its input.

    In ``broken``, its key was finished.
    """

    event: Event
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutput:
    """The output of a join for the given events.

    Attributes:
        events: Events of the derived stream, in the order in which they were made, with the keys of the join.
        passed_on: The same events, with a row that ends the trace of each finished key (``streams.ENDED``).
        broken: Events that joined nothing, because their key was finished before.
        is_suspended: Whether the join stops here and drops its state. It does so at the first broken event (``late:
            fail``), or at its limits of results.
        late_retractions: Retractions of unknown or forgotten events.
        lost: The reason why the join has stopped for good, such as missing rows on disk. Only the first output after
            the stop has the reason.
        cut: For each event that led to too many results, the newest event of its last reported combination.
        excess: If the join stops at its limits of results, the newest event of the last result. Otherwise empty.
    """

    events: EventBatch
    passed_on: EventBatch
    broken: tuple[Broken, ...] = ()
    is_suspended: bool = False
    late_retractions: tuple[Broken, ...] = ()
    lost: str | None = None
    cut: tuple[Broken, ...] = ()
    excess: tuple[Broken, ...] = ()


def with_ends(events: EventBatch, places: NDArray[np.int64], results: JoinedColumns, *, is_each: bool) -> EventBatch:
    """Return derived events with a row for each finished key. The row ends the trace of the key.

    The row comes after the events of its key. If ``is_each`` is true, ``places`` has the index of the combination of
    each event. Otherwise it has the index of the closing that led to each event.
    """
    closings = len(results.closing_keys)
    if not closings:
        return events
    ended = EventBatch.of_ended(results.closing_keys, results.closing_times_us)
    of_events, of_ends = (places, results.closing_places) if is_each else (places, np.arange(closings) + 1)
    order = np.argsort(np.concatenate([2 * of_events + 1, 2 * of_ends]), kind="stable")
    return EventBatch.joined([events, ended]).take(order)


def joined_outputs(outputs: Sequence[JoinOutput]) -> JoinOutput:
    """Concatenate the outputs that a join has made for consecutive parts of its input."""
    if len(outputs) == 1:
        return outputs[0]
    return JoinOutput(
        events=EventBatch.joined([output.events for output in outputs]),
        passed_on=EventBatch.joined([output.passed_on for output in outputs]),
        broken=tuple(broken for output in outputs for broken in output.broken),
        is_suspended=any(output.is_suspended for output in outputs),
        late_retractions=tuple(late for output in outputs for late in output.late_retractions),
        lost=next((output.lost for output in outputs if output.lost is not None), None),
        cut=tuple(cut for output in outputs for cut in output.cut),
        excess=tuple(excess for output in outputs for excess in output.excess),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The results of a join up to the one at which it stops, and the events to report.

    ``is_stopping``: it does stop.
    """

    results: JoinedColumns
    is_stopping: bool
    broken: tuple[Broken, ...]
    cut: tuple[Broken, ...]
    excess: tuple[Broken, ...]

    def output(self, events: EventBatch, places: NDArray[np.int64], *, is_each: bool) -> JoinOutput:
        """Create the output of the join from its derived events, the ends of traces, and the reports of this stop.

        ``places`` and ``is_each`` are as in ``with_ends``.
        """
        return JoinOutput(
            events=events,
            passed_on=with_ends(events, places, self.results, is_each=is_each),
            broken=self.broken,
            is_suspended=self.is_stopping,
            cut=self.cut,
            excess=self.excess,
        )


def stopped(
    results: JoinedColumns,
    items: ItemColumns,
    first: int,
    join: tuple[JoinBody, HeldEvents],
    over: int | None,
) -> Stop:
    """Cut the results of a join where it stops: at the first late event (``late: fail``), or at the result ``over``.

    ``first`` is the sequence number of the first event among the items. ``over`` is the index of the result that
    exceeds the limits, or None. Without a stop, the results are complete.
    """
    body, held = join
    late = int(results.violations[0]) if body.late == "fail" and len(results.violations) else None
    if over is not None and late is not None and results.result_items[over] > late:
        over = None
    if over is not None:
        results = results.up_to(over)
    elif late is not None:
        results = results.until(late)
    sequences, aliases = first + np.cumsum(are_events(items)) - 1, [join_input.alias for join_input in body.inputs]
    return Stop(
        results=results,
        is_stopping=over is not None or late is not None,
        broken=_stream_events(held, aliases, sequences[results.violations], items.inputs[results.violations]),
        cut=_newest(held, aliases, results.members[results.cuts]),
        excess=_newest(held, aliases, results.members[over:] if over is not None else results.members[:0]),
    )


def _newest(held: HeldEvents, aliases: Sequence[str], members: NDArray[np.int64]) -> tuple[Broken, ...]:
    return _stream_events(held, aliases, members.max(axis=1, initial=-1), members.argmax(axis=1))


def _stream_events(
    held: HeldEvents, aliases: Sequence[str], sequences: NDArray[np.int64], numbers: NDArray[np.integer]
) -> tuple[Broken, ...]:
    """Return stored events as events of their streams. ``numbers`` are the inputs of the events."""
    events = held.batch(held.rows_of(sequences)).to_events() if len(sequences) else []
    numbered = zip(events, numbers.tolist(), strict=True)
    return tuple(Broken(event=original_of(event), alias=aliases[number]) for event, number in numbered)
