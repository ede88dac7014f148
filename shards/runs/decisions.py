"""Decisions of a run: what deciders conclude from the events, computed before the rounds.

In a round, each shard runs by itself, but a decider needs the observations of all shards. So before the rounds, a part
of the variant runs once in a single shard, as in ``forestall run``. This part has the streams whose lateness is
measured, the operators that deciders observe, and the operators that feed these. The rounds then apply its decisions. A
lateness applies from the next event on. Finished keys are sorted by time into the merged events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from shards.inline import InlineShards
from shards.kinds import KINDS_BY_NAME
from shards.runs.plan import Decision, Variant, definition_of
from streams import AutoLateness, Definition, EventBatch


class DeciderState(NamedTuple):
    """The state of a decider after the events.

    Attributes:
        state: Plain JSON, as ``Decider.to_json`` returns it.
    """

    variant: int
    stream: str
    decider: str
    state: Mapping[str, Any]


def observed_streams(variant: Variant) -> frozenset[str]:
    """Return the posted streams whose events deciders observe.

    They feed the streams of observed operators, perhaps over several streams. If there are none, nothing is decided.
    """
    posted = {name: declared for name, declared in variant.declarations.items() if not declared.derived}
    measured = {name for name, declared in posted.items() if isinstance(declared.lateness, AutoLateness)}
    return frozenset(measured | ({stream for stream, _ in _observers(variant)} & posted.keys()))


def decisions_of(
    number: int, variant: Variant, events: Iterable[tuple[str, EventBatch]]
) -> Iterator[Decision | DeciderState]:
    """Yield the decisions for a variant, then the states of its deciders.

    ``events`` are numbered events of the observed streams, in the order in which ``forestall run`` reads them.
    """
    shards, observers = InlineShards(1), _observers(variant)
    names = {(stream, definition.kind, definition.name) for stream, definition in observers}
    for stream, record in variant.records:
        definition = definition_of(stream, record)
        if definition is None or (stream, definition.kind, definition.name) in names:
            shards.append_record(stream, record)
    used_places = {(stream, definition.inputs[0].key) for stream, definition in observers}
    for stream, batch in events:
        routes = {name: path for name, path in variant.routes[stream].items() if (stream, name) in used_places}
        arrivals, fed_events, done = batch.arrivals, shards.fed(stream), len(shards.decisions)
        assert arrivals is not None, "events of a history are numbered"
        shards.feed_and_decide(stream, batch, routes)
        for decision in shards.decisions[done:]:
            yield Decision(
                number, stream, int(arrivals[decision.events - fed_events - 1]), decision.stream, decision.record
            )
    for stream, decider, state in shards.decider_states():
        yield DeciderState(number, stream, decider, state)


def _observers(variant: Variant) -> list[tuple[str, Definition]]:
    """Return the operators that deciders observe, and the operators that feed these, each with its stream."""
    observed = [
        (stream, definition)
        for stream, definition in variant.operators
        if KINDS_BY_NAME[definition.kind].is_observed(definition)
    ]
    sources = {stream for stream, _ in observed}
    todo = list(sources)
    while todo:
        new = variant.feeds.sources.get(todo.pop(), frozenset()) - sources
        sources |= new
        todo += new
    feeders = {
        operator for operator, feeds in variant.feeds.of.items() if any(feed.stream in sources for feed in feeds)
    }
    return [
        (stream, definition)
        for stream, definition in variant.operators
        if (stream, definition.inputs[0].key, definition.kind, definition.name) in feeders
        or (stream, definition) in observed
    ]
