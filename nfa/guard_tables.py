"""A guard's answers as tables for the kernels, asked for once and kept.

The monitor automaton of C-CEP (constraint-aware CEP, section 4.2): a monitor state is a (guard version, seen types)
pair, interned to a number; rows are built when traffic first reaches them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown
from nfa.automata.guard_view import GuardView
from nfa.guards import Guard, Seen
from nfa.kernels.traces import DEVIANT, NIL, UNGUARDED, Guards

MAX_MONITOR_STATES = 65_536
OTHER = ""  # stands for every type that neither patterns nor guards name; no event has it

MonitorState: TypeAlias = tuple[int, Seen]
Item = TypeVar("Item", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLayout:
    """What the tables' columns stand for.

    Attributes:
        types: Event types by code; one more code, ``len(types)``, stands for every other type.
        views: How each pattern's states look to a guard.
        state_range: (patterns + 1,) the columns of ``Guards.live`` that belong to each pattern's states.
        start: Monitor state of a new trace.
    """

    types: Sequence[str]
    views: Sequence[GuardView]
    state_range: NDArray[np.int32]
    start: int


class GuardTables:
    """Interned monitor states and their rows.

    Numbers ``DEVIANT`` and ``UNGUARDED`` are reserved: they prune nothing and never change.

    Args:
        guards: Guards by version.
        max_states: Above it a trace goes on unguarded, counted in ``refused``.
    """

    def __init__(self, guards: Mapping[int, Guard], *, max_states: int = MAX_MONITOR_STATES) -> None:
        self.guards = dict(guards)
        self.states: list[MonitorState | None] = [None, None]
        self.refused = 0
        self.builds = 0
        self._max_states = max_states
        self._numbers: dict[MonitorState, int] = {}
        self._layout: GuardLayout | None = None
        self._tables: Guards | None = None
        self._n_kills = 0

    @property
    def types(self) -> frozenset[str]:
        """Event types that move some monitor."""
        return frozenset().union(*(guard.types for guard in self.guards.values()))

    @property
    def tables(self) -> Guards:
        """The rows built so far; arrays are replaced as they grow."""
        if self._tables is None:
            raise RuntimeError("guard tables are read before compile()")
        return self._tables

    def intern(self, version: int, seen: Seen) -> int:
        """Number of a monitor state; ``UNGUARDED`` when the cap is reached."""
        state = (version, seen)
        if state not in self._numbers:
            if len(self.states) >= self._max_states:
                self.refused += 1
                return UNGUARDED
            self._numbers[state] = len(self.states)
            self.states.append(state)
            if self._tables is not None:
                self._add_row(self._numbers[state])
        return self._numbers[state]

    def compile(self, layout: GuardLayout) -> None:
        """Start rows afresh for other patterns or types; numbers stay."""
        types, states = len(layout.types) + 1, int(layout.state_range[-1])
        capacity = max(64, 2 * len(self.states))
        self._layout = layout
        self._n_kills = 0
        self._tables = Guards(
            next=np.full((capacity, types), NIL, np.int32),
            live=np.ones((capacity, states), np.bool_),
            kill_from=np.zeros((capacity, types), np.int32),
            kill_to=np.zeros((capacity, types), np.int32),
            kills=np.zeros(64, np.int32),
            start=np.array([layout.start], np.int32),
        )
        self._tables.next[DEVIANT] = DEVIANT
        self._tables.next[UNGUARDED] = UNGUARDED
        for number in range(UNGUARDED + 1, len(self.states)):
            self._fill_live(number)

    def build(self, monitor: int, type_code: int) -> None:
        """Ask the guard where a monitor state goes on a type, and what that ends."""
        layout, state = self._layout, self.states[monitor]
        if layout is None or state is None:
            raise RuntimeError(f"monitor state {monitor} has no guard to ask")
        self.builds += 1
        version, seen = state
        is_other = type_code == len(layout.types)
        following = self.guards[version].step(seen, OTHER if is_other else layout.types[type_code])
        after = DEVIANT if following is None else self.intern(version, following)
        self.tables.next[monitor, type_code] = after
        dead = self.tables.live[monitor] & ~self.tables.live[after]
        self._store_kills(monitor, type_code, np.flatnonzero(dead).astype(np.int32))

    def _add_row(self, number: int) -> None:
        tables = self.tables
        if number >= len(tables.next):
            self._tables = tables._replace(
                next=_doubled(tables.next, NIL),
                live=_doubled(tables.live, 1),
                kill_from=_doubled(tables.kill_from, 0),
                kill_to=_doubled(tables.kill_to, 0),
            )
        self._fill_live(number)

    def _fill_live(self, number: int) -> None:
        layout, state = self._layout, self.states[number]
        if layout is None or state is None:
            return
        version, seen = state
        for pattern, view in enumerate(layout.views):
            columns = slice(layout.state_range[pattern], layout.state_range[pattern + 1])
            self.tables.live[number, columns] = view.live(self.guards[version].live(seen, view.query))

    def _store_kills(self, monitor: int, type_code: int, dead: NDArray[np.int32]) -> None:
        end = self._n_kills + len(dead)
        while end > len(self.tables.kills):
            self._tables = self.tables._replace(kills=_doubled(self.tables.kills, 0))
        self.tables.kills[self._n_kills : end] = dead
        self.tables.kill_from[monitor, type_code] = self._n_kills
        self.tables.kill_to[monitor, type_code] = end
        self._n_kills = end


def _doubled(array: NDArray[Item], fill: int) -> NDArray[Item]:
    return grown(array, 2 * len(array), fill)
