"""The registration of derived streams: checks of the operators that feed them and listen to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from nfa import Pattern, parse_pattern, unknown_types
from service.errors import DerivationRefused, StreamInUse, StreamNotDerived, UnknownStream
from service.runtime import Stores
from service.stores import ANY, OperatorPart, RegisteredPattern, Registry, StreamUse
from shards import Feed, Feeds
from streams import RETRACTED, ControlRecordError, StreamDeclaration


def uses_of(registry: Registry, stream: str) -> list[StreamUse]:
    """The operators that feed a stream, then the listening operators, by kind and name; none is retired."""
    operators = [one for one in registry.every_operator() if one.state != "retired"]
    feeding = [one for one in operators if stream in {feeder.into for feeder in one.feeders}]
    listening = [one for one in operators if stream in one.listens_to]
    return [
        *(StreamUse(kind=one.kind, name=one.name, feeds=True) for one in feeding),
        *(StreamUse(kind=one.kind, name=one.name, feeds=False) for one in listening),
    ]


def remove_inner(stores: Stores, streams: Iterable[str]) -> None:
    """Remove the inner streams of a deleted operator that exist."""
    for stream in sorted(streams):
        with suppress(UnknownStream, StreamInUse):
            stores.registry.removal.remove(stream, ANY, is_cascading=False)
            stores.derived.forget(stream)


class Derivations:
    """Checks and declarations of derived streams, for patterns with INTO and other operators that feed them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def check(self, pattern: Pattern, stream: str) -> None:
        """Check that a pattern on a stream may feed the stream in its INTO clause; changes nothing.

        ``StreamNotDerived``: the fed stream takes posted events. ``DerivationRefused``: the pattern's stream is derived
        from the fed stream, or over too many others, or the fed stream declares event types without the pattern's type.
        """
        if pattern.into is None:
            return
        found = self._registry.find_stream(pattern.into.stream)
        target = None if found is None else found.declaration
        if target is not None and not target.derived:
            raise StreamNotDerived(
                f"INTO {target.name}: that stream takes posted events, so no pattern can make its events; name another "
                "stream, which is declared by this registration",
                stream=target.name,
            )
        if target is not None and target.event_types and (made := type_of(pattern)) not in target.event_types:
            raise DerivationRefused(
                f"INTO {target.name}: {made} is none of the event types that the stream declares; add TYPE with one of "
                f"{', '.join(target.event_types)}",
            )
        try:
            self._feeds(("pattern", pattern.name)).check(stream, Feed(stream=pattern.into.stream))
        except ControlRecordError as error:
            raise DerivationRefused(f"INTO {pattern.into.stream}: {error.message}") from error

    def check_operator(self, kind: str, name: str, feeders: Sequence[OperatorPart]) -> None:
        """Check that an operator and its parts may feed their derived streams, as ``check`` does; changes nothing."""
        feeds = self._feeds((kind, name))
        for one in feeders:
            target = self._registry.find_stream(one.into)
            if target is not None and not target.declaration.derived:
                raise StreamNotDerived(
                    f"the {kind} {name!r} makes the events of the stream {one.into!r}, but that takes posted events; "
                    f"give the {kind} another name",
                    stream=one.into,
                )
            try:
                feeds.check(one.stream, Feed(stream=one.into))
            except ControlRecordError as error:
                raise DerivationRefused(f"the {kind} {name!r}: {error.message}") from error
            feeds = feeds.with_operator((one.stream, one.key, one.kind, one.name), [Feed(stream=one.into)])

    def declare_fed(self, feeders: Sequence[OperatorPart]) -> None:
        """Declare the derived streams of an operator and its parts; ``StreamExists`` if one now takes posted events."""
        for stream in dict.fromkeys(one.into for one in feeders):
            if self._registry.find_stream(stream) is None:
                self._registry.declare_stream(StreamDeclaration(name=stream, derived=True))

    def unfed_types(self, pattern: Pattern, declaration: StreamDeclaration) -> list[str]:
        """Warnings about types that a pattern on a derived stream names, and that no operator of the stream makes."""
        if not declaration.derived:
            return []
        producers = self._registry.producers(declaration.name)
        if any(one.kind != "pattern" for one in self._registry.feeders() if one.into == declaration.name):
            return []
        if not producers:
            return [
                f"nothing feeds the derived stream {declaration.name!r} yet: no pattern has INTO {declaration.name}"
            ]
        made = types_made(producers)
        return [one.placed for one in unknown_types(pattern, made, f"that patterns make for {declaration.name!r}")]

    def _feeds(self, but: tuple[str, str]) -> Feeds:
        """All feeds of derived streams, except those of one operator, given by kind and name, and its parts."""
        known = [one for one in self._registry.operators(but[0]).all() if one.name == but[1]]
        gone = {but, *((feeder.kind, feeder.name) for one in known for feeder in one.feeders)}
        feeders = [one for one in self._registry.feeders() if (one.kind, one.name) not in gone]
        return Feeds({(one.stream, one.key, one.kind, one.name): (Feed(stream=one.into),) for one in feeders})


def type_of(pattern: Pattern) -> str:
    """The type of the events that a pattern with INTO makes."""
    assert pattern.into is not None, "asked of patterns with INTO"
    return pattern.into.event_type or pattern.name


def types_made(producers: Collection[RegisteredPattern]) -> list[str]:
    """The types of events that patterns make, including their retractions."""
    made = [type_of(parse_pattern(one.text)) for one in producers]
    return list(dict.fromkeys([*made, *(name + RETRACTED for name in made)]))
