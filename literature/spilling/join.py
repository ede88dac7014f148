"""PJoin, and XJoin as PJoin without punctuations: an exact join of two inputs without windows that spills to disk.

Source: section 3.2 of the specification of punctuation-aware joins. Components run between items, by the rows of a
registry, so that every run is the same; there is no second thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.items import ItemColumns
from joins.kernels.tables import DONE, NEVER
from literature.kernels import buckets as kernel
from literature.kernels.buckets import Arriving, purge_parts
from literature.punctuations import Anything, Hint, OneOf, Pattern, is_empty, pattern_form, read_pattern, require_domain
from literature.spilling.closed_keys import ClosedKeys, hashes_of
from literature.spilling.configuring import Configurator, Settings
from literature.spilling.disk import DiskBuckets
from literature.spilling.files import DiskTraffic
from literature.spilling.hints import Hints, inside_of
from literature.spilling.memory import BucketMemory
from literature.spilling.monitor import UNLIMITED, Monitor, Thresholds
from literature.spilling.payloads import PayloadStore
from literature.spilling.punctuation_sets import PunctuationSets
from literature.spilling.registry import Component, Condition, Happening, Row, default_rows, require_usable
from literature.spilling.results import Propagated, SpilledColumns, SpillingRules, SpillingStats

_FORMAT = 2
_KEPT_SHARE = 0.8  # of the threshold: events left in memory after a relocation
_HIGH_BITS = np.uint64(32)
_Choice = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]  # which events of an input, by their keys


class SpillingJoin:
    """A join of the events of two inputs by integer keys; events that do not fit in memory are in files.

    A key that both inputs closed is forgotten once no event of it is left; it can be closed again like any other key.

    Args:
        folder: Folder of the files, of this join alone.
        rules: Rules that stay as declared.
        thresholds: Thresholds that ``tune`` can change.
        rows: The registry; default: purge eagerly, propagate at each punctuation.
        configurator: Changes thresholds and the registry while the join runs; None: only ``tune`` does.

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
        configurator: Configurator | None = None,
    ) -> None:
        self._rules = rules or SpillingRules()
        self._configurator = configurator
        self._thresholds = thresholds or Thresholds()
        uses = self._rules.uses_punctuations
        self._rows = tuple(default_rows("push" if uses else "none", purges=uses) if rows is None else rows)
        require_usable(self._rows)
        self._memory = BucketMemory(self._rules.buckets, is_tracking=uses)
        self._closed = ClosedKeys()
        self._sets = PunctuationSets()
        self._payloads = PayloadStore()
        carries = self._rules.carries_payloads
        self._disk = DiskBuckets(folder, self._rules.buckets, self._memory, self._payloads if carries else None)
        self._hints = Hints()
        self._read_back: set[int] = set()  # sequence numbers of events moved back to memory that joined nothing since
        self._monitor = Monitor()
        self._fresh: tuple[list[Pattern], list[Pattern]] = ([], [])  # punctuations not yet used for purging
        self._counts = SpillingStats()
        self._propagated: list[Propagated] = []
        self._item = -1
        self._idle_us = 0
        self._arriving: Arriving | None = None  # the batch, and how many of its items scopes of hints counted
        self._scoped = 0

    @property
    def stats(self) -> SpillingStats:
        """Counts since the join began."""
        return SpillingStats.of(self._counts, self._memory, self._sets.compared)

    @property
    def held(self) -> tuple[int, int]:
        """The number of events of each input, in memory and on disk."""
        state = self._memory.state
        first, second = (state.parts["count"].sum(axis=(0, 2)) + state.on_disk.sum(axis=1)).tolist()
        return int(first), int(second)

    @property
    def rules(self) -> SpillingRules:
        """The declared rules."""
        return self._rules

    @property
    def written_bytes(self) -> int:
        """The number of bytes written to files."""
        return self.traffic.written_bytes

    @property
    def traffic(self) -> DiskTraffic:
        """Counts of writes to files and reads from them, in this process."""
        return self._disk.files.traffic

    def droppable(self, number: int, pattern: Pattern) -> NDArray[np.int64]:
        """Keys, within a pattern, of an input's events in memory that have no pairs left with events on disk."""
        keys = [self._memory.rows(kernel.MEMORY, number, bucket)["key"] for bucket in self._memory.unindebted(number)]
        together = np.concatenate([np.zeros(0, np.int64), *keys])
        return together[inside_of(pattern, together)]

    def drop(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget the droppable events with some keys: later events do not join them. Returns the key of each."""
        dropped = [self._memory.drop(number, bucket, keys) for bucket in self._memory.unindebted(number)]
        return np.concatenate([np.zeros(0, np.int64), *dropped])

    def may_hold(self, number: int, pattern: Pattern) -> bool:
        """Whether events of an input with keys of a pattern are stored; for events on disk, judged by fences."""
        for bucket in range(self._rules.buckets):
            if inside_of(pattern, self._disk.events_in(number, bucket)["key"]).any():
                return True
        return self._disk.may_hold(number, pattern)

    def has_closed(self, number: int, pattern: Pattern) -> bool:
        """Whether an input has closed all keys of a pattern."""
        return self._closed.sets[number].covers_all(pattern)

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
        """Process items in order; results do not depend on how items are cut into calls.

        Args:
            items: Items with integer keys in two's complement; the key of a closing is a place in ``patterns``.
            patterns: Patterns of the closings.
            payloads: Payload of each item, if the join carries payloads.

        Raises:
            PunctuationRefused: A pattern has values that are no integers; no item was processed.
            ValueError: The join carries payloads and none are given, or the other way round.
        """
        for pattern in patterns:
            require_domain(pattern, "integer")
        if (payloads is None) == self._rules.carries_payloads:
            raise ValueError("payloads are given if and only if the join was declared to carry some")
        arriving = self._hashed(items)
        self._begin(len(items))
        self._arriving = arriving
        if payloads is not None:
            self._payloads.add(self._memory.counter(kernel.SEQUENCE), items.kinds, payloads)
        first = 0
        while first < len(items):
            last = len(items)
            if self._configurator is not None:
                last = min(last, first + self._configurator.items_left)
                self._take(arriving.until(last), patterns, first)
                if self._configurator.take(last - first):
                    self._configure(self._configurator)
            else:
                self._take(arriving, patterns, first)
            first = last
        self._pass_scopes(len(items))
        return self._columns()

    def announce(self, number: int, hint: Hint, time_us: int) -> SpilledColumns:
        """Process a hint of an input about its next events; a hint moves events and changes no result.

        Raises:
            PunctuationRefused: The pattern of the hint has values that are no integers.
        """
        require_domain(hint.pattern, "integer")
        self._begin(0)
        self._advance(time_us)
        self._hints.pass_time(self._now)
        self._hints.add(number, hint, self._now, self._memory.counter(kernel.SEQUENCE))
        self._happen(Happening.ANNOUNCED)
        return self._columns()

    def idle(self, idle_us: int) -> SpilledColumns:
        """Run disk joins that are due, as both inputs have been idle for ``idle_us``."""
        self._begin(0)
        self._idle_us = idle_us
        self._happen(Happening.STREAM_EMPTY)
        return self._columns()

    def propagate(self) -> SpilledColumns:
        """Propagate the punctuations that can be, on request of the consumer."""
        self._begin(0)
        self._happen(Happening.PROPAGATE_REQUEST)
        return self._columns()

    def finish(self) -> SpilledColumns:
        """Find all remaining pairs, as both inputs are finished."""
        self._begin(0)
        for bucket in range(self._rules.buckets):
            self._join_disk(bucket)
        return self._columns()

    def close(self) -> None:
        """Remove all files of the join."""
        self._disk.files.clear()

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object, which names files and lengths, and arrays by name; makes the files durable."""
        files, arrays = self._disk.dump()
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
            "files": files,
            "hints": self._hints.dump(),
            "configurator": self._configurator.dump() if self._configurator else None,
        }
        if self._rules.carries_payloads:
            self._payloads.prune(self._memory.sequences())
        return head, {**self._memory.dump(), **self._payloads.dump(), **arrays}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for a join with the same rules and folder; other files are removed.

        Raises:
            JoinStateError: The state or a file is damaged, or the state has another form.
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
        """Remove files named only by states before the last dump, which is safe."""
        self._disk.files.release()

    @property
    def _now(self) -> int:
        return self._memory.counter(kernel.NOW)

    def _load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        self._memory.load(arrays)
        self._payloads.load(arrays)
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
        self._hints.load(head.get("hints", ()))
        if self._configurator is not None and head.get("configurator"):
            self._configurator.load(head["configurator"])
        self._disk.load(head["files"], arrays)

    def _take(self, arriving: Arriving, patterns: Sequence[Pattern], item: int) -> None:
        """Process the items of a batch from a place on."""
        status = DONE
        while item < len(arriving.times) or status == kernel.STATE_FULL:
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

    def _configure(self, configurator: Configurator) -> None:
        """Let rules change thresholds and the registry, between two items."""
        current = Settings(thresholds=self._thresholds, rows=self._rows)
        settings = configurator.decide(self._rules, self.stats, self._monitor.live, current)
        self.tune(settings.thresholds, settings.rows)

    def _hashed(self, items: ItemColumns) -> Arriving:
        keys = np.ascontiguousarray(items.keys).view(np.int64)
        hashes = hashes_of(keys)
        bucket_bits = hashes >> _HIGH_BITS if self._rules.placement == "scattered" else keys.view(np.uint64)
        return Arriving(
            kinds=items.kinds,
            inputs=items.inputs,
            keys=keys,
            hashes=hashes,
            buckets=(bucket_bits & np.uint64(self._rules.buckets - 1)).astype(np.int32),
            times=items.times_us,
        )

    def _due(self, arriving: Arriving, item: int) -> int:
        """The time at which a propagation is due, counted from the first item."""
        if self._thresholds.propagate_us >= UNLIMITED:
            return UNLIMITED
        if self._monitor.propagated_us <= NEVER and item < len(arriving.times):
            self._monitor.propagated_us = int(arriving.times[item])
        return self._monitor.propagated_us + self._thresholds.propagate_us

    def _begin(self, items: int) -> None:
        self._memory.begin(items)
        self._propagated, self._item, self._idle_us = [], -1, 0
        self._arriving, self._scoped = None, 0

    def _advance(self, time_us: int) -> None:
        self._memory.state.counters[kernel.NOW] = max(self._now, time_us)

    def _columns(self) -> SpilledColumns:
        pairs = self._memory.pairs
        results, violations = (int(number) for number in pairs.filled)
        members = pairs.members[:results].copy()
        self._note_hits(members)
        return SpilledColumns(
            members=members,
            payloads=self._carried(members),
            result_times_us=pairs.times[:results].copy(),
            result_items=pairs.items[:results].copy(),
            violations=pairs.violations[:violations].copy(),
            propagated=self._propagated,
        )

    def _carried(self, members: NDArray[np.int64]) -> tuple[pa.BinaryArray, pa.BinaryArray] | None:
        """The payloads of pairs; afterwards, payloads of events that left memory are forgotten."""
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
        if isinstance(pattern, OneOf):  # keys that earlier punctuations closed stay with them
            pattern = OneOf(frozenset(key for key in pattern.values if not self._closed.sets[number].covers(key)))
        if not self._closed.add(number, pattern):
            self._counts.duplicates += 1
            return
        self._counts.punctuations += 1
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
        """Free a full state by the rows of the registry: first purge, then relocate events."""
        while self._memory.counter(kernel.IN_MEMORY) >= self._thresholds.memory_events:
            self._happen(Happening.STATE_FULL)

    def _happen(self, happening: Happening) -> None:
        """Run the components of the rows whose condition holds; then the rows for counts that became zero."""
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
        elif component == Component.READ_BACK:
            self._bring_back()
        elif component == Component.INDEX_BUILD:
            if self._sets.build_index(self._memory):
                self._memory.state.counters[kernel.ZEROED] += 1
        else:
            self._propagate()

    def _activated(self) -> NDArray[np.int64]:
        """The buckets that an idle join covers."""
        is_long = self._idle_us >= self._thresholds.activation_us
        return self._disk.activated(0 if is_long else self._thresholds.activation_events)

    def _purge(self) -> None:
        """Purge each input by the new punctuations of the other one only (erratum E17)."""
        self._counts.purges += 1
        for number in (0, 1):
            if fresh := self._fresh[1 - number]:
                purge_parts(self._memory.state, self._closed.table, number, self._buckets_of(fresh))
                fresh.clear()
        self._monitor.since_purge, self._monitor.live = 0, self._memory.counter(kernel.IN_MEMORY)

    def _buckets_of(self, patterns: Iterable[Pattern]) -> NDArray[np.int32]:
        """The buckets that may have keys of some patterns; with ``scan``, all buckets."""
        keys: list[int] = []
        for pattern in patterns:
            if self._rules.purge == "scan" or not isinstance(pattern, OneOf):
                return np.arange(self._rules.buckets, dtype=np.int32)
            keys.extend(int(value) for value in pattern.values)
        mask = np.uint64(self._rules.buckets - 1)
        bucket_bits = hashes_of(keys) >> _HIGH_BITS
        if self._rules.placement == "modulo":
            bucket_bits = np.asarray(keys, np.int64).view(np.uint64)
        return np.unique(bucket_bits & mask).astype(np.int32)

    def _relocate(self) -> None:
        """Write events to disk until few enough are in memory: first events that are not hot, then largest buckets."""
        kept_events = int(_KEPT_SHARE * self._thresholds.memory_events)
        self._pass_scopes(self._item + 1)
        self._make_room(kept_events)
        while self._memory.counter(kernel.IN_MEMORY) > kept_events:
            number, bucket = self._memory.victim()
            rows = self._disk.events_in(number, bucket)
            self._disk.flush(number, bucket, rows, self._thresholds.block_events)
            for part in (kernel.MEMORY, kernel.BUFFER):
                self._memory.clear(part, number, bucket, is_gone=False)
            self._counts.relocations += 1

    def _make_room(self, kept_events: int) -> None:
        """Write cold events, then other events that are not hot, to disk until ``kept_events`` are left in memory."""
        if self._hints:
            self._relocate_chosen(kept_events, self._is_cold)
            self._relocate_chosen(kept_events, self._is_not_hot)

    def _is_cold(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._hints.cold(number, keys, self._thresholds.scope_events)

    def _is_not_hot(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return ~self._hints.hot(number, keys, self._thresholds.scope_events)

    def _relocate_chosen(self, kept_events: int, choose: _Choice) -> None:
        """Write chosen events to disk until ``kept_events`` are left, from buckets with most chosen events first."""
        sizes = []
        for number in (0, 1):
            for bucket in range(self._rules.buckets):
                keys = self._memory.rows(kernel.MEMORY, number, bucket)["key"]
                sizes.append((int(np.count_nonzero(choose(number, keys))), number, bucket))
        for size, number, bucket in sorted(sizes, reverse=True):
            if size == 0 or self._memory.counter(kernel.IN_MEMORY) <= kept_events:
                return
            rows = self._memory.rows(kernel.MEMORY, number, bucket)
            is_chosen = choose(number, rows["key"])
            self._disk.flush(number, bucket, rows[is_chosen], self._thresholds.block_events)
            self._memory.clear(kernel.MEMORY, number, bucket, is_gone=False)
            self._memory.put(number, bucket, rows[~is_chosen])
            self._counts.relocations += 1

    def _bring_back(self) -> None:
        """Move hot events back into memory before they are needed; cold events make room."""
        least = self._thresholds.scope_events
        hot = self._disk.hot_buckets(self._hints, least)
        if not hot:
            return
        kept_events = int(_KEPT_SHARE * self._thresholds.memory_events)
        for bucket in hot:
            self._join_disk(bucket)
        self._make_room(kept_events - sum(hot.values()))
        for bucket in hot:
            room = kept_events - self._memory.counter(kernel.IN_MEMORY)
            if room > 0:
                back = self._disk.read_back(bucket, self._hints, least, room).tolist()
                self._read_back.update(back)
                self.traffic.read_back += len(back)

    def _pass_scopes(self, item: int) -> None:
        """Count the items of the batch before a place, and drop hints whose scopes have ended."""
        if self._hints and self._arriving is not None:
            self._hints.pass_items(self._arriving, self._scoped, item, self._now)
        self._scoped = item

    def _note_hits(self, members: NDArray[np.int64]) -> None:
        if self._read_back and len(members):
            hits = self._read_back.intersection(members.ravel().tolist())
            self.traffic.hits += len(hits)
            self._read_back -= hits
        if not self._hints:
            self._read_back.clear()

    def _join_disk(self, bucket: int) -> None:
        """Cover a bucket by a disk join."""
        pairs = self._disk.cover(bucket, self._closed, self._item)
        if pairs is None:
            return
        self._counts.disk_results += len(pairs.times)
        self._counts.disk_joins += 1
        if self._hints:
            later = pairs.members.max(axis=1, initial=-1)
            self.traffic.stalls += int(np.count_nonzero(later >= self._hints.begun))

    def _propagate(self) -> None:
        self._counts.propagations += 1
        held_up = list(self._sets.held_up(self._memory, self._closed))
        if held_up:
            for bucket in self._buckets_of(held_up).tolist():
                self._join_disk(int(bucket))
        for pattern, cause in self._sets.take_ready(self._memory, self._closed):
            self._propagated.append(Propagated(item=self._item, time_us=self._now, pattern=pattern, cause=cause))
            self._counts.propagated += 1
        self._monitor.since_propagation = 0
        self._monitor.propagated_us = self._now
