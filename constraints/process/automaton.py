"""The language of a process as a deterministic automaton."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from constraints.process.adjacency import Adjacency, Flags, offsets_of

START = 0
NOWHERE = -1


# No slots: cached properties need a dictionary.
@dataclass(frozen=True, eq=False)
class ProcessAutomaton:
    """A process as a deterministic automaton that accepts its complete traces.

    From every state some accepting state can be reached. So a trace leaves the process exactly at the first event
    without a transition. ``workflows`` builds minimal automata, whose states are numbered breadth-first over the sorted
    letters. So two automata of the same language and letters are equal.

    Attributes:
        letters: Event types, sorted; the process emits no others.
        table: (states, letters) int32, the state after an event; ``NOWHERE`` if the event is not possible.
    """

    letters: tuple[str, ...]
    table: NDArray[np.int32]
    accepting: NDArray[np.bool_]

    def __post_init__(self) -> None:
        states = len(self.accepting)
        if not states or self.table.shape != (states, len(self.letters)):
            raise ValueError(f"{states} states and {len(self.letters)} letters do not fit a table {self.table.shape}")
        if list(self.letters) != sorted(set(self.letters)):
            raise ValueError("letters are sorted, each once")
        if self.table.size and not NOWHERE <= self.table.min() <= self.table.max() < states:
            raise ValueError(f"a table of {states} states leads to states 0 to {states - 1}, or nowhere")
        table, accepting = np.ascontiguousarray(self.table, np.int32), np.ascontiguousarray(self.accepting, np.bool_)
        for array in (table, accepting):
            array.flags.writeable = False
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "accepting", accepting)

    @classmethod
    def of(
        cls, letters: Iterable[str], moves: Sequence[Mapping[str, int]], accepting: Iterable[int]
    ) -> ProcessAutomaton:
        """Build an automaton from one mapping per state, from an event type to the next state."""
        alphabet = tuple(sorted(set(letters)))
        codes = {name: code for code, name in enumerate(alphabet)}
        table = np.full((len(moves), len(alphabet)), NOWHERE, np.int32)
        for state, row in enumerate(moves):
            for name, after in row.items():
                table[state, codes[name]] = after
        ends = np.zeros(len(moves), np.bool_)
        ends[list(accepting)] = True
        return cls(alphabet, table, ends)

    def __len__(self) -> int:
        return len(self.accepting)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProcessAutomaton):
            return NotImplemented
        return (
            self.letters == other.letters
            and np.array_equal(self.table, other.table)
            and np.array_equal(self.accepting, other.accepting)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.letters, len(self), int(self.table.sum())))

    @cached_property
    def _codes(self) -> Mapping[str, int]:
        return {name: code for code, name in enumerate(self.letters)}

    @cached_property
    def _backward(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Target, source and letter of each transition, sorted by target."""
        source, letter = np.nonzero(self.table != NOWHERE)
        target = self.table[source, letter]
        order = np.argsort(target, kind="stable")
        return target[order], source[order].astype(np.int32), letter[order].astype(np.int32)

    def distances(self, targets: Flags, letters: Flags | None = None) -> NDArray[np.int32]:
        """Return, for each state, the length of the shortest word that leads to a target state, or -1 if there is none.

        ``targets`` is a mask of states. ``letters`` is a mask of the letters that the word may contain, or None for
        all.
        """
        target, source, letter = self._backward
        if letters is not None:
            is_usable = letters[letter]
            target, source = target[is_usable], source[is_usable]
        backward = Adjacency(offsets_of(target, len(self)), source)
        return backward.distances(np.flatnonzero(targets)).astype(np.int32)

    def code(self, event_type: str) -> int | None:
        """Return the column of an event type, or None if the process does not emit it."""
        return self._codes.get(event_type)

    def step(self, state: int, event_type: str) -> int | None:
        """Return the state after an event, or None if the process does not allow the event in ``state``."""
        code = self._codes.get(event_type)
        after = NOWHERE if code is None else int(self.table[state, code])
        return None if after == NOWHERE else after

    def allowed(self, state: int) -> tuple[str, ...]:
        """Return the event types that may come next, sorted."""
        return tuple(name for name, after in zip(self.letters, self.table[state], strict=True) if after != NOWHERE)

    def accepts(self, word: Iterable[str]) -> bool:
        """Check whether a sequence of event types is a complete trace."""
        state: int | None = START
        for event_type in word:
            if state is None:
                return False
            state = self.step(state, event_type)
        return state is not None and bool(self.accepting[state])
