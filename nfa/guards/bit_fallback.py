"""Bit tables, which replace monitor states in traces beyond the cap of monitor states.

A *row of liveness* says for each column (a state or trailing NOT of a pattern) whether it is alive. A *row monitor* is
a number for a guard and a row of liveness. Engines treat this number like the number of a monitor state. A trace under
bit tables has a slot with the names (types and symbols) of its events so far. Source: constraint-aware CEP, section
4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct, grown
from nfa.automata.guard_view import GuardView
from nfa.guards.bit_program import as_mask, as_words, bit_layout, bit_program, no_program
from nfa.guards.bit_traces import BitArena, RowIndex
from nfa.guards.protocol import TRACE_END, BitGuard, EventClass, MonitorState, Seen
from nfa.kernels import bit_tables as kernel
from nfa.kernels.bit_tables import ENTERED, NIL, NOTED, BitLinks, BitNotes, BitProgram, BitTraces
from streams import zeros_of


class RowTables(Protocol):
    """The tables of a guard to which ``BitFallback`` adds rows of liveness, monitors and lists of kills.

    A row of liveness has, for each column, the terms that can still complete, as bits. A column is a state of a
    pattern's automaton or a trailing NOT. A list of kills has the columns that die at an event.
    """

    @property
    def live(self) -> NDArray[np.uint32]:
        """The rows of liveness, shape (rows, columns), including spare capacity."""
        ...

    def row_number(self, row: NDArray[np.uint32]) -> int:
        """Return the index of a row of liveness. A new row is added."""
        ...

    def add_row_monitor(self, version: int, row: int) -> int:
        """Return a new monitor number for a guard and a row of liveness.

        ``version`` identifies the guard. ``row`` is the index of the row.
        """
        ...

    def kills_between(self, before: int, after: int) -> int:
        """Return the index of the list of columns that die when a trace moves from monitor ``before`` to ``after``."""
        ...


class BitFallback:
    """The bit tables of a lane (per-key matcher), and the traces that are under them.

    A trace is under bit tables once it would need more monitor states than its guard may have. Its monitor number then
    identifies only its guard and its row of liveness (see ``RowTables``). Arrays are replaced as they grow, so fetch
    them again before each call of a kernel.
    """

    def __init__(self) -> None:
        self._versions: list[int] = []
        self._guards: list[BitGuard] = []
        self._index = RowIndex()
        self._indexed: set[int] = set()
        self.arena = BitArena()
        self.program: BitProgram = no_program()
        self.notes = BitNotes(visit=np.zeros(0, np.int32), seen=np.zeros((0, 1), np.uint64))
        self._links = _no_links(0, 1)

    def compile(
        self,
        guards: Mapping[int, BitGuard],
        layout: tuple[Sequence[GuardView | None], NDArray[np.int32], NDArray[np.int32]],
        classes: Sequence[EventClass],
        *,
        when_broken: Mapping[int, int],
        is_pruning: Mapping[int, bool],
    ) -> None:
        """Compile the bit tables again, because patterns, guards or event types were added or removed.

        All monitors of rows of liveness are dropped, so call ``restart`` afterwards. Each mapping has an entry for each
        guard version.

        Args:
            guards: The guards with bit tables, including all versions in use.
            layout: Views, state range and negation range, as in ``GuardLayout``.
            classes: The event classes by number.
            when_broken: The monitor number after a violation, or ``IGNORED``.
            is_pruning: Whether the guard prunes.
        """
        old = self._versions
        self._versions = [*(version for version in old if version in guards), *sorted(guards.keys() - set(old))]
        place_of = {version: place for place, version in enumerate(self._versions)}
        self._guards = [guards[version] for version in self._versions]
        prunes = [is_pruning[version] for version in self._versions]
        self.program = bit_program(self._guards, *bit_layout(*layout), is_pruning=prunes) if guards else no_program()
        _, slots = self.arena.slots()
        places = self.arena.arrays.guard
        places[slots] = [place_of[old[place]] for place in places[slots].tolist()]
        self.arena.fit(self.program)
        self._links = _no_links(len(self._guards), self.program.start.shape[2])._replace(
            when_broken=np.array([when_broken[version] for version in self._versions], np.int32)
        )
        self._index, self._indexed = RowIndex(), set()
        for number, event_class in enumerate(classes):
            self.add_class(number, event_class)

    def restart(self, tables: RowTables) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """After ``compile``, create new monitors for all traces that use bit tables.

        Returns the numbers of these traces, and the monitor number of each.
        """
        traces, slots = self.arena.slots()
        monitors = [
            self._monitor(int(self.arena.arrays.guard[slot]), self.arena.live_row(self.program, int(slot)), tables)
            for slot in slots
        ]
        return traces, np.array(monitors, np.int32)

    @property
    def entered(self) -> int:
        """Number of traces so far that have changed from monitor states to bit tables."""
        return int(self.arena.arrays.counters[ENTERED])

    def versions_in_use(self) -> frozenset[int]:
        """Return the versions of the guards that traces under bit tables follow."""
        _, slots = self.arena.slots()
        return frozenset(self._versions[place] for place in distinct(self.arena.arrays.guard[slots]).tolist())

    def takes(self, version: int) -> bool:
        return version in self._versions

    def open_from(self, monitor: int, version: int, state: MonitorState) -> None:
        """Prepare the tables so that traces can change from a monitor state to bit tables.

        A trace changes when the guard already has its maximum number of monitor states, and the next state would be a
        new one. Under bit tables, the trace starts with the names that the monitor state has seen.
        """
        place = self._versions.index(version)
        self._reach_monitor(monitor)
        self._links.guard_of[monitor] = place
        mask = self._guards[place].mask(state.seen)
        self._links.seen[monitor] = as_words(mask, self.program.start.shape[2])

    def enter(self, trace: int, version: int, seen: Seen, tables: RowTables) -> int:
        """Put a trace from a snapshot under bit tables, and return its monitor number.

        ``seen`` has the names (types and symbols) of the events of the trace so far.
        """
        self.arena.reach(trace + 1)
        place = self._versions.index(version)
        words = as_words(self._guards[place].mask(seen), self.program.start.shape[2])
        slot = self.arena.enter(self.program, trace, place, words)
        return self._monitor(place, self.arena.live_row(self.program, slot), tables)

    def add_class(self, number: int, event_class: EventClass) -> None:
        names_by_class, words = self._links.shown, self.program.start.shape[2]
        if number >= names_by_class.shape[1]:
            wider = np.zeros((len(names_by_class), 2 * number + 8, words), np.uint64)
            wider[:, : names_by_class.shape[1]] = names_by_class
            self._links = self._links._replace(shown=wider)
        for place, guard in enumerate(self._guards):
            is_event = event_class.type != TRACE_END
            self._links.shown[place, number] = as_words(guard.names_in(event_class) if is_event else 0, words)

    def begin(self, rows: int, traces: int) -> None:
        """Prepare a batch of ``rows`` rows.

        Notes of the previous batch are dropped, and arrays are enlarged as needed.
        """
        self.arena.reach(traces)
        self.arena.arrays.counters[NOTED] = 0
        words = self.program.start.shape[2]
        if self._guards and (rows > len(self.notes.visit) or self.notes.seen.shape[1] != words):
            self.notes = BitNotes(visit=np.zeros(rows, np.int32), seen=np.zeros((rows, words), np.uint64))

    @property
    def links(self) -> BitLinks:
        return self._links._replace(rows=self._index.rows, pairs=self._index.pairs)

    @property
    def traces(self) -> BitTraces:
        return self.arena.arrays

    def resolve(self, status: int, tables: RowTables) -> None:
        """Supply the data that ``advance_trace`` lacked when it stopped with ``status``. The call can then be repeated.

        The data are free slots, the monitor of a row of liveness, or a list of kills.
        """
        traces = self.arena.arrays
        counters = traces.counters
        if status == kernel.SLOTS_FULL:
            self.arena.make_room()
        elif status == kernel.MISSING_ROW:
            self._monitor(int(counters[kernel.STOP_GUARD]), traces.row, tables)
        else:
            before, after = int(counters[kernel.STOP_BEFORE]), int(counters[kernel.STOP_AFTER])
            self._index.add_pair(before, after, tables.kills_between(before, after))

    def state_of(self, trace: int) -> tuple[int, MonitorState] | None:
        """Return the guard version and the monitor state of a trace, or None if the trace is not under bit tables.

        The monitor state has only the names seen in the trace. The states of the guard's rules are not known.
        """
        slot = int(self.arena.arrays.slot_of[trace]) if trace < len(self.arena.arrays.slot_of) else NIL
        return None if slot == NIL else self._named(int(self.arena.arrays.guard[slot]), self.arena.seen(slot))

    def noted(self, before: NDArray[np.int32]) -> dict[int, tuple[int, MonitorState]]:
        """Return, for each noted visit (relevant row), the guard version and the monitor state before the visit.

        The keys are indices of visits in the batch. The kernel notes visits that kill a column or break a constraint.
        ``before`` has the monitor numbers before all visits of the batch.
        """
        count = int(self.arena.arrays.counters[NOTED])
        visits = self.notes.visit[:count].tolist()
        guards = self._links.guard_of
        return {
            visit: self._named(int(guards[before[visit]]), self.notes.seen[place]) for place, visit in enumerate(visits)
        }

    def after(self, version: int, state: MonitorState, event: EventClass) -> MonitorState:
        """Return the monitor state after an event: ``state`` with the names that apply to the event added."""
        guard = self._guards[self._versions.index(version)]
        return MonitorState(seen=state.seen | guard.names(guard.names_in(event)))

    def _named(self, place: int, seen: NDArray[np.uint64]) -> tuple[int, MonitorState]:
        return self._versions[place], MonitorState(seen=self._guards[place].names(as_mask(seen)))

    def _monitor(self, place: int, row: NDArray[np.uint32], tables: RowTables) -> int:
        number = tables.row_number(row)
        if number not in self._indexed:
            self._indexed.add(number)
            self._index.add_row(tables.live, number)
        monitors = self._links.monitor_of
        if number >= monitors.shape[1]:
            wider = np.full((len(monitors), 2 * number + 8), NIL, np.int32)
            wider[:, : monitors.shape[1]] = monitors
            self._links = self._links._replace(monitor_of=wider)
        if self._links.monitor_of[place, number] == NIL:
            monitor = tables.add_row_monitor(self._versions[place], number)
            self._reach_monitor(monitor)
            self._links.guard_of[monitor] = place
            self._links.is_bits[monitor] = True
            self._links.monitor_of[place, number] = monitor
        return int(self._links.monitor_of[place, number])

    def _reach_monitor(self, monitor: int) -> None:
        links = self._links
        if monitor >= len(links.guard_of):
            size = 2 * monitor + 8
            self._links = links._replace(
                guard_of=grown(links.guard_of, size, NIL),
                is_bits=grown(links.is_bits, size),
                seen=grown(links.seen, size),
            )


def _no_links(guards: int, words: int) -> BitLinks:
    index = RowIndex()
    shapes: dict[str, Any] = {
        "shown": (guards, 0, words),
        "seen": (0, words),
        "monitor_of": (guards, 0),
        "when_broken": guards,
    }
    return zeros_of(BitLinks, 0, **shapes, rows=index.rows, pairs=index.pairs)
