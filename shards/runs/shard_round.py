"""One shard in one round of a run. Every variant receives the same events, so results differ by the rules only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from shards.derived_place import EndTime
from shards.entries import EventsEntry, StoredEntry
from shards.kinds import COUNTED
from shards.results import DEAD_LETTER, DERIVED, REKEYED
from shards.rows import RowBlock, results_of
from shards.runs.comparing import Comparison, ComparisonCounts
from shards.runs.plan import Decision, RoundPlan
from streams import ControlRecord, Event, EventBatch, Tick, encode_control, parse_time


@dataclass(slots=True, kw_only=True)
class VariantCounts:
    """Results and costs of a variant. Counts of several shards and rounds can be added.

    Attributes:
        reasons: Number of dead letters by code.
        released: Number of bound events that were dropped because of constraints.
        open_traces: Number of traces that were still open when the events ended.
        peak_held: Highest number of (pattern, instance) pairs bound in retained partial matches. For several shards,
            this is the sum of their peaks.
        peak_state_bytes: Largest size of partial matches after a batch, in bytes. For several shards, this is the sum
            of their peaks.
        measured: The counters of late events and of joins and aggregates, by ``<stream>/<name of the counter>``.
        busy_ns: CPU time of the matching threads, in nanoseconds, without waiting.
    """

    rows: Counter[str] = field(default_factory=Counter)
    patterns: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    measured: Counter[str] = field(default_factory=Counter)
    events: int = 0
    released: int = 0
    open_traces: int = 0
    peak_held: int = 0
    peak_state_bytes: int = 0
    busy_ns: int = 0

    def __add__(self, other: VariantCounts) -> VariantCounts:
        return VariantCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def to_document(self) -> dict[str, Any]:
        """Return the counts as plain JSON."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> VariantCounts:
        """Read counts from the JSON form of ``to_document``."""
        members: Any = {name: Counter(value) if isinstance(value, dict) else value for name, value in document.items()}
        return cls(**members)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundRows:
    """Results of one kind, or differences between variants, from one shard in a round.

    Attributes:
        label: The name of the kind of result for rows of the first variant, and for suspensions of any variant. For
            differences between variants it is a label of ``Comparison.differences``.
        variant: Index of the variant that is compared with the first. It is 0 for rows of the first.
        bodies: Bytes: JSON objects in UTF-8.
    """

    label: str
    variant: int
    bodies: pa.Array

    def __len__(self) -> int:
        return len(self.bodies)


class FedPlace(NamedTuple):
    """Where fed events come from, and which decisions and table changes precede them.

    Attributes:
        route: Name of the further key by which the events are keyed; empty for the correlation key.
        variant: The variant that derived the events, or None if the events were posted.
        epoch: How many cuts of the posted stream (``RoundPlan.cuts``) precede these events.
        changes: How many changes of tables precede these events.
    """

    route: str = ""
    variant: int | None = None
    epoch: int = 0
    changes: int = 0


