"""A kind of operator as small as one can be: every n-th event of a key is a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import orjson

from shards.operators import KeyChoice, Origin, Result, SavedHost
from shards.rows import RowKind, row_id
from streams import ConstraintsOn, ControlRecordError, Definition, EventBatch, Start, StreamDeclaration, key_hash


@dataclass(frozen=True, slots=True)
class TallyOutput:
    """(operator, key, number of events) of each result."""

    reached: tuple[tuple[str, str, int], ...] = ()

    def results(self, origin: Origin) -> Iterator[Result]:
        stream = origin.entry.stream
        for name, key, count in self.reached:
            identity = row_id(RowKind.ALERT, stream, name, key, count)
            yield RowKind.ALERT, identity, {"id": identity, "stream": stream, "pattern": name, "key": key, "n": count}


@dataclass(slots=True)
class TallyHost:
    """Counts by operator and key; a key that ends, or that is complete, is forgotten."""

    every: dict[str, int] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    newest_us: int | None = None
    events: int = 0
    waits_for_time: bool = False

    @property
    def names(self) -> Collection[str]:
        return self.every.keys()

    def start(self, definition: Definition, start: Start) -> None:
        every = definition.body.get("every")
        if not isinstance(every, int) or every < 1:
            raise ControlRecordError(f"tally {definition.name!r}: every is {every!r}; it must be a number from 1")
        self.every[definition.name] = every

    def stop(self, name: str) -> None:
        if name not in self.every:
            raise ControlRecordError(f"no tally {name!r} runs")
        del self.every[name]
        self.counts = Counter({place: count for place, count in self.counts.items() if place[0] != name})

    def follow(self, record: ConstraintsOn) -> None:
        pass

    def process(self, batch: EventBatch) -> TallyOutput:
        reached: list[tuple[str, str, int]] = []
        for event in batch.to_events():
            self.newest_us = max(event.time_us, event.time_us if self.newest_us is None else self.newest_us)
            self.events += 1
            for name, every in self.every.items():
                self.counts[name, event.key] += 1
                if self.counts[name, event.key] == every:
                    reached.append((name, event.key, self.events_id(event.id)))
                    del self.counts[name, event.key]
        return TallyOutput(tuple(reached))

    @staticmethod
    def events_id(name: str) -> int:
        return int(name.removeprefix("e"))

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


class TallyKind:
    name: ClassVar[str] = "tally"
    is_resident: ClassVar[bool] = False

    def host(self, declaration: StreamDeclaration, route: str, saved: SavedHost | None = None) -> TallyHost:
        if saved is None:
            return TallyHost()
        counts = Counter({(name, key): count for name, key, count in orjson.loads(saved.sections["counts"])})
        head = saved.head
        return TallyHost(dict(head["every"]), counts, head["newest_us"], head["events"])
