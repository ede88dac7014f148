"""Computes the minimal automaton of a language, with a canonical numbering of its states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from constraints import NOWHERE, Adjacency, Numbers, ProcessAutomaton, offsets_of
from workflows.errors import UnsoundWorkflow
from workflows.language.moves import Moves, moves_of
from workflows.language.reduction import is_stable, split


def minimal(automaton: ProcessAutomaton) -> ProcessAutomaton:
    """Return the minimal automaton of the same language. The language must not be empty.

    Letters and states that are in no complete word are removed. States are numbered breadth-first over the sorted
    letters, so equal languages have equal automata. Moore's refinement (E. F. Moore, Gedanken-experiments on sequential
    machines, 1956) merges states by hashes, and the result is verified. The refinement starts with one class for each
    distance to acceptance.
    """
    moves = moves_of(automaton)
    forward = moves.forward().reached(np.zeros(1, np.int64))
    distance = moves.backward().distances(np.flatnonzero(automaton.accepting & forward))
    useful = forward & (distance >= 0)
    if not useful[0]:
        raise UnsoundWorkflow("no trace of the model can complete")
    if not useful.all():
        numbers = np.where(useful, np.cumsum(useful) - 1, NOWHERE)
        moves, distance = moves.renumbered(numbers, int(useful.sum())), distance[useful]
    classes = _refined(moves, np.unique(distance, return_inverse=True)[1])
    _, first = np.unique(classes, return_index=True)
    table = _table(moves)
    return canonical(automaton.letters, _class_table(classes, table[first]), moves.accepting[first], int(classes[0]))


def canonical(
    letters: tuple[str, ...], table: NDArray[np.integer], accepting: NDArray[np.bool_], start: int
) -> ProcessAutomaton:
    """Return an automaton with its states numbered breadth-first from ``start``, and without unused letters.

    The automaton is trimmed, and its letters are sorted. ``table`` is (states, letters), ``accepting`` is (states,).
    States that cannot be reached are removed.
    """
    sources, labels = np.nonzero(table != NOWHERE)
    states = Adjacency(offsets_of(sources, len(table)), table[sources, labels]).order(start)
    numbers = np.full(len(table) + 1, NOWHERE, np.int64)  # the last entry is for NOWHERE
    numbers[states] = np.arange(len(states))
    is_used = (table[states] != NOWHERE).any(axis=0)
    used = tuple(letter for letter, is_there in zip(letters, is_used, strict=True) if is_there)
    return ProcessAutomaton(used, numbers[table[states][:, is_used]].astype(np.int32), accepting[states])


def _table(moves: Moves) -> NDArray[np.int64]:
    table = np.full((len(moves), len(moves.letters)), NOWHERE, np.int64)
    table[moves.sources, moves.labels] = moves.targets
    return table


def _class_table(classes: Numbers, table: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(classes, NOWHERE)[table]


def _refined(moves: Moves, classes: Numbers) -> Numbers:
    """Refine classes of states until all states of a class have the same moves. Return the class of each state.

    A move is a letter and the class to which it leads. Moves are sorted by state and letter.
    """
    random = np.random.default_rng(11)
    while True:
        class_moves = moves.sources, moves.labels, classes[moves.targets]
        finer = split(class_moves, classes, random)
        if finer.max() == classes.max() and is_stable(class_moves, classes):
            return classes
        classes = finer
