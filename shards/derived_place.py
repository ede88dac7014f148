"""The place of a derived stream: its watermark comes from its sources, not from a bound of out-of-orderness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shards.blob import sections_below
from shards.entries import Entry
from shards.feeds import Feeds
from shards.operators import Host, KeyChoice, Kind, SavedHost
from shards.place import Place, Step, known_kind
from streams import (
    CLOSED_US,
    EARLIEST_US,
    EVERY_KEY,
    LATEST_US,
    RETRACTED,
    ControlRecordError,
    EventBatch,
    StreamDeclaration,
)

_WAITING = "waiting"


class EndTime(NamedTuple):
    """The time that a derived stream has reached in one shard when a finite input ends.

    Attributes:
        newest_us: The time of the stream's newest event in this shard, or the watermark if that is later.
        reached_us: The event time up to which the operators have advanced.
    """

    newest_us: int
    reached_us: int


class DerivedPlace(Place):
    """The place of a derived stream: sorts the stream's events if necessary, and passes them to the hosts.

    If all events come from one place of the same shard, their order does not depend on batch boundaries, and they are
    processed at once. Events from several places are buffered until the watermark has passed their time. They are then
    sorted by time and id, and retractions follow the other events of the same time. Events older than the watermark are
    late, and are processed on arrival. The watermark is the least promise of the stream's sources. The shard computes
    it, because only the shard knows all places.

    When no operator feeds the stream through the log any more, events of such operators may still be in the log. The
    place then waits for the log until a closing tick closes it. That is the second of two closing ticks between which
    no such operator has started. It follows all events, because each shard has promised it between the two ticks, when
    no such operator ran.

    Attributes:
        watermark_us: The time before which the hosts have received every event, or None if unknown.
        logged_us: The time before which the log adds no more events, or None if unknown.
        waits_for_log: Whether the log may add more events.
        closing_us: The time of the next closing tick.
        end: The time at the end of a finite input. None until then, and if no operator here depends on time.
    """

    def __init__(self, declaration: StreamDeclaration, kinds: Mapping[str, Kind], hosts: Mapping[str, Host]) -> None:
        super().__init__(declaration, "", kinds, hosts)
        self._is_ordered = self._is_inner = False
        self.watermark_us: int | None = None
        self.logged_us: int | None = None
        self.waits_for_log = False
        self.closing_us = CLOSED_US + 1
        self._is_closing = False  # no operator that feeds the stream through the log has started since a closing tick
        self.end: EndTime | None = None
        self._is_held = False
        self._waiting = EventBatch.from_events([])

    @property
    def is_timed(self) -> bool:
        """Whether passing time can have an effect, because events can be late or an operator depends on time."""
        return self._is_ordered or super().is_timed

    def order(self, feeds: Feeds) -> None:
        """Set whether the place must sort events, and whether its stream is inner (``Feed.is_inner``).

        If an operator feeds the stream through the log, the place waits for the log until ``close_log``.

        Traces of an inner stream never end, so a host would retain every key for ever. Therefore hosts without
        operators receive no events of an inner stream.
        """
        stream = self.declaration.name
        self.waits_for_log |= stream in feeds.logged
        self._is_ordered = self.waits_for_log or feeds.has_several_sources(stream)
        self._is_inner = feeds.is_inner(stream)

    def await_log(self) -> None:
        """Wait for the log, because an operator that feeds the stream through the log starts."""
        self.waits_for_log, self._is_closing = True, False

    def is_closed_by(self, closing_us: int, *, is_logged: bool) -> bool:
        """Return whether a closing tick closes the log. ``is_logged`` is as in ``order``.

        A repeated tick has no effect. A tick of the time ``CLOSED_US``, which a former version appended, closes the log
        if no operator feeds the stream through it.
        """
        if closing_us < self.closing_us:
            return closing_us == CLOSED_US and not is_logged
        is_closed, self._is_closing, self.closing_us = self._is_closing, True, closing_us + 1
        return is_closed

    def close_log(self) -> None:
        """Wait for the log no longer. ``release``, later events and the watermark let waiting events go."""
        self.waits_for_log, self.logged_us = False, None

    def release(self, entry: Entry, *, is_fed: bool) -> Iterator[Step]:
        """Process the events that wait without need, which are all events if nothing feeds the stream any more."""
        if not self._is_ordered:
            yield from self._processed(entry, self._let_go(self._released_us if is_fed else None))

    def measures(self) -> dict[str, int | None]:
        """Return the metrics of ``Place.measures``, where ``watermark_us`` is the watermark of the derived stream."""
        return {**super().measures(), "waiting": len(self._waiting), "watermark_us": self.watermark_us}

    def process(
        self, entries: Sequence[Entry], batches: Sequence[EventBatch], *, is_timed: bool = False
    ) -> Iterator[Step]:
        if not self._is_ordered:
            if self._is_held:
                yield from self._processed(entries[-1], self._let_go(self._released_us))
            arrange = self._due if self._is_held else self._merged
            yield from self._processed(entries[-1], arrange(EventBatch.joined(batches)))
            return
        batch = EventBatch.joined([self._waiting, *batches] if len(self._waiting) else batches)
        if (is_ended := batch.is_ended).any():  # another source may still send events of a key that has ended
            batch = batch.take(np.flatnonzero(~is_ended))
        is_late = batch.time_us < self.watermark_us if self.watermark_us is not None else np.zeros(len(batch), bool)
        if is_late.any():
            late = batch.take(np.flatnonzero(is_late))
            self._counts["late_processed"] += int(np.count_nonzero(late.key_hashes != EVERY_KEY))
            yield from self._processed(entries[-1], late)
            batch = batch.take(np.flatnonzero(~is_late))
        self._waiting = replace(batch, arrivals=None)  # waiting events are ordered by time, not by arrival

    def is_in_order(self, batches: Sequence[EventBatch]) -> bool:
        """Return whether no event of these batches is older than ``logged_us``."""
        return self.logged_us is None or all(bool((batch.time_us >= self.logged_us).all()) for batch in batches)

    def tick(self, entry: Entry, time_us: int) -> Iterator[Step]:
        """Store ``time_us``, the time before which the log adds no more events. ``advance_time`` applies it later."""
        self.logged_us = time_us if self.logged_us is None else max(self.logged_us, time_us)
        return iter(())

    def advance_time(self, entry: Entry, watermark_us: int) -> Iterator[Step]:
        if self.watermark_us is not None and watermark_us <= self.watermark_us:
            return
        self.watermark_us = watermark_us
        yield from self._processed(entry, self._let_go(watermark_us if self._is_ordered else self._released_us))
        yield from self._passed(entry, watermark_us)

    def _passed(self, entry: Entry, time_us: int, *, is_repeated: bool = False) -> Iterator[Step]:
        """Advance the time of each host for which passing time has an effect, and yield the steps.

        A host that has already reached the time is left out, because nothing would change. With ``is_repeated`` it is
        included, because it may have received late events since.
        """
        for host in self._hosts.values():
            is_behind = is_repeated or host.newest_us is None or host.newest_us < time_us
            if is_behind and (host.waits_for_time or self.declaration.idle_timeout is not None):
                yield from self._step(entry, self.metering.advance_time(host, time_us))

    def hold(self) -> None:
        """From now on, buffer events newer than the watermark until ``finish``.

        The shard calls this when a stream that feeds this one is about to finish. The last results of the other stream
        then arrive key by key, and have to be sorted by time.
        """
        self._is_held = True

    @property
    def newest_us(self) -> int | None:
        """The time of the newest event or the watermark, whichever is later. None if neither is known."""
        times = [self.watermark_us, self._newest_us, int(self._waiting.time_us.max()) if len(self._waiting) else None]
        return max((time_us for time_us in times if time_us is not None), default=None)

    def finish(self, entry: Entry, end_us: int | None = None) -> Iterator[Step]:
        """Finish a finite input, and yield the steps: release all waiting events, advance the time, finish the hosts.

        ``end_us`` is the newest time in all shards, if it is known. The time advances to the newest event in this shard
        or to ``end_us``, whichever is later.
        """
        newest_us = self.newest_us
        yield from self._processed(entry, self._let_go(None))
        if newest_us is not None:
            reached_us = newest_us if end_us is None else max(newest_us, end_us)
            if self.declaration.idle_timeout is not None or any(
                host.is_decided_by_end for host in self._hosts.values()
            ):
                self.end = EndTime(newest_us, reached_us)
            yield from self._passed(entry, reached_us, is_repeated=True)
        yield from super().finish(entry)

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        super().keep(is_kept, has_counts=has_counts)
        hashes = self._waiting.key_hashes
        self._waiting = self._waiting.take(np.flatnonzero(is_kept(hashes) | (hashes == EVERY_KEY)))

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        head, sections = super().dump()
        head["derived"] = {
            "watermark_us": self.watermark_us,
            "logged_us": self.logged_us,
            "waits_for_log": self.waits_for_log,
            "closing_us": self.closing_us,
            "is_closing": self._is_closing,
        }
        return head, {**sections, _WAITING: self._waiting.to_bytes()}

    def restore(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        super().restore(head, sections)
        derived = head["derived"]
        self.watermark_us, self.logged_us = derived["watermark_us"], derived["logged_us"]
        self.waits_for_log = derived.get("waits_for_log", False)  # states of 0.1.0 do not have these
        self.closing_us = derived.get("closing_us", self.closing_us)
        self._is_closing = derived.get("is_closing", False)
        self._waiting = EventBatch.from_bytes(sections[_WAITING])

    def _processed(self, entry: Entry, batch: EventBatch) -> Iterator[Step]:
        if len(batch):
            for host in self._hosts.values():
                if host.names or not self._is_inner:
                    yield from self._step(entry, self.metering.process(host, self._with_tables(batch)))

    @property
    def _released_us(self) -> int:
        """The time before which events need not wait, if all events of the stream come from one place."""
        return EARLIEST_US if self.watermark_us is None else self.watermark_us + 1

    def _due(self, batch: EventBatch) -> EventBatch:
        """Return the events that need not wait, and buffer the others. All events of the stream come from one place."""
        is_due = batch.time_us < self._released_us
        self._waiting = replace(EventBatch.joined([self._waiting, batch.take(np.flatnonzero(~is_due))]), arrivals=None)
        return batch.take(np.flatnonzero(is_due))

    def _merged(self, batch: EventBatch) -> EventBatch:
        """Insert events of former sources, which still wait, into the events of a single source by time."""
        if not len(self._waiting) or not len(batch):
            return batch
        reached_us = np.maximum.accumulate(batch.time_us)
        due = self._let_go(int(reached_us[-1]) + 1)
        order = np.argsort(np.concatenate([due.time_us, reached_us]), kind="stable")
        return EventBatch.joined([due, batch]).take(order)

    def _let_go(self, watermark_us: int | None) -> EventBatch:
        waiting = self._waiting
        if not len(waiting):
            return waiting
        is_due = waiting.time_us < (LATEST_US + 1 if watermark_us is None else watermark_us)
        if is_due.all():
            self._waiting = EventBatch.from_events([])
            return self._in_order(waiting)
        if not is_due.any():
            return waiting.slice(0, 0)
        due = waiting.take(np.flatnonzero(is_due))
        self._waiting = waiting.take(np.flatnonzero(~is_due))
        return self._in_order(due)

    def _in_order(self, events: EventBatch) -> EventBatch:
        """Sort events by time and id. At equal times, retractions are last, because they refer to earlier events.

        If all events of the stream come from one place, they keep their order at equal times while a finite input ends.
        """
        if self._is_held and not self._is_ordered:
            return events.take(np.argsort(events.time_us, kind="stable"))
        ordered = replace(events.take(events.order_by_time()), arrivals=None)
        is_retraction = np.array([name.endswith(RETRACTED) for name in ordered.type_names], np.bool_)
        if self._is_inner or not is_retraction.any():
            return ordered
        return ordered.take(np.lexsort((is_retraction[ordered.type_codes], ordered.time_us)))


def place_of(declaration: StreamDeclaration, route: str, kinds: Mapping[str, Kind], hosts: Mapping[str, Host]) -> Place:
    """Create the place of a posted or derived stream, with the given hosts.

    Raises ``ControlRecordError`` for a further key of a derived stream.
    """
    if not declaration.derived:
        return Place(declaration, route, kinds, hosts)
    if route:
        raise ControlRecordError(f"stream {declaration.name!r} is derived, and has no further key {route!r}")
    return DerivedPlace(declaration, kinds, hosts)


def declared_place(declaration: StreamDeclaration, route: str, kinds: Mapping[str, Kind]) -> Place:
    """Create the place of a newly declared stream, with the hosts that every stream has (``Kind.is_resident``)."""
    resident = (kind for kind in kinds.values() if kind.is_resident)
    return place_of(declaration, route, kinds, {kind.name: kind.host(declaration, route) for kind in resident})


def loaded_place(head: Mapping[str, Any], sections: Mapping[str, bytes], kinds: Mapping[str, Kind]) -> Place:
    """Load a place from saved state."""
    declaration, route = StreamDeclaration.from_json(head["declaration"]), head["route"]
    hosts: dict[str, Host] = {}
    for kind, host_head in head["hosts"].items():
        host_sections = sections_below(sections, kind)
        hosts[kind] = known_kind(kind, kinds).host(
            declaration, route, SavedHost(head=host_head, sections=host_sections)
        )
    place = place_of(declaration, route, kinds, hosts)
    place.restore(head, sections)
    return place
