"""Tables of a guard's answers, for the kernels. Each question is asked once, and the answer is stored.

The tables are the monitor automaton of C-CEP (constraint-aware CEP, section 4.2). Each pair of a guard version and a
state has a number. The row of a monitor state is built when an event first reaches the state. The kernels never read
constraints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct_rows, grown
from nfa.automata.guard_view import GuardView
from nfa.guards.bit_fallback import BitFallback
from nfa.guards.protocol import OTHER, TRACE_END, EventClass, Guard, MonitorState, OnViolation, Prune
from nfa.guards.rows import EVERY_TERM, KillLists, LiveRows, Row
from nfa.kernels.bit_tables import Fallback
from nfa.kernels.traces import (
    ALL_LIVE,
    BITS,
    BY_QUERY,
    DEVIANT,
    EVICT,
    FAILED,
    IGNORED,
    NIL,
    NONE_LIVE,
    NOTHING_ENDS,
    RESERVED,
    SHADOW,
    UNGUARDED,
    Guards,
)

Interned: TypeAlias = tuple[int, MonitorState]

_WHEN_BROKEN = {
    OnViolation.REPORT: DEVIANT,
    OnViolation.FAIL_TRACE: FAILED,
    OnViolation.IGNORE: IGNORED,
}
_POLICIES = {Prune.STATE: EVICT, Prune.QUERY: BY_QUERY, Prune.SHADOW: SHADOW, Prune.OFF: EVICT}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLayout:
    """The meaning of the columns of ``GuardTables``.

    If ties are simultaneous, every event class has two columns. The second column is for events that are later than all
    earlier events of their trace.

    Attributes:
        types: Event types by code. One more code, ``len(types)``, represents every other type.
        views: For each pattern, the view that translates a guard's answers, or None if guards ignore the pattern.
        state_range: (patterns + 1,): the first column of each pattern's states in ``Guards.live``, then the end.
        negation_range: (patterns + 1,): the first column of each pattern's trailing NOTs, then the end. These columns
            follow the columns of all states.
        start: Number of the monitor state of a new trace.
    """

    types: Sequence[str]
    views: Sequence[GuardView | None]
    state_range: NDArray[np.int32]
    negation_range: NDArray[np.int32]
    start: int
    is_simultaneous: bool = False


class GuardTables:
    """The numbered monitor states of all guard versions, and the guards' answers for each state.

    Numbers below ``RESERVED`` are fixed, and are not states of a guard. If a trace needs more monitor states than its
    guard's policy allows, it continues under the bit tables ``bits``. If the guard has no bit tables, the trace becomes
    unguarded and is counted in ``refused``.
    """

    def __init__(self, guards: Mapping[int, Guard], bits: BitFallback | None = None) -> None:
        self.guards = dict(guards)
        self.states: list[Interned | None] = [None] * RESERVED
        self.bits = BitFallback() if bits is None else bits
        self.refused = 0
        self.builds = 0
        self._sizes: Counter[int] = Counter()
        self._numbers: dict[Interned, int] = {}
        self._layout: GuardLayout | None = None
        self._tables: Guards | None = None
        self._classes: list[EventClass] = []
        self._class_numbers: dict[EventClass, int] = {}
        self._rows = LiveRows(0)
        self._kills = KillLists()

    @property
    def types(self) -> frozenset[str]:
        return frozenset().union(*(guard.types for guard in self.guards.values()))

    @property
    def tables(self) -> Guards:
        """The guards' answers so far, as tables for kernels. The arrays are replaced as they grow."""
        if self._tables is None:
            raise RuntimeError("guard tables are read before compile()")
        return self._tables

    @property
    def fallback(self) -> Fallback:
        return Fallback(self.bits.program, self.bits.traces, self.bits.links, self.bits.notes)

    @property
    def live(self) -> NDArray[np.uint32]:
        return self._rows.array

    def intern(self, version: int, state: MonitorState) -> int:
        """Return the number of a monitor state. A new state is added.

        The caller ensures that the guard does not get more monitor states than its policy allows.
        """
        interned = (version, state)
        if interned not in self._numbers:
            self._sizes[version] += 1
            self._numbers[interned] = len(self.states)
            self.states.append(interned)
            if self._tables is not None:
                self._reach(self._numbers[interned])
                self._fill(self._numbers[interned])
        return self._numbers[interned]

    def class_number(self, event_class: EventClass) -> int:
        """Return the number of an event class. For a class without symbols, this is the code of its type."""
        number = self._class_numbers.get(event_class)
        if number is None:
            number = self._class_numbers[event_class] = len(self._classes)
            self._classes.append(event_class)
            self._widen()
            self.bits.add_class(number, event_class)
        return number

    def compile(self, layout: GuardLayout) -> None:
        """Build the tables again for other patterns and types. The numbers of monitor states do not change."""
        self._layout = layout
        while len(self.states) > RESERVED and self.states[-1] is None:  # ``restart_bits`` creates row monitors again
            self.states.pop()
        self._classes = [EventClass(type=name) for name in [*layout.types, OTHER]]
        self._class_numbers = {event_class: number for number, event_class in enumerate(self._classes)}
        self._rows, self._kills = LiveRows(int(layout.negation_range[-1])), KillLists()
        capacity, width = max(64, 2 * len(self.states)), self._width()
        self._tables = Guards(
            next=np.full((capacity, width), NIL, np.int32),
            kill_of=np.full((capacity, width), NOTHING_ENDS, np.int32),
            gate=np.full(capacity, ALL_LIVE, np.int32),
            truth=np.full(capacity, ALL_LIVE, np.int32),
            policy=np.zeros(capacity, np.uint8),
            live=self._rows.array,
            kill_from=self._kills.ranges,
            kills=self._kills.columns,
            start=np.array([layout.start], np.int32),
        )
        for number in (DEVIANT, UNGUARDED, FAILED):
            self._tables.next[number] = number
        self._tables.gate[FAILED] = self._tables.truth[FAILED] = NONE_LIVE
        for number in range(RESERVED, len(self.states)):
            self._fill(number)
        self.bits.compile(
            {version: guard.bits for version, guard in self.guards.items() if guard.bits is not None},
            (layout.views, layout.state_range, layout.negation_range),
            self._classes,
            when_broken={version: _WHEN_BROKEN[guard.policy.on_violation] for version, guard in self.guards.items()},
            is_pruning={version: guard.policy.prune is not Prune.OFF for version, guard in self.guards.items()},
        )

    def follow(self, other: GuardTables) -> None:
        """Copy the monitor states that ``other`` has and these tables lack, under the same numbers.

        Monitors of traces under bit tables get no answers. In these traces, every pattern counts as able to complete.
        """
        for state in other.states[len(self.states) :]:
            self.states.append(state)
            self._reach(len(self.states) - 1)
            self._fill(len(self.states) - 1)

    def kills_of(self, before: NDArray[np.int32], after: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return, for each transition from ``before`` to ``after``, the index of the list of columns that die.

        The arrays have numbers of monitor states. If no column can die, the index is ``NOTHING_ENDS``.
        """
        kills = np.full(len(before), NOTHING_ENDS, np.int32)
        places = np.flatnonzero((before != after) & (before >= RESERVED) & (after >= RESERVED))
        firsts, which = distinct_rows(np.column_stack([before, after])[places])
        moves = [self.kills_between(int(before[place]), int(after[place])) for place in places[firsts].tolist()]
        kills[places] = np.array(moves, np.int32)[which]
        return kills

    def restart_bits(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Create the monitors of all traces under bit tables again after ``compile``.

        Returns the numbers of these traces, and the monitor number of each.
        """
        return self.bits.restart(self)

    def build(self, monitor: int, column: int) -> None:
        """Ask the guard for the monitor state after an event, and store the answer and the list of columns that die.

        The event has the class ``column``. The guard is that of the monitor state ``monitor``.
        """
        interned = self.states[monitor]
        if interned is None:
            raise RuntimeError(f"monitor state {monitor} has no guard to ask")
        self.builds += 1
        if self.event_class(column).type == TRACE_END:  # not shown to guards: an open obligation is not a deviation
            self.tables.next[monitor, column] = monitor
            return
        version, state = interned
        following = self.guards[version].step(state, self.event_class(column))
        kill, after = NOTHING_ENDS, self._after(monitor, version, following)
        if after == IGNORED:
            after, kill = monitor, IGNORED
        elif after >= RESERVED:
            kill = self.kills_between(monitor, after)
        self.tables.next[monitor, column] = after
        self.tables.kill_of[monitor, column] = kill

    def _after(self, monitor: int, version: int, following: MonitorState | None) -> int:
        """Return the monitor number after an event.

        ``following`` is the state that the guard returned, or None for a violation. If the guard already has as many
        monitor states as its policy allows, the result is ``BITS`` or ``UNGUARDED``. After a violation, the policy
        decides.
        """
        if following is None:
            return _WHEN_BROKEN[self.guards[version].policy.on_violation]
        is_full = self._sizes[version] >= self.guards[version].policy.max_monitor_states
        if not is_full or (version, following) in self._numbers:
            return self.intern(version, following)
        interned = self.states[monitor]
        if interned is None or not self.bits.takes(version):
            self.refused += 1
            return UNGUARDED
        self.bits.open_from(monitor, version, interned[1])
        return BITS

    def kills_between(self, before: int, after: int) -> int:
        policy, rows, truth = self.tables.policy[after], self._rows.array, self.tables.truth
        kill = self._kills.number(rows[truth[before]], rows[truth[after]], by_term=bool(policy == BY_QUERY))
        self._tables = self.tables._replace(kill_from=self._kills.ranges, kills=self._kills.columns)
        return kill

    def row_number(self, row: Row) -> int:
        number = self._rows.number(row)
        self._tables = self.tables._replace(live=self._rows.array)
        return number

    def add_row_monitor(self, version: int, row: int) -> int:
        number = len(self.states)
        self.states.append(None)
        self._reach(number)
        self.tables.next[number] = BITS
        self._point(number, self.guards[version].policy.prune, row)
        return number

    def type_of(self, code: int) -> str:
        """Return the event type of a code, or ``OTHER`` for the code of all types that no guard and no pattern uses."""
        return self._classes[code].type

    def event_class(self, column: int) -> EventClass:
        if self._layout is None or not self._layout.is_simultaneous:
            return self._classes[column]
        base_class = self._classes[column // 2]
        return EventClass(type=base_class.type, symbols=base_class.symbols, is_later=column % 2 == 1)

    def live_row(self, version: int, state: MonitorState) -> Row:
        """Return a monitor state's row of liveness: for each column, the terms that can still complete, as bits."""
        layout, guard = self._layout, self.guards[version]
        if layout is None:
            raise RuntimeError("guard tables are read before compile()")
        row = np.full(int(layout.negation_range[-1]), EVERY_TERM, np.uint32)
        for pattern, view in enumerate(layout.views):
            if view is not None:
                states = slice(layout.state_range[pattern], layout.state_range[pattern + 1])
                row[states] = view.live_terms(guard.live(state, view.query))
                first = int(layout.negation_range[pattern])
                for place, atom in enumerate(view.negations):
                    row[first + place] = EVERY_TERM if guard.can_occur(state, atom) else 0
        return row

    def _width(self) -> int:
        room = 1 << max(0, len(self._classes) - 1).bit_length()
        return room * (2 if self._layout is not None and self._layout.is_simultaneous else 1)

    def _widen(self) -> None:
        width, tables = self._width(), self._tables
        if tables is None or width <= tables.next.shape[1]:
            return
        wider = np.full((len(tables.next), width), NIL, np.int32)
        wider[:, : tables.next.shape[1]] = tables.next
        for number in (DEVIANT, UNGUARDED, FAILED):
            wider[number] = number
        for number, interned in enumerate(self.states[RESERVED:], RESERVED):
            if interned is None:
                wider[number] = BITS
        kill_of = np.full((len(tables.next), width), NOTHING_ENDS, np.int32)
        kill_of[:, : tables.next.shape[1]] = tables.kill_of
        self._tables = tables._replace(next=wider, kill_of=kill_of)

    def _reach(self, number: int) -> None:
        tables = self.tables
        if number >= len(tables.next):
            size = 2 * len(tables.next)
            self._tables = tables._replace(
                next=grown(tables.next, size, NIL),
                kill_of=grown(tables.kill_of, size, NOTHING_ENDS),
                gate=grown(tables.gate, size),
                truth=grown(tables.truth, size),
                policy=grown(tables.policy, size),
            )

    def _fill(self, number: int) -> None:
        interned = self.states[number]
        if interned is None:
            return
        version, state = interned
        prune = self.guards[version].policy.prune
        row = ALL_LIVE if prune is Prune.OFF else self.row_number(self.live_row(version, state))
        self._point(number, prune, row)

    def _point(self, number: int, prune: Prune, row: int) -> None:
        self.tables.truth[number] = row
        self.tables.gate[number] = row if prune is Prune.STATE else ALL_LIVE
        self.tables.policy[number] = _POLICIES[prune]
