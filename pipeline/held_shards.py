"""The states of shards in one Python process of Spark, which keeps them from one micro-batch to the next.

A shard's state is a function of its log up to a position, so the state need not travel with the micro-batch. A process
that has the state at the position after which the micro-batch begins continues from this state. The sources of a state,
cheapest first:

1.  the state that this process retained when it last matched the shard;
2.  the *handed over* state: a file on this machine, which the process that last matched the shard wrote without waiting
for the disk;
3.  the newest *snapshot* at or before that position. The later entries of the log up to that position are matched
again, and their rows are discarded: the log is the change log of the state.

A part of a state may be in files (``pipeline.spilled``). If a file that a state names is missing or damaged, the state
is rebuilt from an older one, or from the whole log. If no older state exists and the log is incomplete, the operator
that needs the file is suspended, and the shard continues.

A snapshot is written once the entries matched since the last snapshot have at least ``snapshot_bytes``, and at least
the size of the state. Reading these entries again would then cost about as much as reading the state. So snapshots, and
recovery, cost at most a constant factor, however many traces are open.

Continuous tasks copy a state between two steps, and a thread computes the checksum and writes the file. If the process
crashes before the file is complete, the next process starts from an older state.
"""

from __future__ import annotations

import struct
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import structlog

from pipeline.measures import Costs, Work, stats_row
from pipeline.quarantine import Quarantine
from pipeline.records import ShardRecords
from pipeline.snapshots import FolderSnapshots, SnapshotIndex, latest, missing_snapshot, open_snapshots
from pipeline.sources.log_reading import START, beginnings, connect, counts, last_position, read_entries, written_up_to
from pipeline.sources.options import EventLogOptions
from pipeline.spilled import SpilledStates
from pipeline.stops import PlacedStops, is_before
from shards import KINDS, Kind, OldestFirst, Policy, RowBlock, SavedStateError, ShardState, StoredEntry, seal
from streams import Ask, StateLost, log_key, position_order
from streams.tables import TableFiles, Tables, fetching

_MOST_ENDINGS = 1_000  # per micro-batch; only the newest are listed, and in a backlog each event may cause one
_ENTRY_BYTES = 200
_SHARED_S = 0.5  # seconds of matching before a handover is due
_SHARED_TIMES = 16  # this multiple of the last handover's time is added to ``_SHARED_S``
_UNSAVED = struct.Struct("<q")  # header of a handed over state: bytes matched since the last snapshot

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOptions:
    """Options for ``HeldShards``: where the states of shards are found and stored.

    Attributes:
        handover: Folder on each machine for states that one process hands over to the next. None: no handover.
        kinds: The kinds of operators that shards run. All processes must have the same kinds.
        policy: Chooses the next shard of a task, and the next place within a step.
    """

    log: EventLogOptions
    handover: Path | None
    kinds: tuple[Kind, ...] = KINDS
    policy: Policy = field(default_factory=OldestFirst)


