"""The state of a lane between batches, with saving and loading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.errors import StateFormatError
from nfa.guards.protocol import Guard, MonitorState
from nfa.guards.tables import GuardTables, Interned
from nfa.kernels.traces import RESERVED, UNGUARDED
from nfa.lanes.shadow import ShadowLedger
from nfa.results.batch import MatcherStats
from nfa.results.event_store import EventStore, read_events, saved_events
from nfa.results.open_traces import OpenTraces
from nfa.runs.engine import RunEngine
from nfa.shared.engine import SharedEngine
from nfa.traces.finer_keys import FinerTraces
from nfa.traces.idle_traces import IdleTraces
from nfa.traces.table import Moves, TraceTable, checked
from streams import Ties

Arrays: TypeAlias = dict[str, NDArray[Any]]
SavedMonitor: TypeAlias = tuple[int, list[str], list[str] | None, list[int]]
"""Guard version, and the parts of a ``MonitorState``."""

_COUNTS = (
    "timeouts",
    "run_matches",
    "run_endings",
    "lost_matches",
    "lost_runs",
    "corrections",
    "released",
    "shadow_lost",
    "ends",
)
_INDEXED_BYTES, _LISTED_BYTES = 16, 28
_NO_PAIRS = np.zeros((0, 2), np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOptions:
    """Options that all lanes of a matcher share.

    With ``may_be_guarded``, traces are tracked from their first event, because a guard may be set later. With
    ``lists_open_traces``, the keys and times of open traces are kept. A trace ends after ``idle_timeout_us`` without an
    event. With None, there is no timeout.
    """

    end_events: frozenset[str]
    match_limit: int
    ties: Ties
    may_be_guarded: bool
    lists_open_traces: bool
    idle_timeout_us: int | None = None

    @property
    def is_simultaneous(self) -> bool:
        return self.ties == "simultaneous"


@dataclass(kw_only=True)
class SavedMembers:
    """The saved values of a lane, except arrays.

    Monitor states are saved as values, because loading assigns new numbers to them.

    Attributes:
        monitors: Monitor states in the order of their numbers, which start at ``RESERVED``.
        bit_monitors: States of traces under bit tables. Their numbers follow those of ``monitors``.
        shadow_monitors: States in the shadow ledger, in the order of their numbers there.
    """

    sequence: int
    counts: dict[str, int]
    guard_version: int | None
    monitors: list[SavedMonitor]
    bit_monitors: list[SavedMonitor]
    shadow_monitors: list[SavedMonitor]


@dataclass(frozen=True, slots=True)
class SavedLane:
    """A lane's state as plain values: JSON values as in ``SavedMembers``, and one-dimensional arrays by name.

    Each part of the state owns the arrays whose names begin with its prefix.
    """

    members: Mapping[str, Any]
    arrays: Arrays


@dataclass(slots=True, kw_only=True)
class LaneState:
    """The state that a lane keeps from batch to batch.

    Attributes:
        guard_version: The guard of new traces, if any.
        shadow: Monitor transitions under guards in shadow mode.
        idle: The time of each trace's newest event, or None without an idle timeout.
        open: Keys and times of the open traces, or None if the lane does not list them.
        sequence: Number of rows so far, which is the sequence number of the next row.
        home: The state of the lane whose monitors the traces follow, or None if the traces have their own monitors.
        moves: The monitor transitions at the events of the latest batch, for lanes that follow these monitors.
        entering: Loaded traces that must be put under bit tables again, with their monitor states.
    """

    table: TraceTable
    guards: GuardTables
    guard_version: int | None = None
    shadow: ShadowLedger
    shared: SharedEngine
    runs: RunEngine
    events: EventStore
    idle: IdleTraces | None
    finer: FinerTraces
    open: OpenTraces | None
    sequence: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    home: LaneState | None = None
    moves: Moves | None = None
    entering: list[tuple[int, Interned]] = field(default_factory=list)

    @classmethod
    def empty(cls, options: LaneOptions, *, is_finer: bool = False, home: LaneState | None = None) -> LaneState:
        """Return the state before the first event. With ``is_finer``, it is for traces of finer keys."""
        timeout_us = options.idle_timeout_us
        return cls(
            table=TraceTable(is_simultaneous=options.is_simultaneous),
            guards=GuardTables({}),
            shadow=ShadowLedger(),
            shared=SharedEngine(),
            runs=RunEngine(ties=options.ties, match_limit=options.match_limit),
            events=EventStore(),
            idle=None if timeout_us is None else IdleTraces(timeout_us),
            finer=FinerTraces(),
            open=OpenTraces() if options.lists_open_traces and not is_finer else None,
            home=home,
        )

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        states = (self.guards.states[monitor] for monitor in distinct(self.table.monitors()).tolist())
        versions = {state[0] for state in states if state is not None}
        versions |= {version for _, (version, _) in self.entering}
        versions |= self.shadow.versions() | self.guards.bits.versions_in_use()
        return frozenset(versions if self.guard_version is None else versions | {self.guard_version})

    def start_of_trace(self) -> int:
        version = self.guard_version
        return UNGUARDED if version is None else self.guards.intern(version, self.guards.guards[version].start)

    def forget_unused_guards(self) -> None:
        """Drop the monitor states that no trace can have any more, and the guard versions that no trace follows."""
        if self.home is not None:  # a following lane reads the monitor states of its home lane with each batch
            self.guards = GuardTables(self.home.guards.guards)
            return
        old = self.guards
        fresh = GuardTables({version: old.guards[version] for version in self.guard_versions_in_use}, old.bits)
        fresh.builds, fresh.refused = old.builds, old.refused
        numbers = np.arange(len(old.states), dtype=np.int32)
        for number in distinct(self.table.monitors()).tolist():
            if (state := old.states[number]) is not None:
                numbers[number] = fresh.intern(*state)
        self.table.renumber_monitors(numbers)
        self.guards = fresh

    def forget_closed_traces(self) -> None:
        """Release the numbers of ended traces. From time to time, remove open traces without bound events."""
        self.table.release_closed(self.guards)
        if self.table.is_worth_sweeping:
            capacity = self.table.capacity
            held = self.shared.held_traces(capacity) | self.runs.held_traces(capacity)
            self.table.forget_idle(held, None if self.home else int(self.guards.tables.start[0]))

    def held_sequences(self) -> NDArray[np.int64]:
        """Return the sequence numbers of bound events, sorted."""
        return distinct(np.concatenate([self.shared.held_sequences(), self.runs.held_sequences()]))

    def id_of(self, sequence: int) -> str:
        stored = self.events.events
        row = int(stored.find(np.array([sequence], np.int64))[0])
        return str(stored.columns.column("id")[row].as_py())

    @property
    def _trace_bytes(self) -> int:
        """The memory of an open trace in bytes, without the text of its key."""
        return _INDEXED_BYTES if self.open is None else _INDEXED_BYTES + _LISTED_BYTES

    def forget_counts(self) -> None:
        self.counts = {
            **dict.fromkeys(_COUNTS, 0),
            "ends": self.sequence,
        }  # so that earlier rows do not count as events
        self.shared.counts = (0, 0, 0)
        self.table.forget_counts()
        self.restart_peak()

    def restart_peak(self) -> None:
        self.shared.restart_peak()
        self.runs.restart_peak()

    def stats(self) -> MatcherStats:
        shared, traces, counts = self.shared.stats, self.table.counters, self.counts
        return MatcherStats(
            events=self.sequence - counts["ends"],
            matches=shared.matches + counts["run_matches"],
            timeouts=counts["timeouts"],
            endings=shared.endings + counts["run_endings"],
            corrections=counts["corrections"],
            released=counts["released"],
            shadow_lost=counts["shadow_lost"],
            ignored_violations=traces["ignored"],
            deviations=traces["deviations"],
            overflow=shared.overflow + counts["lost_matches"],
            lost_runs=counts["lost_runs"],
            out_of_order=traces["out_of_order"],
            open_traces=traces["open"],
            held=shared.held + self.runs.held,
            peak_held=shared.peak_held + self.runs.peak_held,
            nodes=shared.nodes + self.runs.runs,
            state_bytes=shared.state_bytes + self.runs.used_bytes + self._trace_bytes * traces["open"],
            guard_steps=traces["guard_steps"],
            guard_builds=self.guards.builds,
            guard_refusals=self.guards.refused,
            under_bits=self.guards.bits.entered,
        )

    def dump(self) -> SavedLane:
        """Return the state as plain values for a snapshot. Traces, nodes, runs and events get dense new numbers."""
        self.events.compact(self.held_sequences())
        traces, numbers = self.table.dump_arrays()
        shadow, shadow_states = self.shadow.dump_arrays(numbers)
        stable, monitors, bit_monitors = self._stable_monitors(traces["trace_monitor"])
        arrays: Arrays = {**traces, **shadow, **self.shared.dump_arrays(numbers), **self.runs.dump_arrays(numbers)}
        arrays["trace_monitor"] = stable
        arrays["finer_pairs"] = self.finer.dump()
        if self.idle is not None:
            arrays.update(self.idle.dump_arrays())
        if self.open is not None:
            arrays.update(self.open.dump_arrays(numbers))
        arrays.update(saved_events(self.events.events))
        members = SavedMembers(
            sequence=self.sequence,
            counts=self.counts,
            guard_version=self.guard_version,
            monitors=[_saved(monitor) for monitor in monitors],
            bit_monitors=[_saved(monitor) for monitor in bit_monitors],
            shadow_monitors=[_saved(monitor) for monitor in shadow_states],
        )
        return SavedLane(vars(members), arrays)

    def load_traces(self, saved: SavedLane, guards: Mapping[int, Guard]) -> None:
        """Restore the open traces of ``dump`` into empty state.

        Afterwards, compile the patterns, and then call ``load_matches``. Compiling needs the guards of the traces.
        ``guards`` has, by version, at least the guards that the traces follow. A missing guard, or a value that does
        not come from ``dump``, raises StateFormatError, ValueError, TypeError, KeyError or IndexError.
        """
        members, arrays = SavedMembers(**saved.members), saved.arrays
        monitors = [_restored(saved_monitor) for saved_monitor in members.monitors]
        under_bits = [_restored(saved_monitor) for saved_monitor in members.bit_monitors]
        watched = [_restored(saved_monitor) for saved_monitor in members.shadow_monitors]
        needed = {version for version, _ in [*monitors, *under_bits, *watched]} | ({members.guard_version} - {None})
        if missing := sorted(str(version) for version in needed - guards.keys()):
            raise StateFormatError(f"saved state follows guard versions {', '.join(missing)}, which are not available")
        counts = members.counts
        counts.setdefault("ends", 0)  # missing in version 3
        if members.sequence < 0:
            raise StateFormatError(f"saved state: its sequence is {members.sequence}, below 0")
        if counts.keys() != self.counts.keys():
            raise StateFormatError(
                f"saved state: its counts are {', '.join(counts)}, instead of {', '.join(self.counts)}"
            )
        self.guards = GuardTables({version: guards[version] for version in needed if version is not None})
        self.guard_version, self.sequence, self.counts = members.guard_version, members.sequence, counts
        for version, state in monitors:
            self.guards.intern(version, state)
        numbers = arrays["trace_monitor"].astype(np.int64)
        first_under_bits = RESERVED + len(monitors)
        places = np.flatnonzero(numbers >= first_under_bits).tolist()
        self.entering = [(place, under_bits[int(numbers[place]) - first_under_bits]) for place in places]
        plain = np.where(numbers >= first_under_bits, UNGUARDED, numbers).astype(np.int32)
        self.table.load_arrays({**arrays, "trace_monitor": plain}, monitors=first_under_bits)
        self.shadow.load_arrays(arrays, watched, traces=self.table.counters["open"])

    def load_matches(self, saved: SavedLane) -> None:
        """Restore the partial matches and events of ``dump``. The engines must have the same patterns as before."""
        arrays, traces = saved.arrays, self.table.counters["open"]
        self._enter_bits()
        self.shared.load_arrays(arrays, traces=traces, sequences=self.sequence)
        self.runs.load_arrays(arrays, traces=traces, sequences=self.sequence)
        has_finer = "finer_pairs" in arrays  # missing in version 3
        self.finer.load(checked(arrays, "finer_pairs", np.uint64).reshape(-1, 2) if has_finer else _NO_PAIRS)
        if self.idle is not None:
            self.idle.load_arrays(arrays)
        if self.open is not None:
            self.open.load_arrays(arrays, traces=traces)
        self.events = EventStore(read_events(arrays))
        if not np.isin(self.held_sequences(), self.events.events.sequences).all():
            raise StateFormatError("saved state: bound events are not listed")

    def _enter_bits(self) -> None:
        bits = self.guards.bits
        monitors = [
            bits.enter(trace, version, state.seen, self.guards) if bits.takes(version) else UNGUARDED
            for trace, (version, state) in self.entering
        ]
        traces = np.array([trace for trace, _ in self.entering], np.int32)
        self.table.set_monitors(traces, np.array(monitors, np.int32))
        self.entering = []

    def _stable_monitors(
        self, monitors: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], Sequence[Interned], Sequence[Interned]]:
        """Return new, dense numbers for the monitor states of open traces, and two lists of the states in this order.

        The first list has the states of the guards' tables, whose numbers start at ``RESERVED``. The second list has
        the states of traces under bit tables, whose numbers follow.
        """
        used = [number for number in distinct(monitors).tolist() if number >= RESERVED]
        states = {number: interned for number in used if (interned := self.guards.states[number]) is not None}
        dense = {number: place for place, number in enumerate(states, RESERVED)}
        lookup = np.array([dense.get(number, number) for number in range(max([*used, RESERVED - 1]) + 1)], np.int32)
        numbers = lookup[monitors]
        under_bits: dict[Interned, int] = {}
        for place, trace in enumerate(self.table.numbers().tolist() if self.guards.bits.arena.used else ()):
            interned = self.guards.bits.state_of(trace)
            if interned is not None:
                numbers[place] = under_bits.setdefault(interned, RESERVED + len(states) + len(under_bits))
        return numbers, list(states.values()), list(under_bits)


def _saved(interned: Interned) -> SavedMonitor:
    version, state = interned
    settled = None if state.settled is None else sorted(state.settled)
    return version, sorted(state.seen), settled, list(state.places)


def _restored(saved: SavedMonitor) -> Interned:
    version, seen, settled, places = saved
    state = MonitorState(
        seen=frozenset(seen), settled=None if settled is None else frozenset(settled), places=tuple(places)
    )
    if not isinstance(version, int) or not all(isinstance(place, int) for place in places):
        raise ValueError(f"a monitor state is {saved!r}")
    return version, state
