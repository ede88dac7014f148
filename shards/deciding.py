"""Deciders: they merge the observations of all shards into decisions, which are records of the log.

A shard sees only its own events, and its behaviour must follow from its log. So each shard *observes*: with the results
of a step it returns a small summary of the step's events. Beside the sink of the results there is one *decider* for
each decision. It merges the summaries of all shards and writes its decision as a control record for every shard.
Nothing acts on an observation before this record, so a replay of the log gives the same results, whatever the decider
would decide by then.
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
    """A summary of what a shard observed in a step.

    Attributes:
        stream: The stream to which the decision applies.
        decider: Name of the decider: a key of ``DECIDERS``, followed by ``/`` and a suffix if a stream has several
            deciders of this kind.
        summary: Plain JSON of bounded size, read by the decider; the number of the ``shard`` is added.
    """

    stream: str
    decider: str
    summary: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Observation:
        """Read the JSON form of ``to_json``."""
        return cls(stream=value["stream"], decider=value["decider"], summary=value["summary"])


class Decider(Protocol):
    """Decides one thing of a stream. Missing or repeated observations may change a decision, but never a result."""

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Merge what shards observed in one step, in any order."""
        ...

    def decide(self) -> ControlRecord | None:
        """The next decision, or None if nothing changes. A returned decision counts as made."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The state as plain JSON of bounded size."""
        ...


@dataclass(frozen=True, slots=True)
class DeciderKind:
    """How deciders of one kind are created and loaded.

    Attributes:
        make: Creates a decider without observations.
        load: Reads the JSON form of ``Decider.to_json``.
    """

    make: Callable[[], Decider]
    load: Callable[[Mapping[str, Any]], Decider]


DECIDERS: Mapping[str, DeciderKind] = {
    LATENESS: DeciderKind(LatenessDecider, LatenessDecider.from_json),
    WAIT: DeciderKind(WaitDecider, WaitDecider.from_json),
}
"""The kinds of deciders, by name."""


def decider_kind(name: str) -> DeciderKind:
    """The kind of the decider with a name."""
    return DECIDERS[name.partition("/")[0]]


class Deciders:
    """All deciders of some shards, in memory."""

    def __init__(self) -> None:
        self._deciders: dict[tuple[str, str], Decider] = {}

    def decide(self, observed: Iterable[Observation]) -> list[tuple[str, ControlRecord]]:
        """Decide from the observations of one step; the records come with their streams, in a fixed order."""
        found: list[tuple[str, ControlRecord]] = []
        for (stream, name), summaries in grouped(observed).items():
            decider = self._deciders.get((stream, name)) or decider_kind(name).make()
            self._deciders[stream, name] = decider
            decider.observe(summaries)
            if (record := decider.decide()) is not None:
                found.append((stream, record))
        return found

    def forget(self, stream: str) -> None:
        """Forget a removed stream; a new declaration under its name begins without observations."""
        self._deciders = {key: one for key, one in self._deciders.items() if key[0] != stream}

    def state(self, stream: str, name: str) -> Mapping[str, Any] | None:
        """The state of a decider, or None if it has observed nothing."""
        decider = self._deciders.get((stream, name))
        return None if decider is None else decider.to_json()


def undecided(record: ControlRecord) -> ControlRecord:
    """Replace a record by one without measured bounds, for shards of a finite history that run apart from each other.

    A measured lateness becomes the largest allowed one, because matches over a finite history need not be early. A join
    with ``wait: auto`` finishes no keys before the end.
    """
    if isinstance(record, StreamOn) and isinstance(record.declaration.lateness, AutoLateness):
        return StreamOn(replace(record.declaration, lateness=record.declaration.lateness.at_most))
    return record


def grouped(observed: Iterable[Observation]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The summaries by stream and decider, sorted by these names."""
    found: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for one in observed:
        found[one.stream, one.decider].append(one.summary)
    return dict(sorted(found.items()))
