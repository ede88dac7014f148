"""Registration of derived streams: checks of the operators that feed and read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from nfa import Pattern, parse_pattern
from service.errors import DerivationRefused, StreamInUse, StreamNotDerived, UnknownStream
from service.registering.strangers import type_made, unfed_types
from service.runtime import Stores
from service.stores import ANY, OperatorDraft, OperatorPart, Registry, StreamUse
from shards import Feed, Feeds, OperatorRefused, require_final
from streams import ControlRecordError, Definition, StreamDeclaration


def uses_of(registry: Registry, stream: str) -> list[StreamUse]:
    """Return the operators that feed a stream, followed by its readers. Retired operators are left out."""
    operators = [operator for operator in registry.every_operator() if operator.state != "retired"]
    feeding = [operator for operator in operators if stream in {feeder.into for feeder in operator.feeders}]
    listening = [operator for operator in operators if stream in operator.listens_to]
    return [
        *(StreamUse(kind=operator.kind, name=operator.name, feeds=True) for operator in feeding),
        *(StreamUse(kind=operator.kind, name=operator.name, feeds=False) for operator in listening),
    ]


def remove_inner(stores: Stores, streams: Iterable[str]) -> None:
    """Remove the inner streams of a deleted operator, except streams that are in use."""
    for stream in sorted(streams):
        with suppress(StreamInUse):
            with suppress(UnknownStream):  # an interrupted call has already removed it
                stores.registry.removal.remove(stream, ANY, is_cascading=False)
            stores.derived.forget(stream)


class Derivations:
    """Checks and declares derived streams, for patterns with INTO and for other operators that feed streams."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def check(self, pattern: Pattern, stream: str) -> None:
        """Check that a pattern on a stream may feed the stream in its INTO clause. Nothing is changed.

        Raises ``StreamNotDerived`` if the fed stream accepts posted events. Raises ``DerivationRefused`` if streams
        would be derived in a cycle or in too long a chain, or if the fed stream does not declare the type of the
        derived events.
        """
        if pattern.into is None:
            return
        record = self._registry.find_stream(pattern.into.stream)
        target = None if record is None else record.declaration
        if target is not None and not target.derived:
            raise StreamNotDerived(
                f"INTO {target.name}: that stream takes posted events, so no pattern can make its events; name another "
                "stream, which is declared by this registration",
                stream=target.name,
            )
        if target is not None and target.event_types and (event_type := type_made(pattern)) not in target.event_types:
            raise DerivationRefused(
                f"INTO {target.name}: {event_type} is none of the event types that the stream declares; add TYPE with "
                f"one of {', '.join(target.event_types)}",
            )
        self._check_listeners("pattern", pattern.name, pattern.into.stream)
        try:
            self._feeds(("pattern", pattern.name)).check(stream, Feed(stream=pattern.into.stream))
        except ControlRecordError as error:
            raise DerivationRefused(f"INTO {pattern.into.stream}: {error.message}") from error

    def check_operator(self, kind: str, name: str, feeders: Sequence[OperatorPart]) -> None:
        """Check that an operator and its inner operators may feed derived streams, as ``check`` does for patterns."""
        feeds = self._feeds((kind, name))
        for feeder in feeders:
            target = self._registry.find_stream(feeder.into)
            if target is not None and not target.declaration.derived:
                raise StreamNotDerived(
                    f"the {kind} {name!r} makes the events of the stream {feeder.into!r}, but that takes posted "
                    f"events; give the {kind} another name",
                    stream=feeder.into,
                )
            self._check_listeners(feeder.kind, feeder.name, feeder.into)
            try:
                feeds.check(feeder.stream, Feed(stream=feeder.into))
            except ControlRecordError as error:
                raise DerivationRefused(f"the {kind} {name!r}: {error.message}") from error
            feeds = feeds.with_operator(
                (feeder.stream, feeder.key, feeder.kind, feeder.name), [Feed(stream=feeder.into)]
            )

    def check_input(self, definition: Definition) -> None:
        """Raise an error if an operator needs final events, but the events of its stream may be retracted."""
        operators = [operator for operator in self._registry.every_operator() if operator.state != "retired"]
        feeders = [(part.kind, part.name, part.into) for operator in operators for part in operator.feeders]
        require_final(definition, feeders)

    def _check_listeners(self, kind: str, name: str, into: str) -> None:
        """Raise an error if a reader of ``into`` needs final events, but this operator may retract events."""
        for operator in self._registry.operators("").all():
            if operator.state != "retired":
                try:
                    require_final(operator.definition, [(kind, name, into)])
                except OperatorRefused as error:
                    raise DerivationRefused(error.message) from error

    def declare_fed_by(self, stream: str, draft: OperatorDraft) -> None:
        """Declare the derived streams that an operator on ``stream`` feeds, before the operator is registered.

        If the registration would be refused, its error is raised and nothing is declared. If the registration fails
        later, the declared streams remain without events.
        """
        feeders = draft.record(stream, 0, 0).feeders
        if feeders and draft.state != "draft":
            self._registry.operators(draft.kind).check_put(stream, draft)
            self.declare_fed(feeders)

    def declare_fed(self, feeders: Sequence[OperatorPart]) -> None:
        """Declare the derived streams that do not exist yet.

        Raises ``StreamExists`` if another caller has declared such a stream for posted events meanwhile.
        """
        for stream in dict.fromkeys(feeder.into for feeder in feeders):
            if self._registry.find_stream(stream) is None:
                self._registry.declare_stream(StreamDeclaration(name=stream, derived=True))

    def unfed_types(self, pattern: Pattern, declaration: StreamDeclaration) -> list[str]:
        """Return warnings about types that a pattern reads from a derived stream, but that no pattern with INTO makes.

        If another kind of operator feeds the stream, there are none. If nothing feeds it, the warning is about this.
        """
        if not declaration.derived:
            return []
        producers = self._registry.producers(declaration.name)
        if any(feeder.kind != "pattern" for feeder in self._registry.feeders() if feeder.into == declaration.name):
            return []
        if not producers:
            return [
                f"nothing feeds the derived stream {declaration.name!r} yet: no pattern has INTO {declaration.name}"
            ]
        made_by = [parse_pattern(producer.text) for producer in producers]
        return [warning.placed for warning in unfed_types(pattern, declaration.name, made_by)]

    def _feeds(self, identity: tuple[str, str]) -> Feeds:
        """Return the feeds of all operators except the operator with this kind and name and its inner operators."""
        operators = [
            operator for operator in self._registry.operators(identity[0]).all() if operator.name == identity[1]
        ]
        excluded = {identity, *((feeder.kind, feeder.name) for operator in operators for feeder in operator.feeders)}
        feeders = [part for part in self._registry.feeders() if (part.kind, part.name) not in excluded]
        return Feeds({(part.stream, part.key, part.kind, part.name): (Feed(stream=part.into),) for part in feeders})
