"""PJoin, and XJoin as the same without punctuations: an exact join of two inputs without windows that spills to disk.

Source: section 3.2 of the specification of punctuation-aware joins. Components run between items, by the rows of a
registry, so that everything is the same in every run; there is no second thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.items import Cause, ItemColumns
from joins.kernels import buckets as kernel
from joins.kernels.buckets import Arriving, drop_resident, purge_parts
from joins.kernels.tables import DONE, NEVER
from joins.punctuations import Anything, OneOf, Pattern, is_empty, pattern_form, read_pattern, require_domain
from joins.spilling.closed_keys import ClosedKeys, hashes_of
from joins.spilling.files import BucketFiles, BucketRows
from joins.spilling.leftovers import BucketSide, leftover_pairs
from joins.spilling.memory import BucketMemory
from joins.spilling.monitor import UNLIMITED, Monitor, Thresholds
from joins.spilling.payloads import PayloadStore
from joins.spilling.punctuation_sets import PunctuationSets
from joins.spilling.registry import Component, Condition, Happening, Row, default_rows, require_usable

_FORMAT = 1
_KEPT_SHARE = 0.8  # of the threshold, by events in memory, once some went to disk
_HIGH_BITS = np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillingRules:
    """What a join that spills was declared to do; unlike thresholds it stays as it is.

    Attributes:
        buckets: Of each input, a power of two.
        purge: ``indexed``: a closing of single keys goes to their buckets. ``scan``: it compares the whole memory part.
        placement: ``scattered``: buckets are chosen by a hash of the key. ``modulo``: by its low bits.
        uses_punctuations: False: XJoin; punctuations only let time advance.
        carries_payloads: Whether events carry bytes, which go to disk with them and come back with results.
    """

    buckets: int = 64
    purge: Literal["indexed", "scan"] = "indexed"
    placement: Literal["scattered", "modulo"] = "scattered"
    uses_punctuations: bool = True
    carries_payloads: bool = False

    def __post_init__(self) -> None:
        if self.buckets < 1 or self.buckets & (self.buckets - 1):
            raise ValueError(f"the number of buckets is a power of two, not {self.buckets}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagated:
    """Keys of which no result comes any more.

    Attributes:
        item: The item that led to it, as its place among the items; -1 outside of a batch.
        time_us: When it was known.
        pattern: The keys; a range is given whole, even if single keys of it were given before.
        cause: ``REGULAR``: both inputs closed them; ``IMMEDIATE``: one did, and no event of it is left.
    """

    item: int
    time_us: int
    pattern: Pattern
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class SpilledColumns:
    """What some items led to.

    Attributes:
        members: int64 (results, 2): sequence numbers of a pair, which count the events of both inputs from 0.
        result_times_us: int64: the time of the later member.
        result_items: int32: the item that led to it; -1 outside of a batch.
        violations: int32: items that are events of keys that their own input had closed. They joined nothing.
        propagated: Keys of which no result comes any more.
        payloads: What both members of each pair carry; None where the join has no payloads.
    """

    members: NDArray[np.int64]
    result_times_us: NDArray[np.int64]
    result_items: NDArray[np.int32]
    violations: NDArray[np.int32]
    propagated: list[Propagated]
    payloads: tuple[pa.BinaryArray, pa.BinaryArray] | None


@dataclass(slots=True, kw_only=True)
class SpillingStats:
    """Counts since the join began; those marked are current.

    Attributes:
        events: Events taken in, those without a key included.
        in_memory: Events in memory (current).
        on_disk: Events on disk (current).
        comparisons: Keys compared while probing.
        scans: Events that purges compared.
        index_comparisons: Keys that were compared for the index.
        memory_results: Pairs that were in memory together.
        disk_results: Pairs of disk joins.
        on_the_fly: Events that were probed and not stored.
        buffered: Events that went to a purge buffer.
        purged: Stored events that a closed key made useless.
        violations: Events of keys that their own input had closed.
        nulls: Events without a key.
        duplicates: Punctuations whose keys the input had closed.
        empty: Punctuations without values.
        wildcards: Punctuations that finish an input.
        propagated: Punctuations reported.
        purges: Runs of the state purge.
        relocations: Buckets written to disk.
        disk_joins: Buckets that were covered.
    """

    events: int = 0
    in_memory: int = 0
    on_disk: int = 0
    comparisons: int = 0
    scans: int = 0
    index_comparisons: int = 0
    memory_results: int = 0
    disk_results: int = 0
    on_the_fly: int = 0
    buffered: int = 0
    purged: int = 0
    violations: int = 0
    nulls: int = 0
    duplicates: int = 0
    empty: int = 0
    wildcards: int = 0
    propagated: int = 0
    purges: int = 0
    relocations: int = 0
    disk_joins: int = 0


_COUNTED_BY_KERNELS = {
    "events": kernel.SEQUENCE,
    "in_memory": kernel.IN_MEMORY,
    "comparisons": kernel.COMPARISONS,
    "scans": kernel.SCANS,
    "memory_results": kernel.RESULTS,
    "on_the_fly": kernel.ON_THE_FLY,
    "buffered": kernel.BUFFERED,
    "purged": kernel.PURGED,
    "violations": kernel.VIOLATIONS,
    "nulls": kernel.NULLS,
}


class SpillingJoin:
    """A join of the events of two inputs by integer keys; what does not fit in memory is in files.

    A key that both inputs closed is forgotten once no event of it is left; closed again, it is as any other key.

    Args:
        folder: Of its files; the join's alone.
        rules: What stays as it is.
        thresholds: What can be changed (``tune``).
        rows: The registry; default: purge eagerly, propagate at each punctuation.

    Raises:
        JoinRefused: The registry is not usable.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rules: SpillingRules | None = None,
        thresholds: Thresholds | None = None,
        rows: Sequence[Row] | None = None,
    ) -> None:
        self._rules = rules or SpillingRules()
        self._thresholds = thresholds or Thresholds()
        uses = self._rules.uses_punctuations
        self._rows = tuple(default_rows("push" if uses else "none", purges=uses) if rows is None else rows)
        require_usable(self._rows)
        self._files = BucketFiles(folder)
        self._memory = BucketMemory(self._rules.buckets, is_tracking=uses)
        self._closed = ClosedKeys()
        self._sets = PunctuationSets()
        self._payloads = PayloadStore()
        self._monitor = Monitor()
        self._fresh: tuple[list[Pattern], list[Pattern]] = ([], [])  # punctuations not used for purging yet
        self._covered = np.zeros(self._rules.buckets, np.int64)  # sequence number of the last disk join
        self._uncovered = np.zeros(self._rules.buckets, np.int64)  # events flushed since
        self._counts = SpillingStats()
        self._propagated: list[Propagated] = []
        self._item = -1
        self._idle_us = 0

    @property
    def stats(self) -> SpillingStats:
        """Counts."""
        counts = asdict(self._counts)
        counts.update({name: self._memory.counter(place) for name, place in _COUNTED_BY_KERNELS.items()})
        counts["on_disk"] = int(self._memory.state.on_disk.sum())
        counts["index_comparisons"] = self._sets.compared
        return SpillingStats(**counts)

    @property
    def held(self) -> tuple[int, int]:
        """Events of each input in memory and on disk."""
        state = self._memory.state
        first, second = (state.parts["count"].sum(axis=(0, 2)) + state.on_disk.sum(axis=1)).tolist()
        return int(first), int(second)

    @property
    def written_bytes(self) -> int:
        """Bytes written to files."""
        return self._files.written_bytes

    def tune(self, thresholds: Thresholds | None = None, rows: Sequence[Row] | None = None) -> None:
        """Change thresholds or the registry, from the next item.

        Raises:
            JoinRefused: The registry is not usable; the old one stays.
        """
        if rows is not None:
            require_usable(rows)
            self._rows = tuple(rows)
        self._thresholds = thresholds or self._thresholds

    def push(
        self,
        items: ItemColumns,
        patterns: Sequence[Pattern] = (),
        payloads: Sequence[bytes | None] | None = None,
    ) -> SpilledColumns:
        """Take items in, in their order; any cut into calls gives the same.

        Args:
            items: Their keys are integers in two's complement; those of closings are places in ``patterns``.
            patterns: What closings close.
            payloads: What each item carries, if the join has payloads.

        Raises:
            PunctuationRefused: A pattern has values that are no integers; nothing was taken in.
            ValueError: The join has payloads and there are none, or the other way round.
        """
        for pattern in patterns:
            require_domain(pattern, "integer")
        if (payloads is None) == self._rules.carries_payloads:
            raise ValueError("payloads are given if and only if the join was declared to carry some")
        arriving = self._arriving(items)
        self._begin(len(items))
        if payloads is not None:
            self._payloads.add(self._memory.counter(kernel.SEQUENCE), items.kinds, payloads)
        item, status = 0, DONE
        while item < len(items) or status == kernel.STATE_FULL:
            limits = np.array([self._thresholds.memory_events, self._due(arriving, item)], np.int64)
            status, item = self._memory.join(arriving, self._closed.table, limits, item)
            self._item = item - (status == kernel.STATE_FULL)
            if status == kernel.STATE_FULL:
                self._relieve()
            elif status == kernel.TIME_DUE:
                self._advance(int(arriving.times[item]))
                self._happen(Happening.PROPAGATE_TIME_EXPIRED)
                self._monitor.propagated_us = self._now
            elif status == kernel.NOT_AN_EVENT:
                self._advance(int(arriving.times[item]))
                number = int(arriving.inputs[item])
                self._take_punctuation(number, patterns[int(arriving.keys[item])])
                item += 1
        return self._columns()

    def idle(self, idle_us: int) -> SpilledColumns:
        """Both inputs have nothing to deliver, and have not for so long: disk joins may run."""
        self._begin(0)
        self._idle_us = idle_us
        self._happen(Happening.STREAM_EMPTY)
        return self._columns()

    def propagate(self) -> SpilledColumns:
        """What reads the results asks for the punctuations that can be propagated."""
        self._begin(0)
        self._happen(Happening.PROPAGATE_REQUEST)
        return self._columns()

    def finish(self) -> SpilledColumns:
        """The inputs are finished: find what is left to find."""
        self._begin(0)
        for bucket in range(self._rules.buckets):
            self._join_disk(bucket)
        return self._columns()

    def close(self) -> None:
        """Remove the files."""
        self._files.clear()

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object, which names files and lengths, and arrays by name; the files are durable."""
        head = {
            "format": _FORMAT,
            "rules": asdict(self._rules),
            "thresholds": asdict(self._thresholds),
            "rows": [[row.happening, list(row.components), row.condition] for row in self._rows],
            "closed": [[pattern_form(pattern) for pattern in closed.patterns()] for closed in self._closed.sets],
            "sets": self._sets.dump(),
            "monitor": asdict(self._monitor),
            "fresh": [[pattern_form(pattern) for pattern in fresh] for fresh in self._fresh],
            "counts": asdict(self._counts),
            "files": self._files.save(),
        }
        arrays = {"covered": self._covered.tobytes(), "uncovered": self._uncovered.tobytes()}
        if self._rules.carries_payloads:
            self._payloads.prune(self._memory.sequences())
        return head, {**self._memory.dump(), **self._payloads.dump(), **arrays}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what ``dump`` gave of a join with the same rules and folder; its files are cut to what it names.

        Raises:
            JoinStateError: It is damaged, or of another form; or a file is.
        """
        if head.get("format") != _FORMAT or head.get("rules") != asdict(self._rules):
            raise JoinStateError(
                f"the saved join has the format {head.get('format')} and the rules {head.get('rules')}; this one reads "
                f"format {_FORMAT} and has {asdict(self._rules)}"
            )
        try:
            self._load(head, arrays)
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved join cannot be read: {error}") from error

    def release(self) -> None:
        """The last dump is safe: remove the files that only earlier ones name."""
        self._files.release()

    @property
    def _now(self) -> int:
        return self._memory.counter(kernel.NOW)

    def _load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        self._memory.load(arrays)
        self._payloads.load(arrays)
        self._covered = np.frombuffer(arrays["covered"], np.int64).copy()
        self._uncovered = np.frombuffer(arrays["uncovered"], np.int64).copy()
        self._thresholds = Thresholds(**head["thresholds"])
        self._rows = tuple(
            Row(Happening(happening), tuple(map(Component, components)), Condition(condition))
            for happening, components, condition in head["rows"]
        )
        self._closed = ClosedKeys([map(read_pattern, forms) for forms in head["closed"]])
        self._sets.load(head["sets"])
        self._monitor = Monitor(**head["monitor"])
        first, second = ([read_pattern(form) for form in forms] for forms in head["fresh"])
        self._fresh = (first, second)
        self._counts = SpillingStats(**head["counts"])
        self._files.restore([tuple(position) for position in head["files"]])

    def _arriving(self, items: ItemColumns) -> Arriving:
        keys = np.ascontiguousarray(items.keys).view(np.int64)
        hashes = hashes_of(keys)
        chosen = hashes >> _HIGH_BITS if self._rules.placement == "scattered" else keys.view(np.uint64)
        return Arriving(
            kinds=items.kinds,
            inputs=items.inputs,
            keys=keys,
            hashes=hashes,
            buckets=(chosen & np.uint64(self._rules.buckets - 1)).astype(np.int32),
            times=items.times_us,
        )

    def _due(self, arriving: Arriving, item: int) -> int:
        """The time at which a propagation is due; the first item begins the time."""
        if self._thresholds.propagate_us >= UNLIMITED:
            return UNLIMITED
        if self._monitor.propagated_us <= NEVER and item < len(arriving.times):
            self._monitor.propagated_us = int(arriving.times[item])
        return self._monitor.propagated_us + self._thresholds.propagate_us

    def _begin(self, items: int) -> None:
        self._memory.begin(items)
        self._propagated, self._item, self._idle_us = [], -1, 0

    def _advance(self, time_us: int) -> None:
        self._memory.state.counters[kernel.NOW] = max(self._now, time_us)

    def _columns(self) -> SpilledColumns:
        pairs = self._memory.pairs
        results, violations = (int(number) for number in pairs.filled)
        members = pairs.members[:results].copy()
        return SpilledColumns(
            members=members,
            payloads=self._carried(members),
            result_times_us=pairs.times[:results].copy(),
            result_items=pairs.items[:results].copy(),
            violations=pairs.violations[:violations].copy(),
            propagated=self._propagated,
        )

    def _carried(self, members: NDArray[np.int64]) -> tuple[pa.BinaryArray, pa.BinaryArray] | None:
        """The payloads of pairs; those of events that have left are forgotten then."""
        if not self._rules.carries_payloads:
            return None
        carried = self._payloads.of(members[:, 0]), self._payloads.of(members[:, 1])
        self._payloads.end()
        if self._payloads.is_crowded(self._memory.counter(kernel.IN_MEMORY)):
            self._payloads.prune(self._memory.sequences())
        return carried

    def _take_punctuation(self, number: int, pattern: Pattern) -> None:
        if is_empty(pattern):
            self._counts.empty += 1
            return
        self._counts.wildcards += isinstance(pattern, Anything)
        if not self._rules.uses_punctuations:
            return
        if isinstance(pattern, OneOf):  # what earlier ones named is theirs
            pattern = OneOf(frozenset(key for key in pattern.values if not self._closed.sets[number].covers(key)))
        if not self._closed.add(number, pattern):
            self._counts.duplicates += 1
            return
        self._sets.add(number, pattern)
        self._fresh[number].append(pattern)
        self._monitor.since_purge += 1
        self._monitor.since_propagation += 1
        self._happen(Happening.PUNCTUATION_READY)
        if self._monitor.since_purge >= self._thresholds.purge_punctuations:
            self._happen(Happening.PURGE_THRESHOLD_REACHED)
        if self._is_pair(number, pattern):
            self._happen(Happening.PAIR_READY)
        if self._monitor.since_propagation >= self._thresholds.propagate_punctuations:
            self._happen(Happening.PROPAGATE_COUNT_REACHED)

    def _is_pair(self, number: int, pattern: Pattern) -> bool:
        other = self._closed.sets[1 - number]
        return any(map(other.covers, pattern.values)) if isinstance(pattern, OneOf) else len(other) > 0

    def _relieve(self) -> None:
        """The state is full: let the registry free some, by purging first and by relocating what is left."""
        while self._memory.counter(kernel.IN_MEMORY) >= self._thresholds.memory_events:
            self._happen(Happening.STATE_FULL)

    def _happen(self, happening: Happening) -> None:
        """Run the components of the rows whose condition holds now; then those of counts that became zero."""
        rows = [row for row in self._rows if row.happening == happening and self._holds(row.condition)]
        for row in rows:
            for component in row.components:
                self._run(component)
        zeroed = self._memory.counter(kernel.ZEROED)
        if happening != Happening.COUNT_ZERO and zeroed > self._monitor.zeroed:
            self._monitor.zeroed = zeroed
            self._happen(Happening.COUNT_ZERO)

    def _holds(self, condition: Condition) -> bool:
        has_unused = any(self._fresh)
        if condition == Condition.ACTIVATED:
            return bool(len(self._activated()))
        return {
            Condition.ALWAYS: True,
            Condition.UNUSED_PUNCTUATIONS: has_unused,
            Condition.NO_UNUSED_PUNCTUATIONS: not has_unused,
        }[condition]

    def _run(self, component: Component) -> None:
        if component == Component.STATE_PURGE:
            self._purge()
        elif component == Component.STATE_RELOCATION:
            self._relocate()
        elif component == Component.DISK_JOIN:
            for bucket in self._activated().tolist():
                self._join_disk(bucket)
        elif component == Component.INDEX_BUILD:
            if self._sets.build_index(self._memory):
                self._memory.state.counters[kernel.ZEROED] += 1
        else:
            self._propagate()

    def _activated(self) -> NDArray[np.int64]:
        """Buckets that an idle join covers."""
        least = self._thresholds.activation_events
        if self._idle_us >= self._thresholds.activation_us:
            least = 0
        on_disk = self._memory.state.on_disk.sum(axis=0)
        is_behind = self._covered < self._memory.counter(kernel.SEQUENCE)
        return np.flatnonzero((on_disk > 0) & is_behind & (self._uncovered >= least))

    def _purge(self) -> None:
        """A punctuation of an input purges the other input only (erratum E17)."""
        self._counts.purges += 1
        for number in (0, 1):
            if fresh := self._fresh[1 - number]:
                purge_parts(self._memory.state, self._closed.table, number, self._buckets_of(fresh))
                fresh.clear()
        self._monitor.since_purge = 0

    def _buckets_of(self, patterns: Iterable[Pattern]) -> NDArray[np.int32]:
        """The buckets that may hold keys of patterns; with ``scan``, all."""
        keys: list[int] = []
        for pattern in patterns:
            if self._rules.purge == "scan" or not isinstance(pattern, OneOf):
                return np.arange(self._rules.buckets, dtype=np.int32)
            keys.extend(int(value) for value in pattern.values)
        mask = np.uint64(self._rules.buckets - 1)
        chosen = hashes_of(keys) >> _HIGH_BITS
        if self._rules.placement == "modulo":
            chosen = np.asarray(keys, np.int64).view(np.uint64)
        return np.unique(chosen & mask).astype(np.int32)

    def _relocate(self) -> None:
        while self._memory.counter(kernel.IN_MEMORY) > _KEPT_SHARE * self._thresholds.memory_events:
            number, bucket = self._memory.victim()
            clock = self._memory.counter(kernel.SEQUENCE)
            rows = self._events_in(number, bucket, clock)
            carried = self._payloads.of(rows["arrived"]) if self._rules.carries_payloads else None
            self._payloads.note_flushed(rows["arrived"])
            self._files.append((number, bucket), BucketRows.of(rows, carried))
            for part in (kernel.MEMORY, kernel.BUFFER):
                self._memory.clear(part, number, bucket, is_gone=False)
            self._memory.state.on_disk[number, bucket] += len(rows)
            self._uncovered[bucket] += len(rows)
            self._counts.relocations += 1

    def _events_in(self, number: int, bucket: int, flushed: int = UNLIMITED) -> NDArray[np.void]:
        """The events of an input's bucket that are in memory, or are flushed now."""
        parts = (kernel.MEMORY, kernel.BUFFER)
        return np.concatenate([self._memory.rows(part, number, bucket, flushed) for part in parts])

    def _join_disk(self, bucket: int) -> None:
        """Cover a bucket: emit its pairs that are left, empty its purge buffers, delete what is closed on disk."""
        on_disk, clock = self._memory.state.on_disk, self._memory.counter(kernel.SEQUENCE)
        if not on_disk[:, bucket].any():
            return
        stored = [self._files.read((number, bucket)) for number in (0, 1)]
        first, second = (BucketSide(stored[number].rows, self._events_in(number, bucket)) for number in (0, 1))
        found = leftover_pairs(first, second, int(self._covered[bucket]))
        self._memory.emit(found.members, found.times, self._item)
        self._counts.disk_results += len(found.times)
        self._counts.disk_joins += 1
        self._covered[bucket], self._uncovered[bucket] = clock, 0
        for number in (0, 1):
            if self._rules.carries_payloads:
                joined = stored[number].where(np.isin(stored[number].rows["arrived"], found.members[:, number]))
                self._payloads.note_read(joined.rows["arrived"], joined.payloads)
            self._memory.clear(kernel.BUFFER, number, bucket, is_gone=True)
            is_over = self._closed.covers(1 - number, stored[number].rows["key"])
            if is_over.any():
                gone = np.ascontiguousarray(stored[number].rows["hash"][is_over])
                drop_resident(self._memory.state, number, gone)
                self._files.replace((number, bucket), stored[number].where(~is_over))
                on_disk[number, bucket] -= np.count_nonzero(is_over)

    def _propagate(self) -> None:
        held_up = list(self._sets.held_up(self._memory, self._closed))
        if held_up:
            for bucket in self._buckets_of(held_up).tolist():
                self._join_disk(int(bucket))
        for pattern, cause in self._sets.take_ready(self._memory, self._closed):
            self._propagated.append(Propagated(item=self._item, time_us=self._now, pattern=pattern, cause=cause))
            self._counts.propagated += 1
        self._monitor.since_propagation = 0
        self._monitor.propagated_us = self._now
