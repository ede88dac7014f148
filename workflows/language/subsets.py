"""Determinises automata by the subset construction, for many sets of states at a time.

The construction is from M. O. Rabin, D. Scott, Finite automata and their decision problems, 1959. A whole level of the
breadth-first search is processed at once in flat arrays. Two sets are considered equal if they agree in their size and
in two random sums of 64 bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constraints import NOWHERE, Adjacency, Numbers, ProcessAutomaton, edges_at, offsets_of
from nfa import distinct
from workflows.errors import AutomatonTooLarge
from workflows.language.minimal import minimal
from workflows.language.moves import SILENT, Moves
from workflows.language.reduction import reduced

_WORK = 40_000_000  # limit of the work: states in all sets, plus the moves from them
_CHUNK = 500_000  # limit of the states in the sets that are processed at once
_MOST_CLOSED = 4  # silent closures of at most this average size are computed in advance
_WORTH_REDUCING = 200
_MORE = 50_000  # sets that are allowed beyond four times the limit of states
_Key: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of states of a nondeterministic automaton. Each is a state of the deterministic automaton, with its number.

    ``members`` has the states of all sets, one set after the other. ``offsets`` has the index at which each set begins.
    """

    numbers: Numbers
    offsets: Numbers
    members: Numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, begin: int, end: int) -> _Sets:
        first, last = self.offsets[begin], self.offsets[end]
        return _Sets(self.numbers[begin:end], self.offsets[begin : end + 1] - first, self.members[first:last])


def deterministic(moves: Moves, max_states: int) -> ProcessAutomaton:
    """Return the minimal automaton of the language of ``moves``. Acceptance must be reachable from every state.

    Raises ``AutomatonTooLarge`` if the automaton has more than ``max_states`` states, or if its construction needs too
    many sets.
    """
    plain = _plain(moves)
    if plain is None:
        fewer = moves if len(moves) < _WORTH_REDUCING else reduced(moves)
        plain = _Determinisation(fewer, 4 * max_states + _MORE).run()
    automaton = minimal(plain)
    check_size(len(automaton), max_states)
    return automaton


def check_size(states: int, max_states: int) -> None:
    """Raise ``AutomatonTooLarge`` if an automaton has more than ``max_states`` states."""
    if states > max_states:
        raise AutomatonTooLarge(
            f"the automaton has {states} states, at most {max_states} are allowed", states=states, max_states=max_states
        )


