"""Nondeterministic automata with silent moves, as an intermediate form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constraints import NOWHERE, Adjacency, Flags, ProcessAutomaton
from nfa import distinct

SILENT = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """A nondeterministic finite automaton with silent moves.

    A move leads from a state in ``sources`` to a state in ``targets``. Its label is the index of a letter, or
    ``SILENT``. Words begin in the ``initial`` states. They may end in the states of the mask ``accepting``, (states,).
    """

    letters: tuple[str, ...]
    sources: NDArray[np.int64]
    labels: NDArray[np.int64]
    targets: NDArray[np.int64]
    initial: NDArray[np.int64]
    accepting: Flags

    def __len__(self) -> int:
        return len(self.accepting)

    def forward(self) -> Adjacency:
        """Return the graph of all moves: from each state to their targets."""
        return Adjacency.of(self.sources, self.targets, len(self))

    def backward(self) -> Adjacency:
        """Return the graph of all moves in reverse: from each state to their sources."""
        return Adjacency.of(self.targets, self.sources, len(self))

    def silent(self) -> Adjacency:
        """Return the graph of the silent moves: from each state to their targets."""
        is_silent = self.labels == SILENT
        return Adjacency.of(self.sources[is_silent], self.targets[is_silent], len(self))

    def renumbered(self, numbers: NDArray[np.int64], states: int) -> Moves:
        """Return the automaton with renumbered states. The number -1 removes a state.

        Moves that become equal are merged. A silent move from a state to itself is removed.
        """
        sources, targets = numbers[self.sources], numbers[self.targets]
        stays = (sources >= 0) & (targets >= 0) & ~((self.labels == SILENT) & (sources == targets))
        width = len(self.letters) + 1
        keys = distinct((sources[stays] * width + self.labels[stays] + 1) * states + targets[stays])
        accepting = np.zeros(states, np.bool_)
        accepting[numbers[self.accepting & (numbers >= 0)]] = True
        initial = numbers[self.initial]
        before, targets = np.divmod(keys, max(1, states))
        sources, labels = np.divmod(before, width)
        return Moves(
            letters=self.letters,
            sources=sources,
            labels=labels - 1,
            targets=targets,
            initial=distinct(initial[initial >= 0]),
            accepting=accepting,
        )


def moves_of(automaton: ProcessAutomaton) -> Moves:
    """Return the moves of a deterministic automaton, sorted by state and letter."""
    sources, labels = np.nonzero(automaton.table != NOWHERE)
    return Moves(
        letters=automaton.letters,
        sources=sources,
        labels=labels,
        targets=automaton.table[sources, labels].astype(np.int64),
        initial=np.zeros(1, np.int64),
        accepting=automaton.accepting,
    )


def side_by_side(parts: Sequence[ProcessAutomaton]) -> tuple[Moves, NDArray[np.int64]]:
    """Combine automata into one, without moves between them. Return also the first state of each automaton in it.

    Words begin in the first automaton. The caller adds the moves between the automata.
    """
    letters = tuple(sorted({letter for part in parts for letter in part.letters}))
    codes = {letter: code for code, letter in enumerate(letters)}
    begins = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    sources, labels, targets = [], [], []
    for begin, part in zip(begins, parts, strict=False):
        moves = moves_of(part)
        sources.append(moves.sources + begin)
        targets.append(moves.targets + begin)
        labels.append(np.array([codes[letter] for letter in part.letters], np.int64)[moves.labels])
    union = Moves(
        letters=letters,
        sources=np.concatenate(sources),
        labels=np.concatenate(labels),
        targets=np.concatenate(targets),
        initial=np.zeros(1, np.int64),
        accepting=np.concatenate([part.accepting for part in parts]),
    )
    return union, begins[:-1]