class ShardRound:
    """One shard in one round: matches the events with every variant, and compares the results of the variants."""

    def __init__(self, plan: RoundPlan, number: int, shard: int) -> None:
        self._plan = plan
        self._number = number
        self._states = [_VariantShard(plan, number, variant, shard) for variant in range(len(plan.variants))]
        self._comparisons = [Comparison(variant) for variant in plan.variants[1:]]
        self._epochs: Counter[str] = Counter()
        self._changes = 0

    @property
    def counts(self) -> list[VariantCounts]:
        """The counts of each variant so far."""
        return [variant_shard.counts for variant_shard in self._states]

    @property
    def comparisons(self) -> list[ComparisonCounts]:
        """The counts of each comparison so far. The differing results are available at the end."""
        return [comparison.counts for comparison in self._comparisons]

    @property
    def handed_on(self) -> Iterator[tuple[int, str, EventBatch]]:
        """The events derived so far that a later round reads, as batches, each with its variant and its stream."""
        for variant, variant_shard in enumerate(self._states):
            for stream, events in variant_shard.handed_on.items():
                yield variant, stream, EventBatch.joined(events)

    def begin(self) -> Iterator[RoundRows]:
        """Yield the dead letters of the control records before the first event. Only the first round reports them.

        Decisions whose records have a time are applied here too. These decisions need not wait for events, because
        events that they cause are buffered until the round ends.
        """
        yield from self._compared(
            (variant, variant_shard.begun) for variant, variant_shard in enumerate(self._states) if not self._number
        )
        yield from self._applied(decision for decision in self._plan.decisions if not decision.is_of_source)

    def feed(self, stream: str, batch: EventBatch, place: FedPlace | None = None) -> Iterator[RoundRows]:
        """Match the next events of a stream with every variant, and yield the results.

        Posted events are fed in processing order, derived events in any order. ``place`` is the origin of the events.
        None means posted events before all decisions and changes.
        """
        route, variant, epoch, changes = place or FedPlace()
        yield from self._changed(changes)
        yield from self._decided(stream, epoch)
        variants = range(len(self._states)) if variant is None else [variant]
        yield from self._compared(
            (variant_number, self._states[variant_number].feed(stream, route, batch))
            for variant_number in variants
            if self._plan.takes(self._number, variant_number, stream, route)
        )

    def _changed(self, number: int) -> Iterator[RoundRows]:
        """Apply the first ``number`` changes of tables, except those already applied, and yield the results."""
        due = self._plan.changes[self._changes : number]
        self._changes = max(self._changes, number)
        for change in due:
            yield from self._compared(
                (variant, state.apply_record("", change)) for variant, state in enumerate(self._states)
            )

    def _decided(self, stream: str, epoch: int) -> Iterator[RoundRows]:
        """Apply the decisions at the first ``epoch`` cuts of a posted stream, unless already applied.

        Yield the results.
        """
        cuts = self._plan.cuts.get(stream, ())[self._epochs[stream] : epoch]
        self._epochs[stream] = max(epoch, self._epochs[stream])
        if cuts:
            decisions = [
                decision for decision in self._plan.decisions if decision.is_of_source and decision.source == stream
            ]
            yield from self._applied(decision for decision in decisions if decision.number in cuts)

    def _applied(self, decisions: Iterable[Decision]) -> Iterator[RoundRows]:
        return self._compared(
            (decision.variant, self._states[decision.variant].apply_record(decision.stream, decision.record))
            for decision in decisions
            if self._plan.takes(self._number, decision.variant, decision.stream, "")
        )

    @property
    def ends(self) -> list[dict[str, EndTime]]:
        """The end times of derived streams, by variant. Streams whose operators do not depend on time are left out."""
        return [variant_shard.ends for variant_shard in self._states]

    def finish(
        self, newest_us: Mapping[str, int], ends_us: Sequence[Mapping[str, int]] | None = None
    ) -> Iterator[RoundRows]:
        """Finish the round. Yield the last rows, and then the results in which variants differ.

        ``newest_us`` has the newest event time of each posted stream with events, over all shards. ``ends_us`` has, for
        each variant, the newest event time of each derived stream. It is None if no times are known, or if there is
        only one shard.
        """
        yield from self._changed(len(self._plan.changes))
        for stream, cuts in self._plan.cuts.items():
            yield from self._decided(stream, len(cuts))
        yield from self._compared(
            (variant, variant_shard.finish(newest_us, ends_us[variant] if ends_us else {}))
            for variant, variant_shard in enumerate(self._states)
        )
        for number, comparison in enumerate(self._comparisons, start=1):
            for label, bodies in comparison.differences():
                yield RoundRows(label=label, variant=number, bodies=bodies)

    def _compared(self, by_variant: Iterable[tuple[int, Sequence[RowBlock]]]) -> Iterator[RoundRows]:
        for variant, blocks in by_variant:
            for comparison in self._comparisons if not variant else [self._comparisons[variant - 1]]:
                comparison.take(blocks, is_first=not variant)
            for block in blocks:
                if not variant or block.found.kind.stops:
                    yield RoundRows(label=block.found.kind.name, variant=variant, bodies=block.found.bodies)


