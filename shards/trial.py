"""Several ways to match the same history, side by side: one shard of a backtest, without Spark.

Each *variant* is a ``ShardState`` of its own that receives the same events, so what differs in alerts and in cost does
so because of what was switched and of nothing else. A key is in one shard only, so alerts are compared within it:
nothing of a comparison has to leave the shard but its counts and the alerts that differ.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import orjson
import pyarrow as pa

from shards.deciding import undecided
from shards.entries import EventsEntry, StoredEntry
from shards.kinds.patterns import ALERT, PatternKind
from shards.results import DEAD_LETTER
from shards.rows import RowBlock
from shards.state import ShardState
from streams import (
    ControlRecord,
    EventBatch,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    encode_control,
)

HELD_DIFFERENCES = 100_000

Likeness: TypeAlias = Literal["bindings", "events"]

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to match.

    Attributes:
        name: Tells it from the others.
        control: What the log would say before the first event: the stream, its constraints, its patterns.
        counterparts: From its patterns to those of the first variant that their alerts are compared with, by name;
            a pattern that is not in here is compared with the one of its own name.
        alike: Which alerts of a key are the same: those that bind the same events to the same aliases, or that bind the
            same events.
    """

    name: str
    control: tuple[ControlRecord, ...]
    counterparts: Mapping[str, str] = field(default_factory=dict)
    alike: Likeness = "bindings"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """What a backtest does in every shard.

    Attributes:
        stream: Name of the stream; every variant declares it.
        variants: The first is what is asked about, the others are what it is compared with.
        is_open: Whether the history is the beginning of something: traces stay open, and time has come as far as its
            newest event. Otherwise every trace ends with it, and all time has passed.
    """

    stream: str
    variants: tuple[Variant, ...]
    is_open: bool = False


