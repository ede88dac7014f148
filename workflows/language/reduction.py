"""Reduces the states of a nondeterministic automaton without changing its language.

Two states that are bisimilar, forwards or backwards, can be merged (L. Ilie, S. Yu, Reducing NFAs by invariant
equivalences, 2003). Silent moves within a class of states are ignored. As in ``minimal``, classes are found by
refinement with hashes, and then verified.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from constraints import Adjacency, Numbers, edges_at, offsets_of
from nfa import distinct
from workflows.language.moves import SILENT, Moves

_ClassMoves: TypeAlias = tuple[Numbers, Numbers, Numbers]

_GAIN = 0.95
_HALF = np.uint64(32)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = np.uint64((1 << 64) - 1)
_NOBODY = -1


def reduced(moves: Moves) -> Moves:
    """Return an automaton of the same language with fewer states, all of which are on complete words.

    For an empty language the result has no states.
    """
    moves = trimmed(moves)
    while len(moves):
        before = len(moves)
        moves = _without_detours(moves)
        moves = _merged(_accepting_silently(moves))
        moves = _reversed(_merged(_accepting_silently(_reversed(_without_detours(moves)))))
        if len(moves) > _GAIN * before:
            break
    return moves


def trimmed(moves: Moves) -> Moves:
    """Return the automaton without the states that are on no complete word."""
    useful = moves.forward().reached(moves.initial)
    useful &= moves.backward().reached(np.flatnonzero(moves.accepting))
    return moves.renumbered(np.where(useful, np.cumsum(useful) - 1, _NOBODY), int(useful.sum()))


def _accepting_silently(moves: Moves) -> Moves:
    is_silent = moves.labels == SILENT
    back = Adjacency.of(moves.targets[is_silent], moves.sources[is_silent], len(moves))
    return replace(moves, accepting=back.reached(np.flatnonzero(moves.accepting)))


def _without_detours(moves: Moves) -> Moves:
    """Replace each state that does not accept, and whose only move is silent, by the target of this move."""
    states = len(moves)
    ways = np.bincount(moves.sources, minlength=states)
    is_silent = (moves.labels == SILENT) & (ways[moves.sources] == 1) & ~moves.accepting[moves.sources]
    after = np.arange(states, dtype=np.int64)
    after[moves.sources[is_silent]] = moves.targets[is_silent]
    while True:  # each round doubles the jumps; ends, because a trimmed automaton has no cycle of these
        further = after[after]
        if (further == after).all():
            break
        after = further
    distinct_states, numbers = np.unique(after, return_inverse=True)
    is_moved = after != np.arange(states)
    accepting = moves.accepting & ~is_moved
    return replace(moves, accepting=accepting).renumbered(numbers.astype(np.int64), len(distinct_states))


def _reversed(moves: Moves) -> Moves:
    accepting = np.zeros(len(moves), np.bool_)
    accepting[moves.initial] = True
    order = np.lexsort((moves.sources, moves.labels, moves.targets))
    return replace(
        moves,
        sources=moves.targets[order],
        labels=moves.labels[order],
        targets=moves.sources[order],
        initial=np.flatnonzero(moves.accepting),
        accepting=accepting,
    )


def _merged(moves: Moves) -> Moves:
    random = np.random.default_rng(17)
    classes: Numbers = np.unique(moves.accepting, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(moves.sources, kind="stable")
    moves = replace(moves, sources=moves.sources[order], labels=moves.labels[order], targets=moves.targets[order])
    offsets = offsets_of(moves.sources, len(moves))
    while True:
        classes = _split_roughly(moves, classes, offsets, random)
        count = int(classes.max(initial=-1)) + 1
        class_moves = _class_moves(moves, classes, count)
        if is_stable(class_moves, classes):
            return moves.renumbered(classes, count)
        classes = split(class_moves, classes, random)


def _split_roughly(moves: Moves, classes: Numbers, offsets: Numbers, random: np.random.Generator) -> Numbers:
    """Refine classes of states by a quick hash of their moves, until the number of classes no longer grows.

    The hash of a state uses only the least and the greatest hash of its moves, so some classes may stay too large.
    """
    has_moves = np.flatnonzero(np.diff(offsets) > 0)
    begins = offsets[:-1][has_moves]
    is_silent = moves.labels == SILENT
    count = int(classes.max(initial=-1)) + 1
    while len(begins):
        weights, marks = _weights(random, len(moves.letters) + 1), _weights(random, 2 * count).reshape(2, count)
        after = classes[moves.targets]
        hashes = marks[0][after] * weights[moves.labels]
        hashes ^= hashes >> _HALF
        hashes *= _SPREAD
        is_inert = is_silent & (after == classes[moves.sources])
        signature = marks[1][classes]
        hashes[is_inert] = 0
        signature[has_moves] += np.maximum.reduceat(hashes, begins)
        hashes[is_inert] = _LARGEST
        signature[has_moves] ^= np.minimum.reduceat(hashes, begins) * weights[-1]
        classes = np.unique(signature, return_inverse=True)[1].astype(np.int64)
        finer = int(classes.max()) + 1
        if finer == count:
            break
        count = finer
    return classes


def split(class_moves: _ClassMoves, classes: Numbers, random: np.random.Generator) -> Numbers:
    """Split each class of states by the hash of all moves of a state. Return the class of each state."""
    sources, labels, targets = class_moves
    count = int(classes.max()) + 1
    offsets = offsets_of(sources, len(classes))
    marks = _weights(random, 2 * count).reshape(2, count)
    hashes = marks[0][targets] * _weights(random, int(labels.max(initial=0)) + 1)[labels]
    sums = np.concatenate([[np.uint64(0)], np.cumsum(hashes)])
    signature = sums[offsets[1:]] - sums[offsets[:-1]] + marks[1][classes]
    return np.unique(signature, return_inverse=True)[1].astype(np.int64)


def _weights(random: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return random.integers(1 << 63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def is_stable(class_moves: _ClassMoves, classes: Numbers) -> bool:
    """Check whether all states of a class have the same moves. A move is a label and the class to which it leads."""
    sources, labels, targets = class_moves
    offsets = offsets_of(sources, len(classes))
    _, first = np.unique(classes, return_index=True)
    model = first[classes]
    if (np.diff(offsets) != np.diff(offsets)[model]).any():
        return False
    same = edges_at(offsets, model)[1]
    return bool((labels == labels[same]).all() and (targets == targets[same]).all())


def _class_moves(moves: Moves, classes: Numbers, count: int) -> _ClassMoves:
    """Return the distinct moves of each state to classes, sorted: three arrays of state, label + 1, and target class.

    Silent moves within a class are left out.
    """
    after = classes[moves.targets]
    counts = (moves.labels != SILENT) | (after != classes[moves.sources])
    width = len(moves.letters) + 1
    keys = distinct((moves.sources[counts] * width + moves.labels[counts] + 1) * count + after[counts])
    before, targets = np.divmod(keys, max(1, count))
    sources, labels = np.divmod(before, width)
    return sources, labels, targets
