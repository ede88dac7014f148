"""Deciders: they merge the observations of all shards into decisions, which are records of the log.

A shard sees only its own events, and its behaviour must follow from its log. So each shard *observes*: with the results
of a step, it returns a small summary of the step's events. For each decision, one *decider* runs beside the sink of the
results. It merges the summaries of all shards and writes its decision to the log, as a control record for every shard.
Shards act on this record only, never on an observation. So a replay of the log gives the same results, even if the
decider would decide differently during the replay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shards.kinds import DECIDERS
from shards.operators import Decider, DeciderKind, Observation
from streams import ControlRecord


def decider_kind(name: str) -> DeciderKind:
    """Return the kind of a decider, given its name (``Observation.decider``). A suffix after ``/`` is ignored."""
    return DECIDERS[name.partition("/")[0]]


class Deciders:
    """All deciders for a group of shards, in memory.

    There is at most one for each stream and decider name. It is created with its first observation.
    """

    def __init__(self) -> None:
        self._deciders: dict[tuple[str, str], Decider] = {}

    def decide(self, observed: Iterable[Observation]) -> list[tuple[str, ControlRecord]]:
        """Pass the observations of one micro-batch of all shards to their deciders, and return the decisions.

        Each decision is a pair of a stream and a control record. The pairs are sorted by stream and decider.
        """
        decisions: list[tuple[str, ControlRecord]] = []
        for (stream, name), summaries in grouped(observed).items():
            decider = self._deciders.get((stream, name)) or decider_kind(name).load(None)
            self._deciders[stream, name] = decider
            decider.observe(summaries)
            if (record := decider.decide()) is not None:
                decisions.append((stream, record))
        return decisions

    def forget(self, stream: str) -> None:
        """Forget the observations of a removed stream, so that a new stream of the same name starts without them."""
        self._deciders = {key: decider for key, decider in self._deciders.items() if key[0] != stream}

    def states(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield the stream, the name and the state (plain JSON) of every decider that has received observations."""
        return ((stream, name, decider.to_json()) for (stream, name), decider in self._deciders.items())


def grouped(observed: Iterable[Observation]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Group the summaries of observations by stream and name of the decider, sorted by this pair."""
    summaries: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for observation in observed:
        summaries[observation.stream, observation.decider].append(observation.summary)
    return dict(sorted(summaries.items()))
