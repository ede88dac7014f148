"""Feeds: which operators feed which derived streams of a shard, and in which order the streams are processed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from streams import ControlRecordError

MOST_HOPS = 16
_MARKS = ("is_merged", "is_inner", "is_ended")

HostKey: TypeAlias = tuple[str, str, str]
"""A host's address: stream, further key (empty for the correlation key), and kind."""

Operator: TypeAlias = tuple[str, str, str, str]
"""An operator's address: stream, further key, kind, and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A derived stream that an operator feeds.

    Attributes:
        is_rekeyed: Whether the derived events have keys of their own, so that they reach the stream through the log.
        is_merged: Whether the stream must order the events of several operators, even if these run at one place.
        is_inner: Whether the stream is inner: it connects the parts of one operator, such as the inputs of a join with
            the join, and nothing else reads it. The feed then remains until the stream is removed. Without the feed,
            events in transit would be lost when the operator is paused or replaced.
        is_ended: Whether the operator has stopped. Such a feed adds no more events, but still passes time on, so that
            events in transit are processed in order. It remains until an operator feeds the stream again, or the stream
            is removed.
    """

    stream: str
    is_rekeyed: bool = False
    is_merged: bool = False
    is_inner: bool = False
    is_ended: bool = False


@dataclass(frozen=True)
class Feeds:
    """The feeds of all operators of a shard. They are immutable and have no cycles.

    Attributes:
        of: Feeds by operator, including ended feeds. While an older version is draining, an operator has the feeds of
            both versions.
    """

    of: Mapping[Operator, tuple[Feed, ...]]

    def with_operator(self, operator: Operator, feeds: Sequence[Feed]) -> Feeds:
        """Return a copy in which the operator has ``feeds`` instead of its former feeds.

        An ended feed of any operator is dropped if a new feed has the same stream, or would close a cycle with it.
        """
        targets = {feed.stream for feed in feeds if not feed.is_ended}

        def stays(source: str, feed: Feed) -> bool:
            if not targets or not feed.is_ended:
                return True
            is_in_cycle = feed.stream in self._upstream(operator[0]) and targets & self._upstream(source)
            return feed.stream not in targets and not is_in_cycle

        return _compact(
            {
                feeder: [feed for feed in operator_feeds if stays(feeder[0], feed)]
                for feeder, operator_feeds in {**self.of, operator: feeds}.items()
            }
        )

    def without_operator(self, stream: str, kind: str, name: str) -> Feeds:
        """Return a copy in which an operator of ``stream`` has stopped, whatever key it reads the stream by.

        The operator's feeds of inner streams remain unchanged. Each other feed is marked as ended if it is merged, or
        if no other operator feeds the stream. Otherwise the feed is dropped.
        """
        stopped = {operator for operator in self.of if (operator[0], *operator[2:]) == (stream, kind, name)}
        fed = {feed.stream for operator, feed in self._each if operator not in stopped and not feed.is_ended}
        return _compact(
            {
                operator: [
                    feed if feed.is_inner or operator not in stopped else replace(feed, is_ended=True)
                    for feed in operator_feeds
                    if operator not in stopped or feed.is_inner or feed.is_merged or feed.stream not in fed
                ]
                for operator, operator_feeds in self.of.items()
            }
        )

    def without_stream(self, stream: str) -> Feeds:
        """Return a copy without the operators of a stream and without the feeds into the stream.

        If a derived stream has no other source than ``stream``, ended feeds connect it with the sources of ``stream``,
        so that its time still advances.
        """
        others = [(operator, feed) for operator, feed in self._each if stream not in (operator[0], feed.stream)]
        fed = {feed.stream for _, feed in others}
        last_feeds = [feed for operator, feed in self._each if operator[0] == stream and feed.stream not in fed]
        feeds: dict[Operator, list[Feed]] = {}
        for operator, feed in self._each:
            if feed.stream == stream:
                feeds.setdefault(operator, []).extend(replace(last_feed, is_ended=True) for last_feed in last_feeds)
        for operator, feed in others:
            feeds.setdefault(operator, []).append(feed)
        return _compact(feeds)

    @property
    def _each(self) -> Iterator[tuple[Operator, Feed]]:
        return ((operator, feed) for operator, operator_feeds in self.of.items() for feed in operator_feeds)

    def _upstream(self, stream: str) -> frozenset[str]:
        reached = {stream}
        for target in reversed(self.order):
            if target in reached:
                reached |= self.sources[target]
        return frozenset(reached)

    @cached_property
    def sources(self) -> Mapping[str, frozenset[str]]:
        """The streams that feed each derived stream."""
        sources: dict[str, set[str]] = {}
        for (stream, *_), operator_feeds in self.of.items():
            for feed in operator_feeds:
                sources.setdefault(feed.stream, set()).add(stream)
        return {stream: frozenset(feeding) for stream, feeding in sources.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The derived streams, each after the streams that feed it."""
        ordered: dict[str, None] = {}

        def add(stream: str) -> None:
            if stream in self.sources and stream not in ordered:
                for source in sorted(self.sources[stream]):
                    add(source)
                ordered[stream] = None

        for stream in sorted(self.sources):
            add(stream)
        return tuple(ordered)

    @cached_property
    def direct(self) -> Mapping[str, tuple[HostKey, ...]]:
        """The hosts that feed each derived stream within the shard."""
        return self._hosts(is_rekeyed=False)

    @cached_property
    def logged(self) -> Mapping[str, tuple[HostKey, ...]]:
        """The hosts that feed each derived stream through the log."""
        return self._hosts(is_rekeyed=True)

    def has_several_sources(self, stream: str) -> bool:
        """Return whether several places or operators of the shard feed a stream, so that its events must be sorted."""
        return len(self.direct.get(stream, ())) > 1 or stream in self._merged

    def is_inner(self, stream: str) -> bool:
        """Return whether a stream is inner: it connects the parts of one operator.

        Traces of an inner stream never end.
        """
        return stream in self._inner

    @cached_property
    def _merged(self) -> frozenset[str]:
        return frozenset(
            feed.stream for operator_feeds in self.of.values() for feed in operator_feeds if feed.is_merged
        )

    @cached_property
    def _inner(self) -> frozenset[str]:
        return frozenset(
            feed.stream
            for operator_feeds in self.of.values()
            for feed in operator_feeds
            if feed.is_merged or feed.is_inner
        )

    def downstream(self, stream: str) -> tuple[str, ...]:
        """Return the derived streams that a stream feeds within the shard, even indirectly, in processing order."""
        return self._reached.get(stream, ())

    def reached_anyhow(self, stream: str) -> tuple[str, ...]:
        """Return the derived streams that get events because of a stream, in processing order.

        They are the streams of ``downstream``, the streams that ``stream`` feeds through the log, and all streams
        downstream of these within the shard.
        """
        logged = {target for target, hosts in self.logged.items() if stream in {source for source, *_ in hosts}}
        reached = {
            *self.downstream(stream),
            *logged,
            *(derived_stream for target in logged for derived_stream in self.downstream(target)),
        }
        return tuple(derived_stream for derived_stream in self.order if derived_stream in reached)

    @cached_property
    def _reached(self) -> Mapping[str, tuple[str, ...]]:
        reached: dict[str, set[str]] = {}
        for target in reversed(self.order):
            for source, *_ in self.direct.get(target, ()):
                reached.setdefault(source, set()).update({target, *reached.get(target, ())})
        return {
            source: tuple(stream for stream in self.order if stream in targets) for source, targets in reached.items()
        }

    def check(self, stream: str, feed: Feed) -> None:
        """Raise ``ControlRecordError`` if a feed would close a cycle of streams, or make a chain of streams too long.

        Ended feeds are ignored. The message of the error names the streams.
        """
        running = self._running
        if path := running._path(feed.stream, stream):
            circle = " → ".join([*path, path[0]])
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}, which it is derived from: {circle}"
            )
        hops = running._hops_before.get(stream, 0) + 1 + running._hops_after.get(feed.stream, 0)
        if hops > MOST_HOPS:
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}: {hops} streams would be derived from each other, and "
                f"at most {MOST_HOPS} may be"
            )

    @cached_property
    def _running(self) -> Feeds:
        return _compact(
            {
                operator: [feed for feed in operator_feeds if not feed.is_ended]
                for operator, operator_feeds in self.of.items()
            }
        )

    def to_json(self) -> list[Any]:
        return [
            [*operator, [[feed.stream, feed.is_rekeyed, *_marks(feed)] for feed in operator_feeds]]
            for operator, operator_feeds in sorted(self.of.items())
        ]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Feeds:
        return cls(
            {
                (stream, route, kind, name): tuple(
                    Feed(stream=into, is_rekeyed=rekeyed, **dict(zip(_MARKS, marks, strict=False)))
                    for into, rekeyed, *marks in operator_feeds
                )
                for stream, route, kind, name, operator_feeds in value
            }
        )

    def _hosts(self, *, is_rekeyed: bool) -> dict[str, tuple[HostKey, ...]]:
        by_stream: dict[str, dict[HostKey, None]] = {}
        for (stream, route, kind, _), operator_feeds in sorted(self.of.items()):
            for feed in operator_feeds:
                if feed.is_rekeyed == is_rekeyed:
                    by_stream.setdefault(feed.stream, {})[stream, route, kind] = None
        return {stream: tuple(hosts) for stream, hosts in by_stream.items()}

    def _path(self, start: str, end: str) -> list[str]:
        came_from: dict[str, str] = {start: start}
        for stream in (start, *self.order):
            for source in self.sources.get(stream, ()):
                if source in came_from:
                    came_from.setdefault(stream, source)
        if end not in came_from:
            return []
        path = [end]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        return path[::-1]

    @cached_property
    def _hops_before(self) -> Mapping[str, int]:
        lengths: dict[str, int] = {}
        for stream in self.order:
            lengths[stream] = 1 + max(lengths.get(source, 0) for source in self.sources[stream])
        return lengths

    @cached_property
    def _hops_after(self) -> Mapping[str, int]:
        lengths: dict[str, int] = {}
        for stream in reversed(self.order):
            for source in self.sources[stream]:
                lengths[source] = max(lengths.get(source, 0), 1 + lengths.get(stream, 0))
        return lengths


def _compact(feeds: Mapping[Operator, Sequence[Feed]]) -> Feeds:
    return Feeds({operator: tuple(dict.fromkeys(feeding)) for operator, feeding in feeds.items() if feeding})


def _marks(feed: Feed) -> list[bool]:
    marks = [getattr(feed, name) for name in _MARKS]
    while marks and not marks[-1]:
        marks.pop()
    return marks
