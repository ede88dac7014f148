"""Trials: several variants match the same history side by side, in one shard of a backtest, without Spark.

Each *variant* is a ``ShardState`` of its own that receives the same events, so differences in alerts and costs come
only from the differences between the variants. A key is in one shard only, so alerts are compared within the shard:
only the counts of a comparison and the differing alerts leave it.
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
        name: Distinct among the variants.
        control: Control records as they would be in the log before the first event: the stream, its constraints, its
            patterns.
        counterparts: Maps its patterns to the first variant's patterns that their alerts are compared with, by name; a
            pattern that is missing here is compared with the pattern of the same name.
        alike: Which alerts of a key are equal: those that bind the same events to the same aliases, or those that bind
            the same events.
    """

    name: str
    control: tuple[ControlRecord, ...]
    counterparts: Mapping[str, str] = field(default_factory=dict)
    alike: Likeness = "bindings"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """The work of a backtest in every shard.

    Attributes:
        stream: Name of the stream; every variant declares it.
        variants: The first is the variant under test, the others are compared with it.
        is_open: Whether the history is only a beginning: traces stay open, and time has come as far as its newest
            event. Otherwise every trace ends with it, and all time has passed.
    """

    stream: str
    variants: tuple[Variant, ...]
    is_open: bool = False


@dataclass(slots=True, kw_only=True)
class VariantCounts:
    """Results and costs of a variant; the counts of several shards add up.

    Attributes:
        rows: Rows by kind.
        patterns: Alerts by pattern.
        reasons: Dead letters by their code.
        events: Matched events.
        released: Bound events that were dropped because of constraints.
        open_traces: Traces that were open before the end.
        peak_held: Most (pattern, instance) pairs bound in retained partial matches at once; for several shards the sum
            of their peaks.
        peak_state_bytes: Most bytes of partial matches after a batch; for several shards the sum of their peaks.
        busy_ns: CPU time of the matching threads, in nanoseconds, without waiting.
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
        """Read the JSON form of ``to_document``."""
        known: Any = {name: Counter(value) if isinstance(value, dict) else value for name, value in document.items()}
        return cls(**known)


@dataclass(slots=True, kw_only=True)
class ComparisonCounts:
    """Differences between the alerts of the first variant and of another one; the counts of several shards add up.

    Attributes:
        added: Alerts of the first variant only.
        lost: Alerts of the other variant only.
        same: Alerts of both.
        unlisted: Added or lost alerts that were only counted, because a shard retains at most ``HELD_DIFFERENCES``.
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
    """Results of one kind that a backtest found.

    Attributes:
        label: Name of the kind of result for rows of the first variant; ``added`` or ``lost`` for alerts in which it
            differs from another variant.
        variant: Index of the variant in the comparison; 0 for rows of the first.
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
        plan: The plan of the backtest.
        shard: Number of the shard.
    """

    def __init__(self, plan: TrialPlan, shard: int) -> None:
        self._plan = plan
        self._runs = [_Run(variant, plan.stream, shard) for variant in plan.variants]
        self._comparisons = [_Comparison(variant) for variant in plan.variants[1:]]

    @property
    def counts(self) -> list[VariantCounts]:
        """The counts of each variant so far."""
        return [run.counts for run in self._runs]

    @property
    def comparisons(self) -> list[ComparisonCounts]:
        """The counts of each comparison so far; the differing alerts are known at the end."""
        return [comparison.counts for comparison in self._comparisons]

    def begin(self) -> Iterator[TrialRows]:
        """Apply the control records before the first event; the rows are dead letters."""
        first, *_ = [run.begin() for run in self._runs]
        yield from _found(first)

    def feed(self, batch: EventBatch) -> Iterator[TrialRows]:
        """Match the next events of the shard.

        Args:
            batch: The events, in processing order.
        """
        yield from self._take([run.feed(batch) for run in self._runs])

    def finish(self, newest_us: int) -> Iterator[TrialRows]:
        """Finish the history; returns its last rows and the alerts in which variants differ.

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
        """Declare the stream that a pattern feeds; it has no operators here."""
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
    """Finds the alerts of only one of two variants: each alert waits for its equal in the other variant."""

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
        """Compare rows of the two variants for the same events."""
        for blocks, label, names in ((first, "added", {}), (other, "lost", self._variant.counterparts)):
            for block in blocks:
                if block.found.kind is ALERT:
                    for alert in block.found.bodies.to_pylist():
                        self._wait(alert, label, names)

    def differences(self) -> Iterator[tuple[str, pa.Array]]:
        """(label, alerts) of the alerts that still have no equal."""
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
        """A digest that equal alerts share; it uses the pattern's name in the first variant."""
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