@dataclass(slots=True, kw_only=True)
class VariantCounts:
    """What a variant found, and what that took; those of shards add up.

    Attributes:
        rows: Rows by kind.
        patterns: Alerts by pattern.
        reasons: Dead letters by their code.
        events: Events that were matched.
        released: Bound events that were given up because of constraints.
        open_traces: Traces that were open before the end.
        peak_held: Most (pattern, instance) pairs bound in kept partial matches at once; of several shards the sum of
            their peaks.
        peak_state_bytes: Most bytes of partial matches after a batch; of several shards the sum of their peaks.
        busy_ns: Time of the threads that matched, in nanoseconds; waiting is not in it.
    """

    rows: Counter[str] = field(default_factory=Counter)
    patterns: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    events: int = 0
    released: int = 0
    open_traces: int = 0
    peak_held: int = 0
    peak_state_bytes: int = 0
    busy_ns: int = 0

    def __add__(self, other: VariantCounts) -> VariantCounts:
        return VariantCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def to_document(self) -> dict[str, Any]:
        """As plain JSON."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> VariantCounts:
        """What ``to_document`` gave."""
        known: Any = {name: Counter(value) if isinstance(value, dict) else value for name, value in document.items()}
        return cls(**known)


@dataclass(slots=True, kw_only=True)
class ComparisonCounts:
    """How the alerts of the first variant differ from those of another one; those of shards add up.

    Attributes:
        added: Only the first variant has them.
        lost: Only the other one has them.
        same: Both have them.
        unlisted: Of those added and lost, how many were only counted: a shard holds so many and no more.
    """

    added: int = 0
    lost: int = 0
    same: int = 0
    unlisted: int = 0

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        return ComparisonCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def to_document(self) -> dict[str, int]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialRows:
    """Things of one kind that a backtest has found.

    Attributes:
        label: Name of the kind of result for rows of the first variant; ``added`` or ``lost`` for alerts in which it
            differs from another one.
        variant: The index of the variant that it was compared with; 0 for rows of the first.
        bodies: Bytes: JSON objects in UTF-8.
    """

    label: str
    variant: int
    bodies: pa.Array

    def __len__(self) -> int:
        return len(self.bodies)


class Trial:
    """The variants of a plan in one shard.

    Args:
        plan: What is done.
        shard: The shard's number.
    """

    def __init__(self, plan: TrialPlan, shard: int) -> None:
        self._plan = plan
        self._runs = [_Run(variant, plan.stream, shard) for variant in plan.variants]
        self._comparisons = [_Comparison(variant) for variant in plan.variants[1:]]

    @property
    def counts(self) -> list[VariantCounts]:
        """Of each variant, so far."""
        return [run.counts for run in self._runs]

    @property
    def comparisons(self) -> list[ComparisonCounts]:
        """Of each variant but the first, so far; alerts in which they differ are known at the end."""
        return [comparison.counts for comparison in self._comparisons]

    def begin(self) -> Iterator[TrialRows]:
        """Apply what is said before the first event; rows are dead letters."""
        first, *_ = [run.begin() for run in self._runs]
        yield from _found(first)

    def feed(self, batch: EventBatch) -> Iterator[TrialRows]:
        """Match the next events of the shard.

        Args:
            batch: In the order in which they are to be seen.
        """
        yield from self._take([run.feed(batch) for run in self._runs])

    def finish(self, newest_us: int) -> Iterator[TrialRows]:
        """What the end of the history brings, and the alerts in which variants differ.

        Args:
            newest_us: Time of the newest event of all shards.
        """
        if self._plan.is_open:
            tick = encode_control(Tick(time_us=newest_us, cause="events"))
            yield from self._take([run.say(RecordKind.TICK, tick) for run in self._runs])
        else:
            yield from self._take([run.finish() for run in self._runs])
        for number, comparison in enumerate(self._comparisons, start=1):
            for label, bodies in comparison.differences():
                yield TrialRows(label=label, variant=number, bodies=bodies)

    def _take(self, found: list[list[RowBlock]]) -> Iterator[TrialRows]:
        first, *others = found
        for comparison, rows in zip(self._comparisons, others, strict=True):
            comparison.take(first, rows)
        yield from _found(first)


class _Run:
    """One variant in one shard."""

    def __init__(self, variant: Variant, stream: str, shard: int) -> None:
        self._variant = variant
        self._stream = stream
        self._state = ShardState(shard)
        self._position = 0
        self.counts = VariantCounts()

    def begin(self) -> list[RowBlock]:
        return [rows for record in self._variant.control for rows in self._said(record)]

    def _said(self, record: ControlRecord) -> list[RowBlock]:
        rows = self._declared(record) if isinstance(record, PatternOn) else []
        return rows + self.say(record.KIND, encode_control(undecided(record)))

    def _declared(self, record: PatternOn) -> list[RowBlock]:
        """Declares the stream that a pattern feeds; nothing listens to it here."""
        feed = PatternKind().feed(record.definition(self._stream))
        if feed is None:
            return []
        declared = StreamOn(StreamDeclaration(name=feed.stream, derived=True))
        return self.say(declared.KIND, encode_control(declared), feed.stream)

    def say(self, kind: RecordKind, body: bytes, stream: str = "") -> list[RowBlock]:
        entry = StoredEntry(position=self._next(), kind=kind.value, stream=stream or self._stream, body=body)
        return self._noted(lambda: self._state.advance([entry]))

    def feed(self, batch: EventBatch) -> list[RowBlock]:
        entry = EventsEntry(position=self._next(), stream=self._stream, batch=batch)
        return self._noted(lambda: self._state.take(entry))

    def finish(self) -> list[RowBlock]:
        return self._noted(self._state.finish, is_end=True)

    def _next(self) -> str:
        self._position += 1
        return f"1-{self._position}"

    def _noted(self, action: Callable[[], list[RowBlock]], *, is_end: bool = False) -> list[RowBlock]:
        begin_ns = time.thread_time_ns()
        blocks = action()
        self._note(blocks, time.thread_time_ns() - begin_ns, is_end=is_end)
        return blocks

    def _note(self, blocks: list[RowBlock], busy_ns: int, *, is_end: bool) -> None:
        counts = self.counts
        counts.busy_ns += busy_ns
        for block in blocks:
            counts.rows[block.found.kind.name] += len(block)
            if block.found.kind is ALERT:
                counts.patterns += block.found.counts_by("pattern")
            elif block.found.kind is DEAD_LETTER:
                counts.reasons += block.found.counts_by("code")
        measured = self._state.measures().get(self._stream)
        if measured is None:
            return
        numbers = {name: number or 0 for name, number in measured.items()}
        counts.events, counts.peak_held, counts.released = (
            numbers[name] for name in ("events", "peak_held", "released")
        )
        counts.peak_state_bytes = max(counts.peak_state_bytes, numbers["state_bytes"])
        if not is_end:
            counts.open_traces = numbers["open_traces"]


class _Comparison:
    """Finds the alerts that only one of two variants has, as they come: each waits until the other variant has it."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._waiting: dict[str, dict[bytes, list[bytes]]] = {"added": {}, "lost": {}}
        self._held = 0
        self._unlisted = 0
        self._same = 0

    @property
    def counts(self) -> ComparisonCounts:
        sizes = {label: sum(map(len, waiting.values())) for label, waiting in self._waiting.items()}
        return ComparisonCounts(same=self._same, unlisted=self._unlisted, **sizes)

    def take(self, first: list[RowBlock], other: list[RowBlock]) -> None:
        """Rows that the two variants have found in the same events."""
        for blocks, label, names in ((first, "added", {}), (other, "lost", self._variant.counterparts)):
            for block in blocks:
                if block.found.kind is ALERT:
                    for alert in block.found.bodies.to_pylist():
                        self._wait(alert, label, names)

    def differences(self) -> Iterator[tuple[str, pa.Array]]:
        """(label, alerts) of what is still without its like."""
        for label, waiting in self._waiting.items():
            bodies = [body for found in waiting.values() for body in found if body]
            if bodies:
                yield label, pa.array(bodies, pa.binary())

    def _wait(self, alert: bytes, label: str, names: Mapping[str, str]) -> None:
        identity = self._identity(orjson.loads(alert), names)
        opposite = self._waiting["lost" if label == "added" else "added"]
        if identity in opposite:
            self._let_go(opposite, identity)
            return
        body = alert if self._held < HELD_DIFFERENCES else b""
        self._waiting[label].setdefault(identity, []).append(body)
        self._held += bool(body)
        self._unlisted += not body

    def _let_go(self, waiting: dict[bytes, list[bytes]], identity: bytes) -> None:
        bodies = waiting[identity]
        body = bodies.pop()
        if not bodies:
            del waiting[identity]
        self._held -= bool(body)
        self._unlisted -= not body
        self._same += 1

    def _identity(self, alert: Mapping[str, Any], names: Mapping[str, str]) -> bytes:
        """What makes two alerts the same; the pattern's name is that of the first variant."""
        bindings: Mapping[str, list[str]] = alert["bindings"]
        bound: Any = bindings
        if self._variant.alike == "events":
            bound = sorted({event for events in bindings.values() for event in events})
        what = [names.get(alert["pattern"], alert["pattern"]), alert["key"], bound]
        return blake2b(orjson.dumps(what, option=orjson.OPT_SORT_KEYS), digest_size=_DIGEST_BYTES).digest()


def _found(blocks: list[RowBlock]) -> Iterator[TrialRows]:
    return (TrialRows(label=block.found.kind.name, variant=0, bodies=block.found.bodies) for block in blocks)


def _plain(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, Counter) else value
