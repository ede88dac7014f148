"""Shadow mode: the guard drops no partial matches, and each match is checked for whether eviction would have lost it.

On a conforming trace eviction loses nothing. On a deviating trace it loses a match if, before the deviation, it would
have dropped a partial match that leads to this match. A partial match is dropped if its state can no longer complete
when the match's next event arrives, or when the trace deviates. So the monitor transitions of each trace are kept until
the trace ends (constraint-aware CEP, section 4.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.errors import StateFormatError
from nfa.guards.protocol import Guard, MonitorState, Prune
from nfa.guards.tables import GuardTables, Interned
from nfa.kernels.traces import NIL, RESERVED, SHADOW
from nfa.registered import RunningPattern
from nfa.traces.table import Visits, checked, is_deviant

Bound: TypeAlias = Sequence[tuple[int, int]]
"""Alias number and sequence number of each event of a match."""

_MOVE = np.dtype([("trace", np.int32), ("sequence", np.int64), ("before", np.int32), ("after", np.int32)])
_DEVIATED = NIL  # marks a deviation instead of the number of a monitor state


@dataclass(frozen=True, slots=True)
class _History:
    version: int
    sequences: NDArray[np.int64]  # sequence numbers of the events that changed the monitor state; the last deviates
    states: Sequence[MonitorState]  # the state before each of these events


class ShadowLedger:
    """The monitor transitions of open traces whose guard is in shadow mode, kept until the traces end.

    In shadow mode, a guard drops nothing, but reports which matches pruning would have lost. The transitions show this.
    """

    def __init__(self) -> None:
        self._moves = np.zeros(0, _MOVE)
        self._known: list[Interned] = []
        self._numbers: dict[Interned, int] = {}
        self._live: dict[tuple[int, MonitorState, RunningPattern], list[bool]] = {}

    def __len__(self) -> int:
        return len(self._moves)

    def note(self, visits: Visits, first_sequence: int, guards: GuardTables) -> None:
        """Record the monitor transitions of a batch.

        For a trace under bit tables, only transitions that kill a state or break a constraint are known.
        """
        if not any(guard.policy.prune is Prune.SHADOW for guard in guards.guards.values()):
            return
        is_move = (visits.before != visits.after) & (guards.tables.policy[visits.before] == SHADOW)
        places = np.flatnonzero(is_move & (visits.before >= RESERVED)).tolist()
        if not places:
            return
        noted = guards.bits.noted(visits.before)
        moves = []
        for place in places:
            before, after = self._ends(visits, place, guards, noted.get(place))
            if before is not None and (after is not None or is_deviant(visits.after[place : place + 1])[0]):
                sequence = int(visits.rows[place]) + first_sequence
                moves.append((int(visits.traces[place]), sequence, self._number(before), self._number(after)))
        self._moves = np.concatenate([self._moves, np.array(moves, _MOVE)])

    def _ends(
        self, visits: Visits, place: int, guards: GuardTables, noted: Interned | None
    ) -> tuple[Interned | None, Interned | None]:
        """Return the monitor states before and after a transition. None means a state that is not known."""
        after = int(visits.after[place])
        if noted is None:
            return guards.states[int(visits.before[place])], guards.states[after]
        if after < RESERVED:
            return noted, None
        version, state = noted
        return noted, (
            version,
            guards.bits.after(version, state, guards.event_class(int(visits.columns_of(np.array([place]))[0]))),
        )

    def forget(self, traces: NDArray[np.int32]) -> None:
        if len(self._moves) and len(traces):
            self._moves = self._moves[~np.isin(self._moves["trace"], traces)]

    def would_be_lost(self, pattern: RunningPattern, trace: int, bound: Bound, guards: Mapping[int, Guard]) -> bool:
        """Return whether pruning would have lost a match by dropping one of its partial matches.

        ``bound`` are the bound events of the match. Only matches of guarded patterns can be lost.
        """
        history = self._history(trace)
        if history is None or not pattern.is_guarded:
            return False
        deviated = int(history.sequences[-1])
        automaton, states, newest = pattern.automaton, {0}, NIL
        for alias, sequence in sorted(bound, key=lambda event: event[1]):
            if newest < deviated and not (newest == NIL and sequence >= deviated):
                states = self._kept(states, pattern, guards, history, min(sequence, deviated))
            alias_name = automaton.aliases[alias]
            states = {
                step.target
                for step in automaton.transitions
                if step.source in states and automaton.atoms[step.atom].alias == alias_name
            }
            newest = sequence
        if newest < deviated:  # the complete match waited for a trailing condition
            states = self._kept(states, pattern, guards, history, deviated)
        return not states

    def dump_arrays(self, traces: NDArray[np.int32]) -> tuple[dict[str, NDArray[Any]], list[Interned]]:
        """Return the transitions as plain arrays, and the monitor states by number.

        ``traces`` has the new trace number of each old number.
        """
        before, after = self._moves["before"], self._moves["after"]
        used, first = np.unique(np.column_stack([before, after]), return_index=True)
        is_state = used != _DEVIATED
        used = used[is_state][np.argsort(first[is_state])]
        numbers = np.full(len(self._known) + 1, _DEVIATED, np.int32)  # the last entry is for deviations
        numbers[used] = np.arange(len(used), dtype=np.int32)
        arrays: dict[str, NDArray[Any]] = {
            "shadow_trace": traces[self._moves["trace"]],
            "shadow_sequence": self._moves["sequence"].copy(),
            "shadow_before": numbers[before],
            "shadow_after": numbers[after],
        }
        return arrays, [self._known[number] for number in used.tolist()]

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], states: Sequence[Interned], *, traces: int) -> None:
        self._known = list(states)
        self._numbers = {state: number for number, state in enumerate(states)}
        size = len(checked(arrays, "shadow_trace", np.int32))
        self._moves = np.empty(size, _MOVE)
        for name in _MOVE.names or ():
            self._moves[name] = checked(arrays, f"shadow_{name}", _MOVE[name].type, size)
        for name, least, most in (("trace", 0, traces), ("before", 0, len(states)), ("after", _DEVIATED, len(states))):
            if np.any((self._moves[name] < least) | (self._moves[name] >= most)):
                raise StateFormatError("saved state: a move of a monitor leads nowhere")

    def versions(self) -> frozenset[int]:
        """Return the versions of the guards that are needed to judge the recorded transitions."""
        return frozenset(self._known[number][0] for number in distinct(self._moves["before"]).tolist())

    def _number(self, state: Interned | None) -> int:
        if state is None:
            return _DEVIATED
        if state not in self._numbers:
            self._numbers[state] = len(self._known)
            self._known.append(state)
        return self._numbers[state]

    def _history(self, trace: int) -> _History | None:
        moves = self._moves[self._moves["trace"] == trace]
        if not len(moves) or moves["after"][-1] != _DEVIATED:
            return None
        before = [self._known[number] for number in moves["before"].tolist()]
        return _History(before[0][0], moves["sequence"], [state for _, state in before])

    def _kept(
        self,
        states: set[int],
        pattern: RunningPattern,
        guards: Mapping[int, Guard],
        history: _History,
        sequence: int,
    ) -> set[int]:
        """Return the ``states`` from which the pattern could still complete just before the event ``sequence``."""
        reached = int(np.searchsorted(history.sequences[:-1], sequence))
        live = self._live_states(pattern, guards, history.version, history.states[reached])
        return {state for state in states if live[state]}

    def _live_states(
        self, pattern: RunningPattern, guards: Mapping[int, Guard], version: int, state: MonitorState
    ) -> list[bool]:
        key = (version, state, pattern)
        if key not in self._live:
            of_query = guards[version].live(state, pattern.view.query)
            self._live[key] = pattern.view.live(of_query).tolist()
        return self._live[key]
