"""Derives exactly the constraints of a language that is given as an automaton.

Sets of event types are propagated over the states of the automaton:

- Forward from the start: each state receives the types that occur in some word to the state, and the types that are
  absent from some word to the state.
- For clauses over three types, also forward: for each type T, a state receives the types that are absent from some word
  with T, and the types that occur before T in some word.
- Backward from the accepting states: each state receives the types that are absent from some word that leads from the
  state to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from constraints import NOWHERE, Clause, Numbers, ProcessAutomaton
from workflows.relations.extraction import Extraction, Method
from workflows.relations.spreading import Bits, Graph, spread
from workflows.relations.table import Relation, RelationTable

MAX_WORDS = 1 << 24  # limit of memory for clauses over three types, in words of 64 bits

_HAS = 0  # row of a state's value: types that occur in some word to the state
_AVOIDS = 1  # types that are absent from some word to the state
_PAIRS = 2  # per type: types absent from some word with this type; then per type: types that occur before


@dataclass(frozen=True, slots=True)
class _Edges:
    """The edges of an automaton, sorted by source. ``events`` are the letters that some edge has.

    ``letter`` has indices into ``events``.
    """

    events: tuple[str, ...]
    source: Numbers
    letter: Numbers
    target: Numbers

    @classmethod
    def of(cls, automaton: ProcessAutomaton) -> _Edges:
        source, letter = np.nonzero(automaton.table != NOWHERE)
        used = np.unique(letter)
        return cls(
            tuple(automaton.letters[column] for column in used.tolist()),
            source,
            np.searchsorted(used, letter),
            automaton.table[source, letter].astype(np.int64),
        )


def extraction_of_automaton(automaton: ProcessAutomaton) -> Extraction:
    """Return exactly the constraints that hold on every word of an automaton.

    All states must be reachable. Letters without an edge are not events. Clauses over three types need memory for each
    state and each pair of types. Beyond ``MAX_WORDS`` they are left out, and a warning is added.
    """
    edges = _Edges.of(automaton)
    words = max(1, (len(edges.events) + 63) // 64)
    rows = _PAIRS + 2 * len(edges.events)
    has_room = len(automaton) * rows * words <= MAX_WORDS
    bits = _single_bits(len(edges.events), words)
    forward = _forward(automaton, edges, bits, rows if has_room else _PAIRS)
    backward = _backward(automaton, edges, bits)
    table = _pair_relations(edges, forward, backward, bits)
    if has_room:
        table, warnings = table.with_long_clauses(_long_clauses(edges, table, forward, backward))
        return table.to_extraction(Method.AUTOMATON, warnings)
    warning = (
        f"{len(automaton)} states and {len(edges.events)} event types: what holds of three types together was left "
        "out, as it would take too much memory; orders, exclusions, requirements and ends are complete"
    )
    return table.to_extraction(Method.AUTOMATON, [warning])


def _single_bits(count: int, words: int) -> Bits:
    """Return an array (types, words) with the set that contains only this type, for each of ``count`` types.

    A set is a bit mask of 64-bit words.
    """
    bits = np.zeros((count, words), np.uint64)
    places = np.arange(count)
    bits[places, places // 64] = np.uint64(1) << (places % 64).astype(np.uint64)
    return bits


def _forward(automaton: ProcessAutomaton, edges: _Edges, bits: Bits, rows: int) -> Bits:
    """Return sets of types for each state, propagated from the start, as an array (states, rows, words).

    The rows are ``_HAS``, ``_AVOIDS`` and, if ``rows`` has room for them, the rows for pairs of types.
    """
    count = len(edges.events)
    values = np.zeros((len(automaton), rows, bits.shape[1]), np.uint64)
    values[0, _AVOIDS] = _union(bits)
    has_pairs = rows > _PAIRS

    def carry(carried: Bits, some: Numbers) -> Bits:
        letters, numbers = edges.letter[some], np.arange(len(some))
        others = ~bits[letters]
        if has_pairs:
            carried[:, _PAIRS : _PAIRS + count] &= others[:, None]
            carried[numbers, _PAIRS + letters] |= carried[:, _AVOIDS] & others
            carried[numbers, _PAIRS + count + letters] |= carried[:, _HAS]
        carried[:, _HAS] |= bits[letters]
        carried[:, _AVOIDS] &= others
        return carried

    spread(Graph.of(len(automaton), edges.source, edges.target), values, np.zeros(1, np.int64), carry)
    return values


def _backward(automaton: ProcessAutomaton, edges: _Edges, bits: Bits) -> Bits:
    """Return for each state the set of types that are absent from some word from there to the end (states, words)."""
    order = np.argsort(edges.target, kind="stable")
    source, letter, target = edges.source[order], edges.letter[order], edges.target[order]
    values = np.zeros((len(automaton), bits.shape[1]), np.uint64)
    values[automaton.accepting] = _union(bits)

    def carry(carried: Bits, some: Numbers) -> Bits:
        return carried & ~bits[letter[some]]

    spread(Graph.of(len(automaton), target, source), values, np.flatnonzero(automaton.accepting), carry)
    return values


def _union(bits: Bits) -> Bits:
    everything: Bits = np.bitwise_or.reduce(bits, axis=0)
    return everything


def _pair_relations(edges: _Edges, forward: Bits, backward: Bits, bits: Bits) -> RelationTable:
    count = len(edges.events)
    follows = np.zeros((count, count), np.bool_)
    lacks = np.zeros((count, count), np.bool_)
    for letter, source, target in _by_letter(edges):
        follows[:, letter] = _unpacked(_union(forward[source, _HAS]), count)
        avoided = _union(forward[source, _AVOIDS] & backward[target]) & ~bits[letter]
        lacks[letter] = _unpacked(avoided, count)
    return RelationTable(
        events=edges.events,
        follows=follows,
        lacks=lacks,
        optional=_unpacked(backward[0], count),
    )


def _long_clauses(edges: _Edges, table: RelationTable, forward: Bits, backward: Bits) -> Iterator[Clause]:
    count = len(edges.events)
    without = np.zeros((count, count, count), np.bool_)  # (A, B, C): some trace has A and B, and no C
    together = np.zeros((count, count, count), np.bool_)
    for letter, source, target in _by_letter(edges):
        pairs = forward[source, _PAIRS : _PAIRS + count] & backward[target][:, None]
        without[:, letter] |= _unpacked(_union(pairs), count)
        together[letter] = _unpacked(_union(forward[source, _PAIRS + count :]), count)
    # the prefix of a word before an edge may lack the edge's letter, but the whole word has this letter
    places = np.arange(count)
    without[:, places, places] = False
    without |= without.transpose(1, 0, 2)
    together = np.logical_or.reduce([together.transpose(axes) for axes in permutations(range(3))])
    yield from _apart(table, together)
    meets_other = table.meets & ~np.eye(count, dtype=np.bool_)
    holds = ~without & meets_other[:, :, None] & table.lacks[:, None, :] & table.lacks[None, :, :]
    for first, second, head in np.argwhere(holds).tolist():
        if first < second:
            yield Clause(frozenset({table.events[first], table.events[second]}), table.events[head])


def _apart(table: RelationTable, together: Relation) -> Iterator[Clause]:
    meets = table.meets & ~np.eye(len(table.events), dtype=np.bool_)
    holds = ~together & meets[:, :, None] & meets[:, None, :] & meets[None, :, :]
    for group in np.argwhere(holds).tolist():
        if group == sorted(group):
            yield Clause(frozenset(table.events[place] for place in group), None)


def _by_letter(edges: _Edges) -> Iterator[tuple[int, Numbers, Numbers]]:
    order = np.argsort(edges.letter, kind="stable")
    bounds = np.searchsorted(edges.letter[order], np.arange(len(edges.events) + 1))
    for letter, (first, last) in enumerate(pairwise(bounds)):
        some = order[first:last]
        yield letter, edges.source[some], edges.target[some]


def _unpacked(sets: Bits, count: int) -> NDArray[np.bool_]:
    """Return the members of bit sets over ``count`` types as truth values on the last axis."""
    as_bytes = np.ascontiguousarray(sets.astype("<u8")).view(np.uint8)
    return np.unpackbits(as_bytes, axis=-1, count=count, bitorder="little").astype(np.bool_)
