"""The decider of a join with ``wait: auto``, which decides which keys the inputs have finished.

Source: data-driven memory management for stream joins, sections 2.3 (closing key), 3.1 (the largest disorder of the
newest blocks, with headroom) and 6 (keys that begin again) of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Self

from joins.waiting.chunks import KeyChunk, farthest, fewer
from joins.waiting.prediction import KeyFigures, predicted_rows
from streams import GREATEST_NUMBER, LEAST_NUMBER, ClosedKeys, KeysClosed

BLOCK_EVENTS = 256
BLOCKS = 8
ENOUGH_EVENTS = 1_024
"""Least number of events before the first decision. As many consecutive events of finished keys reopen the keys."""

_HEADROOM = (5, 4)  # the assumed distance is the measured one times this fraction
_WORTH = 4  # a closing key rises by at least the distance divided by this number
_CHUNKS_OF_BLOCK = 32
_CHUNKS_OF_STEP = 512


@dataclass(slots=True)
class KeyBlock:
    """Chunks of consecutive events of an input over all shards. ``distance`` was measured as they arrived.

    It is how far the key of an event is below the key of an earlier event, at most.
    """

    events: int = 0
    distance: int = 0
    chunks: list[KeyChunk] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"events": self.events, "distance": self.distance, "chunks": [chunk.to_json() for chunk in self.chunks]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(value["events"], value["distance"], [KeyChunk(*chunk) for chunk in value["chunks"]])


class InputKeys:
    """The measured disorder of the keys of an input over all shards, and the keys already finished.

    ``reading`` is the hash of what the input reads (``readings_of``).
    """

    def __init__(self, reading: str = "") -> None:
        self.reading = reading
        self._blocks: list[KeyBlock] = []
        self._open = KeyBlock()
        self._closing_key: int | None = None
        self._closed_us = 0  # event time at which the closing key was decided
        self._below = 0  # events of finished keys since the last event of another key
        self._reached_us: int | None = None

    def measured_anew(self) -> InputKeys:
        """Return a copy without measurements. It keeps the last closing key, because finished keys remain so."""
        input_keys = InputKeys(self.reading)
        input_keys._closing_key, input_keys._closed_us = self._closing_key, self._closed_us
        return input_keys

    def observe(self, chunks: Sequence[KeyChunk], reached_us: int | None) -> None:
        """Add the reports of one step: chunks of all shards in any order, and the newest event time of any shard."""
        if reached_us is not None:
            self._reached_us = reached_us if self._reached_us is None else max(self._reached_us, reached_us)
        if not chunks:
            return
        new, old = fewer(chunks, _CHUNKS_OF_STEP), self._chunks()
        for chunk in sorted(new, key=attrgetter("last_us")):
            if self._closing_key is not None and chunk.first_us > self._closed_us:  # earlier events were expected
                self._below = self._below + chunk.events if chunk.greatest <= self._closing_key else 0
        distance = max(farthest([*old, *new], new), farthest(new, old), *(chunk.distance for chunk in new))
        self._open.distance = min(max(self._open.distance, distance), GREATEST_NUMBER)
        self._open.events += sum(chunk.events for chunk in new)
        self._open.chunks += new
        if self._open.events >= BLOCK_EVENTS:
            self._open.chunks = fewer(self._open.chunks, _CHUNKS_OF_BLOCK)
            self._blocks = [*self._blocks[1 - BLOCKS :], self._open]
            self._open = KeyBlock()

    def decide(self, name: str) -> ClosedKeys | None:
        """Return the keys that the input ``name`` has newly finished, or that its keys begin again. None: no change.

        The last finished key is the highest key, less the measured distance with headroom. An event counts towards the
        highest key once a whole block of later events has arrived. A single outlier finishes no key, because it
        increases the measured distance before it counts.
        """
        if self._reached_us is None:
            return None
        if self._below >= ENOUGH_EVENTS:
            closed_keys = self._closed_keys(name, None, self._reached_us)
            self._blocks, self._open, self._closing_key, self._below = [], KeyBlock(), None, 0
            return closed_keys
        highest, figures = self._settled(), self.figures()
        if highest is None or figures.events < ENOUGH_EVENTS:
            return None
        closing = highest - figures.room - 1
        least = max(1, figures.room // _WORTH)
        if closing < LEAST_NUMBER or (self._closing_key is not None and closing < self._closing_key + least):
            return None
        self._closing_key, self._closed_us = closing, self._reached_us
        return self._closed_keys(name, closing, self._reached_us)

    def _closed_keys(self, name: str, to: int | None, time_us: int) -> ClosedKeys:
        return ClosedKeys(input=name, to=to, time_us=time_us, seen=self.seen(), reading=self.reading)

    def figures(self) -> KeyFigures:
        """Return the measurements over the newest blocks of events and the events after them."""
        blocks, chunks = [*self._blocks, self._open], self._chunks()
        distance = max(block.distance for block in blocks)
        highest = max((chunk.greatest for chunk in chunks), default=None)
        first = min(chunks, key=attrgetter("first_us"), default=None)
        return KeyFigures(
            events=sum(block.events for block in blocks),
            distance=distance,
            room=min(-(-distance * _HEADROOM[0] // _HEADROOM[1]), GREATEST_NUMBER),
            highest=highest,
            least=min((chunk.least for chunk in chunks), default=None),
            rise=0 if highest is None or first is None else min(highest - first.greatest, GREATEST_NUMBER),
            span_us=0 if first is None else max(chunk.last_us for chunk in chunks) - first.first_us,
            reached_us=self._reached_us,
            closing=self._closing_key,
        )

    def seen(self) -> dict[str, Any]:
        """Return the measurements (``figures``) as plain JSON."""
        return asdict(self.figures())

    def _chunks(self) -> list[KeyChunk]:
        return [chunk for block in (*self._blocks, self._open) for chunk in block.chunks]

    def _settled(self) -> int | None:
        """Return the highest key among events after which a whole block has arrived, or None without such events."""
        later_events, highest = 0, None
        for chunk in sorted(self._chunks(), key=attrgetter("last_us"), reverse=True):
            if later_events >= BLOCK_EVENTS:
                highest = chunk.greatest if highest is None else max(highest, chunk.greatest)
            later_events += chunk.events
        return highest

    def to_json(self) -> dict[str, Any]:
        return {
            "blocks": [block.to_json() for block in self._blocks],
            "open": self._open.to_json(),
            "said": self._closing_key,
            "said_us": self._closed_us,
            "below": self._below,
            "reached_us": self._reached_us,
            **({"reading": self.reading} if self.reading else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        input_keys = cls(value.get("reading", ""))
        input_keys._blocks = [KeyBlock.from_json(block) for block in value["blocks"]]
        input_keys._open = KeyBlock.from_json(value["open"])
        input_keys._closing_key, input_keys._closed_us, input_keys._below = (
            value["said"],
            value["said_us"],
            value["below"],
        )
        input_keys._reached_us = value["reached_us"]
        return input_keys


class WaitDecider:
    """Decides for a join with ``wait: auto`` which keys its inputs have finished, each independently of the others.

    A decision uses the newest ``BLOCKS`` blocks of at least ``BLOCK_EVENTS`` events, and the events after them. The
    order of reports does not matter. For another version of the join, measuring begins again. The last closing key of
    an input is kept only if both versions read the input in the same way.

    A join may have a limit of stored events for each shard. The join must stop if a shard stores more, or if the first
    measurements of all inputs predict more.
    """

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, version: int) -> None:
        self._version = version
        self._inputs: dict[str, InputKeys] = {}
        self._allowed: int | None = None
        self._names: list[str] = []
        self._held: dict[str, int] = {}  # held events, by shard
        self._is_admitted = False

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Add the reports that shards have made in one step (``keys_summary``, ``held_summary``), in any order."""
        latest = max((summary["version"] for summary in summaries), default=0)
        if latest > self._version:
            before = self._inputs
            self._begin(latest)
            self._inputs = {name: input_keys.measured_anew() for name, input_keys in before.items()}
        current = [summary for summary in summaries if summary["version"] == self._version]
        for summary in current:
            if "held" in summary:
                self._held[str(summary["shard"])] = summary["held"]
                self._allowed, self._names = summary["allowed"], summary["inputs"]
        for name in sorted({summary["input"] for summary in current if "input" in summary}):
            input_summaries = [summary for summary in current if summary.get("input") == name]
            chunks = [KeyChunk(*chunk) for summary in input_summaries for chunk in summary["chunks"]]
            reached = [summary["reached_us"] for summary in input_summaries if summary["reached_us"] is not None]
            reading = input_summaries[0].get("reading", "")
            self._input(name, reading).observe(chunks, max(reached, default=None))

    def _input(self, name: str, reading: str) -> InputKeys:
        """Return the observations of an input. They begin again if the input was read in another way before.

        Saved observations of earlier releases have no reading (``InputKeys.reading``). They are kept.
        """
        input_keys = self._inputs.get(name)
        if input_keys is None or (input_keys.reading and input_keys.reading != reading):
            input_keys = self._inputs[name] = InputKeys()
        input_keys.reading = reading
        return input_keys

    def decide(self) -> KeysClosed | None:
        """Return the newly finished keys and whether the join must stop, or None if nothing has changed."""
        decisions = (self._inputs[name].decide(name) for name in sorted(self._inputs))
        closed = tuple(closed_keys for closed_keys in decisions if closed_keys is not None)
        refused = self._excess()
        if refused is not None:  # after a resume, the shards report their held events again
            self._held, self._is_admitted = {}, False
        return KeysClosed(closed, refused, self._version or None) if closed or refused is not None else None

    def _excess(self) -> str | None:
        """Return the reason why the join must stop: it stores too many events, or will. None if it may continue."""
        if self._allowed is None or not self._held:
            return None
        inputs = {name: self._inputs[name].figures() for name in self._names if name in self._inputs}
        predicted = predicted_rows(inputs) if len(inputs) == len(self._names) else None
        held, shards = max(self._held.values()), len(self._held)
        if held > self._allowed:
            reason = f"it holds {held:,} events in a shard"
        elif predicted is not None and not self._is_admitted and sum(predicted.values()) > shards * self._allowed:
            reason = "it would hold too many events"
        else:
            self._is_admitted |= predicted is not None
            return None
        return f"{reason}, and its memory is {self._allowed:,} rows; {_measured(inputs, predicted, shards)}"

    @property
    def inputs(self) -> Mapping[str, InputKeys]:
        """Return the observations of each input, by alias."""
        return self._inputs

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self._version,
            "inputs": {name: input_keys.to_json() for name, input_keys in self._inputs.items()},
            "allowed": self._allowed,
            "names": self._names,
            "held": self._held,
            "is_admitted": self._is_admitted,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Self:
        """Read the result of ``to_json``. None gives a new decider."""
        decider = cls()
        if value is None:
            return decider
        decider._version = value["version"]
        decider._inputs = {name: InputKeys.from_json(saved) for name, saved in value["inputs"].items()}
        decider._allowed, decider._names, decider._held = value["allowed"], value["names"], value["held"]
        decider._is_admitted = value["is_admitted"]
        return decider