class _VariantShard:
    def __init__(self, plan: RoundPlan, number: int, variant: int, shard: int) -> None:
        self._variant = plan.variants[variant]
        self._ticked = partial(plan.ticked, number, variant)
        self._is_open = plan.is_open
        self._own = frozenset(plan.rounds[number])
        self._later = frozenset(
            name for later_round in range(number + 1, len(plan.rounds)) for name in plan.reads(later_round)
        )
        self._repeated = plan.repeated(number, variant)
        self._streams = plan.streams_of(number, variant)
        self._state, begun = plan.begun(number, variant, shard)
        self._position = len(self._variant.records)
        self.counts = VariantCounts()
        self.handed_on: dict[str, list[EventBatch]] = {}
        self.begun = self._noted(lambda: begun)

    def apply_record(self, stream: str, record: ControlRecord) -> list[RowBlock]:
        body = encode_control(record)
        entry = StoredEntry(position=self._next(), kind=record.KIND.value, stream=stream, body=body)
        return self._noted(lambda: self._state.advance([entry]))

    def feed(self, stream: str, route: str, batch: EventBatch) -> list[RowBlock]:
        entry = EventsEntry(position=self._next(), stream=stream, batch=batch, route=route)
        return self._noted(lambda: self._state.take(entry))

    @property
    def ends(self) -> dict[str, EndTime]:
        return self._state.ends

    def finish(self, newest_us: Mapping[str, int], ends_us: Mapping[str, int]) -> list[RowBlock]:
        rows: list[RowBlock] = []
        for name, time_us in self._ticked(newest_us):
            rows += self.apply_record(name, Tick(time_us=time_us, cause="events"))
        if not self._is_open:
            rows += self._noted(lambda: self._state.finish(self._streams, ends_us), is_end=True)
        return rows

    def _next(self) -> str:
        self._position += 1
        return f"1-{self._position}"

    def _noted(self, action: Callable[[], Sequence[RowBlock]], *, is_end: bool = False) -> list[RowBlock]:
        begin_ns = time.thread_time_ns()
        blocks = [new_block for block in action() if (new_block := self._new_rows(block)) is not None]
        for block in blocks:
            self._hand_on(block)
        results = results_of(blocks)
        self._count(results, time.thread_time_ns() - begin_ns, is_end=is_end)
        return results

    def _new_rows(self, block: RowBlock) -> RowBlock | None:
        """Return the rows of a block that no earlier round has reported, or None if there are none.

        In a stream that the round reads again, rows of silent operators (``Repeated.silent``) are not new. Rows of
        another stream than the place's are always new.
        """
        if block.stream not in self._repeated or block.found.stream:
            return block
        if block.found.kind is REKEYED:
            return None
        reported_names = {"", *self._repeated[block.stream].silent}
        fresh = [row for row, name in enumerate(block.found.subjects.to_pylist()) if name not in reported_names]
        return replace(block, found=block.found.take(np.array(fresh, np.int64))) if fresh else None

    def _hand_on(self, block: RowBlock) -> None:
        if block.found.events is not None:
            into = block.found.subjects[0].as_py()
            if into in self._later:
                self.handed_on.setdefault(into, []).append(block.found.events)
        elif self._later and block.found.kind is DERIVED:
            for stream, events in self._listed(block).items():
                self.handed_on.setdefault(stream, []).append(EventBatch.from_events(events))

    def _listed(self, block: RowBlock) -> dict[str, list[Event]]:
        """Return the events among derived rows that only later rounds read, by stream, without the re-keyed events."""
        by_stream: dict[str, list[Event]] = {}
        for body in map(orjson.loads, block.found.bodies.to_pylist()):
            stream = body["into"]
            if not body["rekeyed"] and stream in self._later and stream not in self._own:
                names = {name: body[name] for name in ("id", "type", "key", "data")}
                by_stream.setdefault(stream, []).append(Event(**names, time_us=parse_time(body["time"])))
        return by_stream

    def _count(self, blocks: Sequence[RowBlock], busy_ns: int, *, is_end: bool) -> None:
        counts = self.counts
        counts.busy_ns += busy_ns
        for block in blocks:
            counts.rows[block.found.kind.name] += len(block)
            if block.found.kind.is_main:
                counts.patterns += block.found.counts_by(block.found.kind.subject)
            elif block.found.kind is DEAD_LETTER:
                counts.reasons += block.found.counts_by("code")
        measured = self._state.measures()
        round_streams = [name for name in self._streams if name in self._own and name in measured]
        numbers = {
            name: sum(measured[stream_name].get(name) or 0 for stream_name in round_streams) for name in _MEASURED
        }
        counts.measured = Counter(
            {
                f"{stream}/{name}": number
                for stream in round_streams
                for name, number in measured[stream].items()
                if number and name.startswith(_KEPT)
            }
        )
        posted = [name for name in round_streams if not self._variant.declarations[name].derived]
        counts.events = sum(measured[stream_name].get("events") or 0 for stream_name in posted)
        counts.peak_held, counts.released = numbers["peak_held"], numbers["released"]
        counts.peak_state_bytes = max(counts.peak_state_bytes, numbers["state_bytes"])
        if not is_end:
            counts.open_traces = numbers["open_traces"]


_KEPT = ("late_", *COUNTED)
_MEASURED = ("peak_held", "released", "state_bytes", "open_traces")


def _plain(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, Counter) else value
