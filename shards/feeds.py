"""Who feeds which derived stream in a shard, and what follows: the order of the streams, and how each is read."""

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
    """What an operator makes events of.

    Attributes:
        stream: The derived stream.
        is_rekeyed: Whether its events have keys of their own, and so reach the stream through the log.
        is_merged: Whether its events are put into one order with those of others, also of the same place.
    """

    stream: str
    is_rekeyed: bool = False
    is_merged: bool = False


@dataclass(frozen=True)
class Feeds:
    """The feeds of all operators of a shard; a value.

    Attributes:
        of: By operator; of one whose version before is still on its way out, those of both.
    """

    of: Mapping[Operator, tuple[Feed, ...]]

    def with_operator(self, operator: Operator, feeds: Sequence[Feed]) -> Feeds:
        """With the feeds of one operator, in place of those that it had."""
        others = {one: fed for one, fed in self.of.items() if one != operator}
        return Feeds({**others, operator: tuple(dict.fromkeys(feeds))} if feeds else others)

    def without_operator(self, stream: str, kind: str, name: str) -> Feeds:
        """Without the feeds of an operator, on whatever key it runs."""
        return Feeds({one: fed for one, fed in self.of.items() if (one[0], *one[2:]) != (stream, kind, name)})

    def without_stream(self, stream: str) -> Feeds:
        """Without the operators on a stream, and without what feeds it."""
        others = {one: tuple(feed for feed in fed if feed.stream != stream) for one, fed in self.of.items()}
        return Feeds({one: fed for one, fed in others.items() if fed and one[0] != stream})

    @cached_property
    def sources(self) -> Mapping[str, frozenset[str]]:
        """Of each derived stream that is fed the streams that feed it."""
        found: dict[str, set[str]] = {}
        for (stream, *_), fed in self.of.items():
            for feed in fed:
                found.setdefault(feed.stream, set()).add(stream)
        return {stream: frozenset(some) for stream, some in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The derived streams, each behind those that feed it."""
        found: dict[str, None] = {}

        def add(stream: str) -> None:
            if stream in self.sources and stream not in found:
                for source in sorted(self.sources[stream]):
                    add(source)
                found[stream] = None

        for stream in sorted(self.sources):
            add(stream)
        return tuple(found)

    @cached_property
    def direct(self) -> Mapping[str, tuple[HostKey, ...]]:
        """Of each derived stream the hosts that feed it in the shard itself."""
        return self._hosts(is_rekeyed=False)

    @cached_property
    def logged(self) -> Mapping[str, tuple[HostKey, ...]]:
        """Of each derived stream the hosts that feed it through the log."""
        return self._hosts(is_rekeyed=True)

    def is_ordered(self, stream: str) -> bool:
        """Whether its events come from more than one place, or are merged, so that they have to be put into order."""
        return stream in self.logged or len(self.direct.get(stream, ())) > 1 or self.is_merged(stream)

    def is_merged(self, stream: str) -> bool:
        """Whether its events are the merged events of a join."""
        return stream in self._merged

    @cached_property
    def _merged(self) -> frozenset[str]:
        return frozenset(feed.stream for fed in self.of.values() for feed in fed if feed.is_merged)

    def downstream(self, stream: str) -> tuple[str, ...]:
        """The derived streams that a stream feeds in the shard itself, also over others, each behind what feeds it."""
        return self._reached.get(stream, ())

    def reached_anyhow(self, stream: str) -> tuple[str, ...]:
        """As ``downstream``, with what the stream feeds through the log."""
        logged = {target for target, hosts in self.logged.items() if stream in {source for source, *_ in hosts}}
        reached = {*self.downstream(stream), *logged, *(one for target in logged for one in self.downstream(target))}
        return tuple(one for one in self.order if one in reached)

    @cached_property
    def _reached(self) -> Mapping[str, tuple[str, ...]]:
        reached: dict[str, set[str]] = {}
        for target in reversed(self.order):
            for source, *_ in self.direct.get(target, ()):
                reached.setdefault(source, set()).update({target, *reached.get(target, ())})
        return {source: tuple(one for one in self.order if one in some) for source, some in reached.items()}

    def check(self, stream: str, feed: Feed) -> None:
        """Refuse a feed that would close a cycle, or make a chain too long.

        Raises:
            ControlRecordError: Names the streams.
        """
        if path := self._path(feed.stream, stream):
            circle = " → ".join([*path, path[0]])
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}, which it is derived from: {circle}"
            )
        hops = self._before.get(stream, 0) + 1 + self._behind.get(feed.stream, 0)
        if hops > MOST_HOPS:
            raise ControlRecordError(
                f"stream {stream!r} cannot feed {feed.stream!r}: {hops} streams would be derived from each other, and "
                f"at most {MOST_HOPS} may be"
            )

    def to_json(self) -> list[Any]:
        """As plain JSON."""
        return [
            [*operator, [[feed.stream, feed.is_rekeyed, *([True] if feed.is_merged else [])] for feed in fed]]
            for operator, fed in sorted(self.of.items())
        ]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Feeds:
        """What ``to_json`` gave."""
        return cls(
            {
                (stream, route, kind, name): tuple(
                    Feed(stream=into, is_rekeyed=rekeyed, is_merged=bool(merged)) for into, rekeyed, *merged in fed
                )
                for stream, route, kind, name, fed in value
            }
        )

    def _hosts(self, *, is_rekeyed: bool) -> dict[str, tuple[HostKey, ...]]:
        found: dict[str, dict[HostKey, None]] = {}
        for (stream, route, kind, _), fed in sorted(self.of.items()):
            for feed in fed:
                if feed.is_rekeyed == is_rekeyed:
                    found.setdefault(feed.stream, {})[stream, route, kind] = None
        return {stream: tuple(hosts) for stream, hosts in found.items()}

    def _path(self, start: str, end: str) -> list[str]:
        """Streams from one to another, each fed by the one before; empty where there is no way."""
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
    def _before(self) -> Mapping[str, int]:
        """Of each stream the number of streams in the longest chain that it is derived from."""
        found: dict[str, int] = {}
        for stream in self.order:
            found[stream] = 1 + max(found.get(source, 0) for source in self.sources[stream])
        return found

    @cached_property
    def _behind(self) -> Mapping[str, int]:
        """Of each stream the number of streams in the longest chain that is derived from it."""
        found: dict[str, int] = {}
        for stream in reversed(self.order):
            for source in self.sources[stream]:
                found[source] = max(found.get(source, 0), 1 + found.get(stream, 0))
        return found
