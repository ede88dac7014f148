"""A kind of operator as small as one can be: every n-th event of a key is a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import orjson

from shards.errors import OperatorRefused
from shards.operators import DocumentKind, Host, KeyChoice, Origin, Result, SavedHost
from shards.results import ResultKind, ResultMetric
from shards.rows import row_id
from streams import (
    ControlRecordError,
    Definition,
    EventBatch,
    Input,
    Start,
    StreamDeclaration,
    key_hash,
)

TALLY = ResultKind(
    name="tally",
    plural="tallies",
    title="tallies",
    subject="tally",
    counted_by=("stream", "tally"),
    delivered_as="tally.reached",
    members=frozenset(("type", "id", "stream", "tally", "key", "n")),
    in_backtests="listed",
    metric=ResultMetric(name="tallies", meaning="Tallies that were reached.", labels=("stream", "tally")),
)


@dataclass(frozen=True, slots=True)
class TallyOutput:
    """(operator, key, number of the event) of each result."""

    reached: tuple[tuple[str, str, int], ...] = ()

    def results(self, origin: Origin) -> Iterator[Result]:
        stream = origin.entry.stream
        for name, key, number in self.reached:
            identity = row_id(TALLY, stream, name, key, number)
            told = {
                "type": TALLY.delivered_as,
                "id": identity,
                "stream": stream,
                "tally": name,
                "key": key,
                "n": number,
            }
            yield TALLY, identity, told

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        return iter(())


@dataclass
class TallyHost(Host):
    """Counts by operator and key; a key that ends, or that is complete, is forgotten."""

    every: dict[str, int] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    newest_us: int | None = None
    events: int = 0

    @property
    def names(self) -> Collection[str]:
        return self.every.keys()

    def start(self, definition: Definition, start: Start) -> None:
        every = definition.body.get("every")
        if not isinstance(every, int) or every < 1:
            raise ControlRecordError(f"tally {definition.name!r}: every is {every!r}; a number from 1 is wanted")
        self.every[definition.name] = every

    def stop(self, name: str) -> None:
        if name not in self.every:
            raise ControlRecordError(f"no tally {name!r} runs")
        del self.every[name]
        self.counts = Counter({place: count for place, count in self.counts.items() if place[0] != name})

    def process(self, batch: EventBatch) -> TallyOutput:
        reached: list[tuple[str, str, int]] = []
        for event in batch.to_events():
            self.newest_us = max(event.time_us, event.time_us if self.newest_us is None else self.newest_us)
            self.events += 1
            for name, every in self.every.items():
                self.counts[name, event.key] += 1
                if self.counts[name, event.key] == every:
                    reached.append((name, event.key, int(event.id.removeprefix("e"))))
                    del self.counts[name, event.key]
        return TallyOutput(tuple(reached))

    def advance_time(self, watermark_us: int) -> TallyOutput:
        self.newest_us = watermark_us if self.newest_us is None else max(self.newest_us, watermark_us)
        return TallyOutput()

    def end_trace(self, key: str, time_us: int | None) -> TallyOutput:
        self.counts = Counter({place: count for place, count in self.counts.items() if place[1] != key})
        return TallyOutput()

    def finish(self) -> TallyOutput:
        self.counts.clear()
        return TallyOutput()

    def keep(self, is_kept: KeyChoice, *, has_counts: bool) -> None:
        names = list(self.counts)
        stays = is_kept(np.array([key_hash(key) for _, key in names], np.uint64))
        self.counts = Counter({place: self.counts[place] for place, stay in zip(names, stays, strict=True) if stay})
        self.events = self.events if has_counts else 0

    def measures(self) -> Mapping[str, int]:
        return {"events": self.events, "open_traces": len(self.counts)}

    def dump(self) -> SavedHost:
        counts = [[*place, count] for place, count in sorted(self.counts.items())]
        head = {"every": self.every, "newest_us": self.newest_us, "events": self.events}
        return SavedHost(head=head, sections={"counts": orjson.dumps(counts)})


@dataclass(frozen=True)
class TallyKind(DocumentKind):
    name: ClassVar[str] = "tally"
    plural: ClassVar[str] = "tallies"
    result_kinds: ClassVar[tuple[ResultKind, ...]] = (TALLY,)
    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"stream": {"type": "string"}, "every": {"type": "integer", "minimum": 1}},
        "required": ["stream", "every"],
    }

    def read(self, document: Mapping[str, Any], declared: Callable[[str], StreamDeclaration]) -> Definition:
        unknown = sorted(document.keys() - {"name", "stream", "every"})
        every = document.get("every")
        if unknown or not isinstance(every, int) or every < 1:
            raise OperatorRefused(f"a tally has 'every', a number from 1, and not {unknown or every!r}")
        if "stream" not in document:
            raise OperatorRefused("a tally has 'stream', what it listens to")
        stream = declared(document["stream"]).name
        return Definition(
            kind=self.name, name=document["name"], version=0, inputs=(Input(stream),), body={"every": every}
        )

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> TallyHost:
        if saved is None:
            return TallyHost()
        counts = Counter({(name, key): count for name, key, count in orjson.loads(saved.sections["counts"])})
        head = saved.head
        return TallyHost(dict(head["every"]), counts, head["newest_us"], head["events"])