def _plain(moves: Moves) -> ProcessAutomaton | None:
    """Return the automaton with its silent moves removed by their closures, or None if it is not deterministic then.

    The result is also None if too many states are connected by silent moves.
    """
    states, width = len(moves), max(1, len(moves.letters))
    if len(moves.initial) != 1:
        return None
    owners, members = _closures(moves.silent(), _MOST_CLOSED * states)
    if not len(owners):
        return None
    is_event = moves.labels != SILENT
    order = np.flatnonzero(is_event)[np.argsort(moves.sources[is_event], kind="stable")]
    place, edges = edges_at(offsets_of(moves.sources[order], states), members)
    ways = owners[place] * width + moves.labels[order][edges]
    targets = moves.targets[order][edges]
    ways, first, counts = np.unique(ways, return_index=True, return_counts=True)
    if (counts > 1).any():
        return None
    table = np.full((states, len(moves.letters)), NOWHERE, np.int32)
    table[ways // width, ways % width] = targets[first]
    accepting = np.zeros(states, np.bool_)
    accepting[owners[moves.accepting[members]]] = True
    begin = int(moves.initial[0])
    if begin:
        swap = np.arange(states)
        swap[[0, begin]] = begin, 0
        table, accepting = np.append(swap, NOWHERE)[table[swap]].astype(np.int32), accepting[swap]
    return ProcessAutomaton(moves.letters, table, accepting)


def _closures(silent: Adjacency, most: int) -> tuple[Numbers, Numbers]:
    """Return all pairs of a state and a state that it reaches by silent moves, sorted, as two arrays.

    Each state reaches itself. The result is empty if there are more than ``most`` pairs.
    """
    states = len(silent.offsets) - 1
    keys = frontier = np.arange(states, dtype=np.int64) * (states + 1)
    while len(frontier):
        place, edges = edges_at(silent.offsets, frontier % states)
        pairs = distinct(frontier[place] // states * states + silent.targets[edges])
        frontier = pairs[~_members(keys)(pairs)]
        keys = distinct(np.concatenate([keys, frontier]))
        if len(keys) > most:
            return keys[:0], keys[:0]
    return keys // states, keys % states


class _Determinisation:
    def __init__(self, moves: Moves, most_sets: int) -> None:
        self._moves, self._most_sets = moves, most_sets
        is_event = moves.labels != SILENT
        order = np.flatnonzero(is_event)[np.argsort(moves.sources[is_event], kind="stable")]
        self._offsets = offsets_of(moves.sources[order], len(moves))
        self._labels, self._targets = moves.labels[order], moves.targets[order]
        self._silent = moves.silent()
        self._is_silent_end = np.diff(self._silent.offsets) == 0
        self._is_solid = (np.diff(self._offsets) > 0) | moves.accepting
        random = np.random.default_rng(13)
        self._marks = random.integers(1 << 63, size=(2, len(moves)), dtype=np.uint64)
        self._known: dict[_Key, int] = {}
        self._pending: deque[_Sets] = deque()
        self._accepting: list[NDArray[np.bool_]] = []
        self._edges: list[tuple[Numbers, Numbers, Numbers]] = []
        self._work = 0

    def run(self) -> ProcessAutomaton:
        self._number(self._closed(self._moves.initial.astype(np.int64)), 1)
        while self._pending:
            sets = self._pending.popleft()
            half = len(sets) // 2
            if half and len(sets.members) > _CHUNK:
                self._pending.extendleft((sets.slice(half, len(sets)), sets.slice(0, half)))
            else:
                self._step(sets)
        count = len(self._known)
        table = np.full((count, len(self._moves.letters)), NOWHERE, np.int32)
        for sources, labels, targets in self._edges:
            table[sources, labels] = targets
        return ProcessAutomaton(self._moves.letters, table, np.concatenate(self._accepting))

    def _step(self, sets: _Sets) -> None:
        states, width = len(self._moves), max(1, len(self._moves.letters))
        place, edges = edges_at(self._offsets, sets.members)
        if not len(edges):
            return
        self._spend(len(edges))
        owner = np.repeat(np.arange(len(sets), dtype=np.int64), np.diff(sets.offsets))[place]
        keys = owner * width + self._labels[edges]
        ways = distinct(keys)
        group = np.searchsorted(ways, keys)
        reached = self._closed(distinct(group * states + self._targets[edges]))
        self._edges.append((sets.numbers[ways // width], ways % width, self._number(reached, len(ways))))

    def _closed(self, keys: Numbers) -> Numbers:
        """Add to each set the states that its members reach by silent moves.

        Then drop members without events that do not accept. Sets are given as sorted keys: set * states + member.
        """
        states = len(self._moves)
        frontier = keys
        is_known = _members(keys)
        while True:
            frontier = frontier[~self._is_silent_end[frontier % states]]
            place, edges = edges_at(self._silent.offsets, frontier % states)
            if not len(edges):
                break
            pairs = distinct(frontier[place] // states * states + self._silent.targets[edges])
            frontier = pairs[~is_known(pairs)]
            keys = distinct(np.concatenate([keys, frontier]))
            is_known = _members(keys)
            self._spend(len(frontier))
        return keys[self._is_solid[keys % states]]

    def _number(self, keys: Numbers, groups: int) -> Numbers:
        """Return the number of each of ``groups`` sets, and queue the sets that are new.

        ``keys`` has their members, sorted, as in ``_closed``.
        """
        self._spend(len(keys))
        group, members = np.divmod(keys, len(self._moves))
        offsets = offsets_of(group, groups)
        sizes = np.diff(offsets).tolist()
        first, second = (np.add.reduceat(marks[members], offsets[:-1]).tolist() for marks in self._marks)
        before = len(self._known)
        numbers = np.array(
            [self._known.setdefault(key, len(self._known)) for key in zip(sizes, first, second, strict=True)], np.int64
        )
        if len(self._known) > self._most_sets:
            raise AutomatonTooLarge(
                f"the deterministic automaton has more than {self._most_sets} states before it is minimised",
                states=len(self._known),
            )
        fresh, which = np.unique(numbers, return_index=True)
        which = which[fresh >= before]
        place, at = edges_at(offsets, which)
        chosen = members[at]
        ends = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(which)))]).astype(np.int64)
        if len(which):
            self._accepting.append(np.logical_or.reduceat(self._moves.accepting[chosen], ends[:-1]))
            self._pending.append(_Sets(fresh[fresh >= before], ends, chosen))
        return numbers

    def _spend(self, states: int) -> None:
        self._work += states
        if self._work > _WORK:
            raise AutomatonTooLarge(
                f"the automaton was not found within {_WORK} steps; {len(self._known)} states were found so far",
                states=len(self._known),
            )


def _members(keys: Numbers) -> Callable[[Numbers], NDArray[np.bool_]]:
    return lambda candidates: keys[np.minimum(np.searchsorted(keys, candidates), len(keys) - 1)] == candidates