def _measured(inputs: Mapping[str, KeyFigures], predicted: Mapping[str, int] | None, shards: int) -> str:
    sentences = [
        f"keys of {name} come up to {figures.distance:,} below the highest one before them"
        + ("" if predicted is None else f", so about {predicted[name]:,} of its events are held")
        for name, figures in inputs.items()
    ]
    if predicted is None:
        sentences.append("too little is known of its inputs to finish keys of all of them")
    else:
        sentences.append(f"that is {-(-sum(predicted.values()) // shards):,} in each of {shards} shards")
    return "; ".join(sentences)


def held_summary(version: int, held: int, allowed: int, inputs: Sequence[str]) -> dict[str, Any]:
    """Return a shard's report of its stored events, for a join with a limit. The caller adds the shard's number."""
    return {"version": version, "held": held, "allowed": allowed, "inputs": list(inputs)}


def keys_summary(
    version: int, name: str, chunks: Iterable[KeyChunk], reached_us: int | None, reading: str = ""
) -> dict[str, Any]:
    """Return a shard's report to the decider about the events of an input since its last report.

    ``name`` is the input's alias. ``reached_us`` is the shard's event time. ``reading`` is as in ``InputKeys``.
    """
    return {
        "version": version,
        "input": name,
        "reached_us": reached_us,
        "chunks": [chunk.to_json() for chunk in chunks],
        **({"reading": reading} if reading else {}),
    }
