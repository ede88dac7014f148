"""Backward reachability of states of an automaton, with numpy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Predecessors:
    """The transitions of an automaton by their target state.

    ``table`` is (states, letters) int32: the state after each letter, below 0 if there is none.
    """

    def __init__(self, table: NDArray[np.int32]) -> None:
        source, letter = np.nonzero(table >= 0)
        target = table[source, letter]
        order = np.argsort(target, kind="stable")
        self._source = source[order].astype(np.int32)
        self._letter = letter[order].astype(np.int32)
        self._first = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=len(table)))]).astype(np.int64)

    def reaching(self, wanted: NDArray[np.bool_], letters: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The mask of states from which some word of ``letters`` (a mask), possibly empty, leads to a wanted state."""
        return self.distances(wanted, letters) >= 0

    def distances(self, wanted: NDArray[np.bool_], letters: NDArray[np.bool_]) -> NDArray[np.int32]:
        """For each state, the length of the shortest word of ``letters`` to a wanted state; -1 without such a word."""
        found = np.where(wanted, 0, -1).astype(np.int32)
        frontier, length = np.flatnonzero(wanted), 0
        while frontier.size:
            length += 1
            sources = self._into(frontier, letters)
            frontier = np.unique(sources[found[sources] < 0])
            found[frontier] = length
        return found

    def _into(self, states: NDArray[np.intp], letters: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The sources of transitions into some states; a source is repeated for each of its transitions."""
        first, count = self._first[states], self._first[states + 1] - self._first[states]
        skipped = np.cumsum(count) - count
        moves = np.arange(count.sum()) + np.repeat(first - skipped, count)
        sources: NDArray[np.int32] = self._source[moves[letters[self._letter[moves]]]]
        return sources
