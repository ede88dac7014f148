"""Derived streams in one shard.

Derived events are processed in the same step as their cause, which is an event or passing time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from shards.derived_place import DerivedPlace, EndTime
from shards.entries import Entry, StoredEntry
from shards.feeds import Feeds, HostKey
from shards.operators import Kind, Output
from shards.place import Place, Step, known_kind
from shards.stops import operator_of
from streams import ControlRecord, ControlRecordError, Definition, EventBatch, OperatorOn, PatternOn, RecordKind, Start

MAIN = ""
PlaceKey: TypeAlias = tuple[str, str]
_DERIVED = "derived"


class Derivation:
    """Passes derived events to the places of their streams, and advances the time of these places.

    A stream is processed after the streams that feed it.

    Args:
        places: All places of the shard. The shard may add places to this mapping later.
    """

    def __init__(self, places: Mapping[PlaceKey, Place], feeds: Feeds) -> None:
        self._places = places
        self.feeds = feeds
        for place in places.values():
            if isinstance(place, DerivedPlace):
                place.order(feeds)

    def promises(self) -> dict[str, int | None]:
        """Return the promise of this shard to each derived stream with re-keyed events, which arrive through the log.

        A promise is the time before which this shard adds no more events to the stream. It is None if it is unknown.
        It is the time of the next closing tick if all operators that fed the stream through the log have stopped.
        """
        promises = {stream: _least(map(self._promise_of, hosts)) for stream, hosts in self.feeds.logged.items()}
        return {**{stream: place.closing_us for stream, place in self._closing.items()}, **promises}

    @cached_property
    def _closing(self) -> Mapping[str, DerivedPlace]:
        """The places of the streams that no operator feeds through the log any more, until their logs are closed.

        In a state of 0.1.0, only the time of the log shows that operators have fed a stream through the log.
        """
        return {
            stream: place
            for (stream, _), place in self._places.items()
            if isinstance(place, DerivedPlace)
            and (place.waits_for_log or place.logged_us is not None)
            and stream not in self.feeds.logged
        }

    def started(self, definition: Definition, feeds: Feeds, kinds: Mapping[str, Kind]) -> Derivation:
        """Return the derivation with ``feeds`` after the start of an operator.

        If the operator feeds a stream through the log, the stream waits for the log from now on.
        """
        feed = known_kind(definition.kind, kinds).feed(definition)
        place = self._places.get((feed.stream, MAIN)) if feed is not None and feed.is_rekeyed else None
        if isinstance(place, DerivedPlace):
            place.await_log()
        return Derivation(self._places, feeds)

    def after_ignored(self, record: ControlRecord, place: Place, kinds: Mapping[str, Kind]) -> Derivation:
        """Return the derivation after a control record about an operator of a place that has stopped early (``Stops``).

        Feeds follow the log, so that those of all shards are equal, although other shards may still run the operator.
        """
        stream = place.declaration.name
        if isinstance(record, PatternOn | OperatorOn):
            definition = record.definition(stream)
            place.host(definition.kind)  # passes time on
            return self.started(definition, self.fed_by(definition, record.start, kinds), kinds)
        return Derivation(self._places, self.feeds.without_operator(stream, *operator_of(record)))

    def close_log(self, place: Place, closing_us: int) -> Derivation:
        """Return the derivation after a closing tick, which may end the waiting of a place for the log."""
        is_logged = place.declaration.name in self.feeds.logged
        if not isinstance(place, DerivedPlace) or not place.is_closed_by(closing_us, is_logged=is_logged):
            return self
        place.close_log()
        return Derivation(self._places, self.feeds)

    def released(self, entry: Entry) -> Iterator[Step]:
        """Process the events of a closed stream that need not wait any more."""
        place = self._places[entry.stream, MAIN]
        if isinstance(place, DerivedPlace):
            yield from place.release(entry, is_fed=entry.stream in self.feeds.sources)

    def is_timed(self, stream: str) -> bool:
        """Return whether passing time can have an effect in a stream downstream of ``stream`` in this shard."""
        return any(self._places[target, MAIN].is_timed for target in self.feeds.downstream(stream))

    def related(self, keys: Iterable[PlaceKey]) -> list[PlaceKey]:
        """Return the places among ``keys`` whose streams are derived, or feed another stream within the shard."""
        existing = [key for key in keys if key in self._places]
        return [key for key in existing if self.feeds.downstream(key[0]) or self._places[key].declaration.derived]

    def hold(self, stream: str) -> None:
        """Make all streams downstream of ``stream`` buffer their events while a finite input ends."""
        for target in self.feeds.downstream(stream):
            place = self._places[target, MAIN]
            if isinstance(place, DerivedPlace):
                place.hold()

    def newest_us(self, stream: str) -> int | None:
        """Return the time of a derived stream's newest event or its watermark, whichever is later. None if unknown."""
        place = self._places.get((stream, MAIN))
        return place.newest_us if isinstance(place, DerivedPlace) else None

    @property
    def ends(self) -> dict[str, EndTime]:
        """The times of derived streams at the end of a finite input, by stream.

        A stream is missing if it is not finished yet, or if none of its operators depends on time.
        """
        places = (place for place in self._places.values() if isinstance(place, DerivedPlace))
        return {place.declaration.name: place.end for place in places if place.end is not None}

    def is_in_order(self, batches: Mapping[PlaceKey, Sequence[EventBatch]]) -> bool:
        """Return whether no event in the batches of any place is late."""
        return all(
            self._places[key].is_in_order(place_batches) for key, place_batches in batches.items() if place_batches
        )

    def fed_by(self, definition: Definition, start: Start, kinds: Mapping[str, Kind]) -> Feeds:
        """Return the feeds that the shard will have once an operator has started.

        Raises ``ControlRecordError`` if the operator feeds a stream that is not derived, or if its feed closes a cycle
        of streams.
        """
        (source,) = definition.inputs
        operator = source.stream, source.key, definition.kind, definition.name
        other_feeds = self.feeds.without_operator(source.stream, definition.kind, definition.name)
        former_feeds = (self.feeds if start == "migrate" else other_feeds).of.get(operator, ())
        feeds = other_feeds.with_operator(operator, former_feeds)
        feed = known_kind(definition.kind, kinds).feed(definition)
        if feed is None:
            return feeds
        target = self._places.get((feed.stream, MAIN))
        if target is None or not target.declaration.derived:
            what = "not declared" if target is None else "no derived stream"
            raise ControlRecordError(
                f"the {definition.kind} {definition.name!r} of stream {source.stream!r} feeds {feed.stream!r}, "
                f"which is {what} at this place of the log"
            )
        feeds.check(source.stream, feed)
        return feeds.with_operator(operator, (*former_feeds, feed))

    def follow(self, entry: Entry, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps of an entry, each followed by the steps that it causes in derived streams.

        A step is an entry with the output that a host made for it. ``steps`` are the steps of the entry's own stream.
        If this stream is derived, its time advances after them.
        """
        stream = entry.stream
        is_promise = entry.kind == RecordKind.PUNCTUATION  # a range also reaches streams fed through the log
        yield from self.with_derived_steps(stream, steps, self.feeds.reached_anyhow(stream) if is_promise else None)
        if isinstance(self._places.get((stream, MAIN)), DerivedPlace):
            yield from self._settled((stream, *self.feeds.downstream(stream)), entry, None)

    def with_derived_steps(
        self, stream: str, steps: Iterable[Step], reached: Sequence[str] | None = None
    ) -> Iterator[Step]:
        """Yield the given steps of a stream, each followed by the steps that it causes in derived streams.

        ``reached`` are the derived streams to process. None means all streams downstream within the shard. Unlike
        ``follow``, this never advances the time of ``stream`` itself.
        """
        targets = self.feeds.downstream(stream) if reached is None else reached
        for step in steps:
            yield step
            if targets:
                yield from self._settled(targets, *step)

    def _settled(self, targets: Sequence[str], entry: Entry, output: Output | None) -> Iterator[Step]:
        """Process the streams ``targets`` in order: each receives its new derived events, then its time advances.

        The events come from ``output`` and from the outputs of earlier targets.
        """
        batches: dict[str, list[EventBatch]] = {}

        def note(step_output: Output) -> None:
            for stream, batch in step_output.derived():
                batches.setdefault(stream, []).append(batch)

        if output is not None:
            note(output)
        for target in targets:
            for step in self._moved(target, entry.position, batches.pop(target, [])):
                yield step
                note(step[1])

    def _moved(self, stream: str, position: str, batches: Sequence[EventBatch]) -> Iterator[Step]:
        place = self._places[stream, MAIN]
        entry = StoredEntry(position=position, kind=_DERIVED, stream=stream, body=b"")
        if batches:
            yield from place.process([entry] * len(batches), batches)
        watermark_us = self._watermark_of(stream)
        if watermark_us is not None:
            yield from place.advance_time(entry, watermark_us)

    def _watermark_of(self, stream: str) -> int | None:
        """Return the least promise of the hosts and the log that feed a stream, or None if a promise is unknown."""
        place = self._places[stream, MAIN]
        promises = [self._promise_of(host) for host in self.feeds.direct.get(stream, ())]
        if isinstance(place, DerivedPlace) and place.waits_for_log:
            promises.append(place.logged_us)
        return _least(promises)

    def _promise_of(self, host: HostKey) -> int | None:
        """Return the time before which a host emits no more events, or None if the host has seen no time yet."""
        stream, route, kind = host
        place = self._places.get((stream, route)) or self._places[stream, MAIN]  # an inner feed may outlast its route
        return place.watermark_us if isinstance(place, DerivedPlace) else place.host(kind).newest_us


def _least(times_us: Iterable[int | None]) -> int | None:
    """Return the least time, or None if a time is unknown or there are no times."""
    all_us = list(times_us)
    known_us = [time_us for time_us in all_us if time_us is not None]
    return min(known_us, default=None) if len(known_us) == len(all_us) else None
