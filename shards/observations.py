"""Observations of shards, and the deciders that read them (``shards.deciding``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from streams import ControlRecord

LATENESS = "lateness"
"""The name of the decider of a stream that measures its lateness (``lateness: auto``)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderKind:
    """How deciders of one kind are created and loaded.

    Attributes:
        name: Names the deciders in observations.
        make: Creates a decider without observations.
        load: Reads the JSON form of ``Decider.to_json``.
    """

    name: str
    make: Callable[[], Decider]
    load: Callable[[Mapping[str, Any]], Decider]
