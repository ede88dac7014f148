"""What shards observe and one place decides: observations go there with the results of a step, decisions into the log.

A shard sees its own events only, and what it does must follow from its log. So it *observes*: it says something small
about the events of a step. One place, beside the sink of the results, has a *decider* for each thing that is decided.
It merges what all shards observed, and what it decides is a control record for every shard. Nothing acts on an
observation before that record: a replay of the log gives the same results, whatever the decider would say by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from streams import AutoLateness, ControlRecord, LatenessDecider, StreamOn, WaitDecider

LATENESS = "lateness"
WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a shard observed in a step.

    Attributes:
        stream: Where the decision goes.
        decider: Its name: what it decides, a key of ``DECIDERS``, and ``/`` and more where a stream has several of it.
        summary: Plain JSON of bounded size, which the decider reads; the ``shard`` is added to it.
    """

    stream: str
    decider: str
    summary: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Observation:
        """What ``to_json`` gave."""
        return cls(stream=value["stream"], decider=value["decider"], summary=value["summary"])


class Decider(Protocol):
    """Decides one thing of a stream. What was observed twice, or not at all, may change decisions, but no result."""

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Take what shards observed in one step; their order is without meaning."""
        ...

    def decide(self) -> ControlRecord | None:
        """What is to be different from here on; None: nothing. What is returned counts as said."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The state as plain JSON of bounded size."""
        ...


@dataclass(frozen=True, slots=True)
class DeciderKind:
    """How deciders of one kind are made.

    Attributes:
        make: A new one.
        load: The one that ``to_json`` was called of.
    """

    make: Callable[[], Decider]
    load: Callable[[Mapping[str, Any]], Decider]


DECIDERS: Mapping[str, DeciderKind] = {
    LATENESS: DeciderKind(LatenessDecider, LatenessDecider.from_json),
    WAIT: DeciderKind(WaitDecider, WaitDecider.from_json),
}
"""By what is decided."""


def decider_kind(name: str) -> DeciderKind:
    """The kind of the decider with a name."""
    return DECIDERS[name.partition("/")[0]]


class Deciders:
    """All deciders of some shards, in memory."""

    def __init__(self) -> None:
        self._deciders: dict[tuple[str, str], Decider] = {}

    def decide(self, observed: Iterable[Observation]) -> list[tuple[str, ControlRecord]]:
        """What follows from what shards observed in one step: records with the stream of each, in a fixed order."""
        found: list[tuple[str, ControlRecord]] = []
        for (stream, name), summaries in grouped(observed).items():
            decider = self._deciders.get((stream, name)) or decider_kind(name).make()
            self._deciders[stream, name] = decider
            decider.observe(summaries)
            if (record := decider.decide()) is not None:
                found.append((stream, record))
        return found

    def forget(self, stream: str) -> None:
        """A stream was removed; one that is declared anew under its name has observed nothing."""
        self._deciders = {key: one for key, one in self._deciders.items() if key[0] != stream}

    def state(self, stream: str, name: str) -> Mapping[str, Any] | None:
        """The state of one; None: it has observed nothing."""
        decider = self._deciders.get((stream, name))
        return None if decider is None else decider.to_json()


def undecided(record: ControlRecord) -> ControlRecord:
    """A record for shards of a finite history that run apart from each other, so that nothing is decided.

    A lateness that would be measured is the largest that is allowed: what is there already need not be early. A join
    with ``wait: auto`` finishes no keys before the end.
    """
    if isinstance(record, StreamOn) and isinstance(record.declaration.lateness, AutoLateness):
        return StreamOn(replace(record.declaration, lateness=record.declaration.lateness.at_most))
    return record


def grouped(observed: Iterable[Observation]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The summaries by stream and decider, in the order of these names."""
    found: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for one in observed:
        found[one.stream, one.decider].append(one.summary)
    return dict(sorted(found.items()))
