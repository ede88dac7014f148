"""Feeds: which operators feed which derived streams in a shard, and in which order the streams are processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from streams import ControlRecordError

MOST_HOPS = 16

HostKey: TypeAlias = tuple[str, str, str]
"""Stream, further key (empty for the correlation key) and kind of a host."""

Operator: TypeAlias = tuple[str, str, str, str]
"""Stream, further key, kind and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A derived stream that an operator feeds.

    Attributes:
        is_rekeyed: Whether the derived events have keys of their own, and so reach the stream through the log.
        is_merged: Whether the stream must order the events of several operators, even if these run at one place.
        is_inner: Whether only a part of the operator reads the stream. Such a feed stays until the stream is removed,
            so that events on their way are not lost when the operator pauses or has another version.
    """

    stream: str
    is_rekeyed: bool = False
    is_merged: bool = False
    is_inner: bool = False


@dataclass(frozen=True)
class Feeds:
    """The feeds of all operators of a shard; immutable.

    Attributes:
        of: Feeds by operator; while an older version is draining, the feeds of both versions.
    """

    of: Mapping[Operator, tuple[Feed, ...]]

    def with_operator(self, operator: Operator, feeds: Sequence[Feed]) -> Feeds:
        """A copy in which one operator has these feeds instead of its former ones."""
        other_feeds = {feeder: operator_feeds for feeder, operator_feeds in self.of.items() if feeder != operator}
        return Feeds({**other_feeds, operator: tuple(dict.fromkeys(feeds))} if feeds else other_feeds)

    def without_operator(self, stream: str, kind: str, name: str) -> Feeds:
        """A copy without the feeds of an operator on any key, except its feeds of inner streams."""
        feeds = dict(self.of)
        for operator in [operator for operator in feeds if (operator[0], *operator[2:]) == (stream, kind, name)]:
            feeds[operator] = tuple(feed for feed in feeds[operator] if feed.is_inner)
        return Feeds({operator: operator_feeds for operator, operator_feeds in feeds.items() if operator_feeds})

    def without_stream(self, stream: str) -> Feeds:
        """A copy without the operators on a stream and without the feeds into it."""
        feeds = {
            operator: tuple(feed for feed in operator_feeds if feed.stream != stream)
            for operator, operator_feeds in self.of.items()
        }
        return Feeds(
            {
                operator: operator_feeds
                for operator, operator_feeds in feeds.items()
                if operator_feeds and operator[0] != stream
            }
        )

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

    def is_ordered(self, stream: str) -> bool:
        """Whether a stream's events must be put into order: they come from several places, or are merged."""
        return stream in self.logged or len(self.direct.get(stream, ())) > 1 or stream in self._merged

    def is_inner(self, stream: str) -> bool:
        """Whether only parts of operators read a stream; traces of such a stream never end."""
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
        """The derived streams that a stream feeds within the shard, directly or indirectly, in processing order."""
        return self._reached.get(stream, ())

    def reached_anyhow(self, stream: str) -> tuple[str, ...]:
        """As ``downstream``, plus the streams fed through the log, and all streams downstream of these."""
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
        """Refuse a feed that would close a cycle or make a chain of streams too long; the message names the streams."""
        if path := self._path(feed.stream, stream):
            circle = " → ".join([*path, path[0]])
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}, which it is derived from: {circle}"
            )
        hops = self._hops_before.get(stream, 0) + 1 + self._hops_after.get(feed.stream, 0)
        if hops > MOST_HOPS:
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}: {hops} streams would be derived from each other, and "
                f"at most {MOST_HOPS} may be"
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
                    Feed(stream=into, is_rekeyed=rekeyed, is_merged=any(marks[:1]), is_inner=any(marks[1:]))
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
        """The streams on a path from ``start`` to ``end``, each fed by the previous one; empty if no path exists."""
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
        """For each stream, the number of streams before it in the longest chain of feeds."""
        lengths: dict[str, int] = {}
        for stream in self.order:
            lengths[stream] = 1 + max(lengths.get(source, 0) for source in self.sources[stream])
        return lengths

    @cached_property
    def _hops_after(self) -> Mapping[str, int]:
        """For each stream, the number of streams after it in the longest chain of feeds."""
        lengths: dict[str, int] = {}
        for stream in reversed(self.order):
            for source in self.sources[stream]:
                lengths[source] = max(lengths.get(source, 0), 1 + lengths.get(stream, 0))
        return lengths


def _marks(feed: Feed) -> list[bool]:
    """The members ``is_merged`` and ``is_inner`` of a feed, as saved: trailing false values are left out."""
    return [feed.is_merged, True] if feed.is_inner else [True] * feed.is_merged