@dataclass(slots=True)
class _Held:
    """A shard's state in this process, and the cost of matching again the entries that no saved state covers.

    ``unsaved_bytes`` counts since the last snapshot, and ``unshared_s`` since the last handover. ``size_bytes`` is the
    state's size when it was last written or read, or 0 if unknown. ``shared_s`` is the time that the last handover
    took.
    """

    state: ShardState
    unsaved_bytes: int = 0
    unshared_s: float = 0.0
    shared_s: float = 0.0
    size_bytes: int = 0
    costs: Costs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of a shard's state at ``position``, to be stored.

    Attributes:
        after: Position after which the step began that led to this state.
        parts: The state, as ``ShardState.dumped`` returns it.
        unsaved_bytes: As in ``_Held``.
        is_saved: Whether the copy is stored as a snapshot, too.
    """

    shard: int
    after: str
    position: str
    parts: Sequence[bytes]
    unsaved_bytes: int
    is_saved: bool


class HeldShards:
    """The states of shards that this process keeps in memory, from one micro-batch or step to the next.

    Args:
        options: Where states are stored, and how shards run.
        is_aside: Whether another thread stores states. Otherwise they are stored before ``step`` returns.
    """

    def __init__(self, options: HeldOptions, *, is_aside: bool = False) -> None:
        self._options = options.log
        self._policy = options.policy
        self._spilled = SpilledStates(options.log, options.kinds)
        self._server = connect(options.log)
        self._records = ShardRecords(self._server, options.log.results)
        self._quarantine = Quarantine(self._server, self._records)
        self._stops = PlacedStops(self._server, self._records)
        self._snapshots = open_snapshots(options.log.snapshots, self._server, options.log.generation)
        self._index = SnapshotIndex(self._server, options.log.generation)
        self._handover = None if options.handover is None else FolderSnapshots(options.handover, is_durable=False)
        server = weakref.proxy(self._server)  # a state, which refers to the tables, would keep the connection open
        self._tables = TableFiles(fetching(lambda key, place: cast("bytes | None", server.lindex(key, place))))
        self._held: dict[int, _Held] = {}
        self._begun: set[int] = set()  # shards whose micro-batch has begun and is not finished
        self._finished: dict[int, str] = {}  # by shard: the end of the last micro-batch that this process has finished
        self._work: dict[int, Work] = {}  # by shard: the work since its last report
        self._incomplete: set[int] = set()  # shards whose state has lost a file
        self._aside = ThreadPoolExecutor(1, "storing") if is_aside else None
        self._storing: Future[None] | None = None

    def advance(
        self, shard: int, after: str, entries: Sequence[StoredEntry], stops: int | None = None
    ) -> list[RowBlock]:
        """Match a shard's entries as ``step`` does. Return the rows, followed by the row of ``report``."""
        return [*self.step(shard, after, entries, stops), self.report(shard)]

    def step(self, shard: int, after: str, entries: Sequence[StoredEntry], stops: int | None = None) -> list[RowBlock]:
        """Match one shard's entries after the position ``after``. Return the rows, and keep the new state.

        ``stops`` is the number of the shard's recorded stops, or None if unknown (``PlacedStops.place``).
        """
        start_s = time.perf_counter()
        continues = shard not in self._begun and self._finished.get(shard) == after
        if shard in self._begun:  # an attempt failed, so the state may be half changed
            self._held.pop(shard, None)
        self._begun.add(shard)
        is_suspect = self._quarantine.begin(shard, after, continues=continues)
        self._stops.place(shard, after, stops)
        if (held := self._held.get(shard)) is not None and not self._is_usable(shard, held.state, START, after):
            del self._held[shard]
        try:
            self._held_at(shard, after)
            loaded_s = time.perf_counter()
            rows = self._matched(shard, after, entries, is_suspect=is_suspect)
        except StateLost as error:
            log.warning("file-of-state-gone", shard=shard, after=after, reason=error.message)
            self._held.pop(shard, None)
            self._incomplete.add(shard)
            self._held_at(shard, after)
            loaded_s = time.perf_counter()
            rows = self._matched(shard, after, entries, is_suspect=is_suspect)
            self._incomplete.discard(shard)
        matched_s = time.perf_counter()
        self._keep(shard, after, _cost(entries), matched_s - loaded_s)
        self._quarantine.done(shard)
        self._begun.discard(shard)
        self._finished[shard] = self._held[shard].state.position
        self._work.setdefault(shard, Work(after)).add(entries, (start_s, loaded_s, matched_s, time.perf_counter()))
        return rows

    def report(self, shard: int) -> RowBlock:
        """Return a row of the kind ``stats`` about the steps of a shard since its last report, at least one step.

        A report costs about as much as matching an event. So a caller with small steps requests a report about once a
        second, and a last one when it stops.
        """
        held = self._held[shard]
        costs = None if held.costs is None else held.costs.due()
        return stats_row(held.state, self._work.pop(shard), held.size_bytes, costs)

    def answer(self, shard: int, after: str, stream: str, question: Ask) -> dict[str, Any]:
        """Answer a question from a shard's state at the position ``after``. See ``ShardState.answer``."""
        return self._held_at(shard, after).state.answer(stream, question)

    def load(self, shard: int, epoch: int | None = None) -> None:
        """Load a shard's state at the position up to which its results are written.

        ``epoch`` is the epoch of the lease under which this process advances the shard, or None without leases. Raise
        ``LogDamaged`` if snapshots or entries that the state needs are gone.
        """
        self._records.lease(shard, epoch)
        written = written_up_to(self._server, self._options, shard)
        position = max(written, beginnings(self._server, self._options)[shard], key=position_order)
        if last_position(self._server, log_key(shard), position) != position:
            return  # the query will refuse this with the reason
        try:
            self._held_at(shard, position)
        except StateLost as error:
            log.warning("file-of-state-gone", shard=shard, after=position, reason=error.message)
            self._held.pop(shard, None)
            self._incomplete.add(shard)
            self._held_at(shard, position)
            self._incomplete.discard(shard)

    def forget(self, shard: int) -> None:
        """Drop a shard's state, because another process advances the shard from now on."""
        for by_shard in (self._held, self._finished, self._work):
            by_shard.pop(shard, None)
        self._begun.discard(shard)
        self._quarantine.forget(shard)

    def settle(self) -> None:
        """Wait until all states are stored. If a write failed, the next step raises its error."""
        wait(() if self._storing is None else (self._storing,))

    def close(self) -> None:
        """Wait until all states are stored, and close the connection."""
        self.settle()
        self._server.close()

    def state_at(self, shard: int, position: str) -> ShardState:
        """Return a shard's state at a position, for the caller to change. This process does not keep the state."""
        state = self._held_at(shard, position).state
        del self._held[shard]
        return state

    def _matched(self, shard: int, after: str, entries: Sequence[StoredEntry], *, is_suspect: bool) -> list[RowBlock]:
        if is_suspect:
            return self._match_one_by_one(shard, after, entries, is_watched=True)
        return self._match_all(shard, after, entries)

    def _match_all(self, shard: int, after: str, entries: Sequence[StoredEntry]) -> list[RowBlock]:
        state, screened = self._held_at(shard, after).state, self._screened(shard, entries)
        try:
            return state.advance(screened)
        except (MemoryError, StateLost):
            raise
        # house: allow broad-except: whatever it is, the entry that causes it is set aside, with the reason
        except Exception:
            log.exception("entries-break-the-matcher", shard=shard, after=after)
            del self._held[shard]
            return self._match_one_by_one(shard, after, entries, is_watched=False)

    def _match_one_by_one(
        self, shard: int, after: str, entries: Sequence[StoredEntry], *, is_watched: bool
    ) -> list[RowBlock]:
        """Match entries one by one, and quarantine each entry on which matching fails.

        With ``is_watched``, also quarantine entries that ended the process in earlier attempts. ``after`` is the
        position after which the entries begin.
        """
        done: list[StoredEntry] = []
        rows: list[RowBlock] = []
        for entry in entries:
            if is_watched and self._quarantine.watch(shard, entry):
                self._quarantine.set_aside(shard, after, entry, "the process that matched it died, again and again")
            rows += self._match_one(shard, after, done, entry)
            done += self._screened(shard, [entry])
            self._quarantine.unwatch(shard, entry)
        return rows

    def _match_one(self, shard: int, after: str, done: Sequence[StoredEntry], entry: StoredEntry) -> list[RowBlock]:
        """Match ``entry``. If this fails, quarantine the entry, and rebuild the state.

        ``after`` is the position after which the micro-batch begins. ``done`` are its entries before ``entry``.
        """
        held = self._held.get(shard) or self._held_at(shard, after)
        screened = self._screened(shard, [entry])
        try:
            return held.state.advance(screened)
        except (MemoryError, StateLost):
            raise
        # house: allow broad-except: whatever it is, the entry is set aside, and its dead letter has the reason
        except Exception as error:
            self._quarantine.set_aside(shard, after, entry, f"matching it raised {type(error).__name__}: {error}")
            del self._held[shard]
            rebuilt = self._held_at(shard, after).state
            rebuilt.advance(done)
            return rebuilt.advance(self._screened(shard, [entry]))

    def _screened(self, shard: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
        return self._stops.noted(shard, self._quarantine.screened(shard, entries))

    def _held_at(self, shard: int, after: str) -> _Held:
        held = self._held.get(shard)
        if held is None or held.state.position != after:
            held = self._held[shard] = self._rebuilt(shard, after)
            held.state.limit_endings(_MOST_ENDINGS)
            held.state.schedule(self._policy)
            held.costs = Costs(held.state)
        return held

    def _rebuilt(self, shard: int, position: str) -> _Held:
        """Return a state at a position: take the nearest earlier state, and match the later entries of the log."""
        self._records.read(shard)
        saved = self._index.latest(shard, position)
        held = self._held.pop(shard, None)
        if held is not None and not self._is_usable(shard, held.state, saved or START, position):
            held = None
        nearest = saved or START if held is None else held.state.position
        held = self._handed_over(shard, nearest, position) or held
        if held is None:
            held = self._begun_at(shard, saved)
        start_s = time.perf_counter()
        for page in read_entries(self._server, shard, held.state.position, position):
            held.unsaved_bytes += _cost(page)
            held.state.replay(self._screened(shard, page))
        held.unshared_s += time.perf_counter() - start_s
        return held

    def _is_usable(self, shard: int, state: ShardState, first: str, last: str) -> bool:
        if not _is_between(first, state.position, last):
            return False
        with suppress(StateLost):
            self._stops.check(shard, state)
            return True
        return False

    def _handed_over(self, shard: int, after: str, until: str) -> _Held | None:
        """Return the newest handed-over state after one position, and up to another. None if it is missing or damaged.

        A state is not used if the log lacks the entry at its position, because Redis has then lost data.
        """
        handed_over = () if self._handover is None else self._handover.positions(shard)
        usable = [
            position for position in handed_over if is_before(after, position) and self._is_logged(shard, position)
        ]
        newest = latest(usable, until)
        if self._handover is None or newest is None:
            return None
        body = self._handover.read(shard, newest)
        if body is None or len(body) < _UNSAVED.size:
            return None
        try:
            state = self._loaded(shard, body[_UNSAVED.size :])
        except (SavedStateError, StateLost) as error:
            log.warning("handed-over-state-damaged", shard=shard, position=newest, reason=error.message)
            return None
        (unsaved_bytes,) = _UNSAVED.unpack_from(body)
        return _Held(state, unsaved_bytes=unsaved_bytes, size_bytes=len(body))

    def _empty(self, shard: int) -> ShardState:
        state = ShardState(shard, kinds=self._spilled.kinds(shard))
        state.use_tables(Tables(self._tables))
        return state

    def _is_logged(self, shard: int, position: str) -> bool:
        return bool(self._server.xrange(log_key(shard), min=position, max=position))

    def _begun_at(self, shard: int, saved: str | None) -> _Held:
        """Return the state from which entries are matched again: the snapshot at ``saved``, or an empty state.

        If a file that the snapshot names is gone, an older state is used (``_older``). If there is no older state, the
        operators that need the file are suspended. Raise ``LogDamaged`` if the snapshot is missing.
        """
        if saved is None and not self._options.generation:
            return _Held(self._empty(shard))
        position = saved or START
        body = None if saved is None else self._snapshots.read(shard, position)
        if body is None:
            raise missing_snapshot(self._index, self._options.snapshots, shard, position)
        try:
            return _Held(self._loaded(shard, body, is_verified=True), size_bytes=len(body))
        except StateLost as error:
            log.warning("file-of-snapshot-gone", shard=shard, position=position, reason=error.message)
            return self._older(shard, position) or self._without_files(shard, body)

    def _older(self, shard: int, position: str) -> _Held | None:
        """Return the state of the newest snapshot before a position. Snapshots that lack a file are ignored.

        Without such a snapshot, return the empty state if the log is complete, and otherwise None.
        """
        for older in reversed(self._index.positions(shard)):
            body = self._snapshots.read(shard, older) if position_order(older) < position_order(position) else None
            if body is not None:
                with suppress(StateLost):
                    return _Held(self._loaded(shard, body, is_verified=True), size_bytes=len(body))
        added, present = counts(self._server, log_key(shard))
        if self._options.generation or added != present:
            return None
        return _Held(self._empty(shard))

    def _without_files(self, shard: int, body: bytes) -> _Held:
        log.error("operators-stop-as-files-are-gone", shard=shard)
        kinds = self._spilled.kinds(shard, may_be_lost=True)
        return _Held(ShardState.load(body, kinds, self._tables), size_bytes=len(body))

    def _loaded(self, shard: int, body: bytes, *, is_verified: bool = False) -> ShardState:
        """Load a saved state. Raise ``StateLost`` if the state lacks a stop that should be in force.

        With ``is_verified``, or if the shard has lost a file before, also raise ``StateLost`` if a file is missing or
        damaged.
        """
        state = ShardState.load(body, self._spilled.kinds(shard), self._tables)
        self._stops.check(shard, state)
        if is_verified or shard in self._incomplete:
            state.verify()
        return state

    def _keep(self, shard: int, after: str, grown: int, spent_s: float) -> None:
        """Hand the state over to the shard's next process if a handover is due, and save a snapshot if due.

        A handover is due after half a second of matching, plus a multiple of the time that the last handover took. A
        snapshot is due when ``unsaved_bytes`` has reached both the size of the state and ``snapshot_bytes``.
        """
        held = self._held[shard]
        held.unsaved_bytes += grown
        held.unshared_s += spent_s
        if self._storing is not None:
            if not self._storing.done():
                return
            self._storing.result()
        is_shared = self._handover is not None and (
            not held.size_bytes or held.unshared_s >= _SHARED_S + _SHARED_TIMES * held.shared_s
        )
        if is_shared or self._is_unsaved(held):
            start_s = time.perf_counter()
            parts = held.state.dumped()
            held.size_bytes = sum(map(len, parts))
            is_saved = self._is_unsaved(held)
            held.unshared_s, held.unsaved_bytes = 0.0, 0 if is_saved else held.unsaved_bytes
            copy = _Copy(
                shard=shard,
                after=after,
                position=held.state.position,
                parts=parts,
                unsaved_bytes=held.unsaved_bytes,
                is_saved=is_saved,
            )
            self._store(held, copy, start_s)

    def _is_unsaved(self, held: _Held) -> bool:
        return held.unsaved_bytes >= max(self._options.snapshot_bytes, held.size_bytes)

    def _store(self, held: _Held, copy: _Copy, start_s: float) -> None:
        """Store a copy of a state, and remove files of the shard that no stored state needs.

        Another thread writes the copy, unless the shard has files.
        """
        shard, names = copy.shard, held.state.files
        self._spilled.keep(shard, copy.position, names, is_durable=copy.is_saved)
        has_files = bool(names) or self._spilled.has_files(shard)
        if self._aside is not None and not has_files:
            self._storing = self._aside.submit(self._write, held, copy, start_s)
            return
        self._write(held, copy, start_s)
        if has_files:
            handed_over = () if self._handover is None else self._handover.positions(shard)
            self._spilled.sweep(shard, {*self._index.positions(shard), *handed_over}, names)

    def _write(self, held: _Held, copy: _Copy, start_s: float) -> None:
        """Write a snapshot if it is due, and hand the state over to the processes of this machine.

        A retry of the step needs the newest state from before the step, so this state is kept. Another process may own
        the shard by now, and may remove the files that this process writes. A missing file is therefore no error.
        """
        shard, parts = copy.shard, seal(copy.parts)
        if copy.is_saved:
            self._snapshots.write(shard, copy.position, *parts)
            self._index.enter(shard, copy.position, sum(map(len, parts)), self._options.snapshots)
        if self._handover is not None:
            before = latest(self._handover.positions(shard), copy.after)
            with suppress(FileNotFoundError):
                self._handover.write(shard, copy.position, _UNSAVED.pack(copy.unsaved_bytes), *parts)
                self._handover.keep_only(
                    shard, tuple(position for position in (before, copy.position) if position is not None)
                )
        held.shared_s = time.perf_counter() - start_s


def _is_between(first: str, position: str, last: str) -> bool:
    return position_order(first) <= position_order(position) <= position_order(last)


def _cost(entries: Sequence[StoredEntry]) -> int:
    """Return the cost of matching entries again, in bytes. Small entries cost more than their size."""
    return sum(len(entry.body) + _ENTRY_BYTES for entry in entries)


@lru_cache(maxsize=1)
def held_shards(options: HeldOptions) -> HeldShards:
    """Return this process's ``HeldShards``. If ``options`` differ from those of the last call, states are dropped."""
    return HeldShards(options)
