"""Translation of a guard's answers: from the terms of a pattern to the states of its automaton.

A state of the automaton represents one pattern state, that is, a term and its bound atoms, for each alternative of the
pattern that is still open. The state can complete if one of these pattern states can. If the query has partitions
instead of terms, the state can complete if all partitions that have begun can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nfa.automata.iterations import is_coarse, reasoned
from nfa.automata.partitions import partition_progress
from nfa.automata.pattern_automaton import PatternAutomaton
from nfa.automata.progress import NOT_BEGUN, Outline, Progress
from nfa.automata.query import AtomKey, PatternState, Query
from nfa.syntax import Atom, Conjunction, Disjunction, Repeat
from nfa.syntax import Sequence as SequenceNode

_ROOT = 0
_LAST_BIT = 30
Part = tuple[frozenset[AtomKey], frozenset[AtomKey]]
"""An alternative of a part of a pattern: the set of its atoms, and the subset of atoms that are bound."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """A partition of a query in which a partial match must still bind events, as a node of a tree.

    A partition is the whole pattern or one alternative of an OR (see ``Partition``). The node can complete only if its
    pattern state can, and if each choice has at least one alternative that can.

    Attributes:
        state: The pattern state of the partition, or None if all of the partition's own atoms are bound.
        choices: The ORs of the partition that are still undecided, each as a tuple of alternatives.
    """

    state: PatternState | None
    choices: tuple[tuple[Remaining, ...], ...]

    def states(self) -> Iterator[PatternState]:
        """Yield the pattern states of this node and of all nodes below it, this node's first."""
        if self.state is not None:
            yield self.state
        for choice in self.choices:
            for alternative in choice:
                yield from alternative.states()


@dataclass(frozen=True, slots=True)
class GuardView:
    """The pattern states about which guards are asked, for each state of a pattern's automaton.

    Attributes:
        pattern_states: For each state of the automaton, its pattern states. If all atoms of a pattern state are bound,
            it is included only if its term has a trailing NOT.
        free_terms: For each state of the automaton, its terms that have all atoms bound and no trailing NOT. No guard
            can rule them out.
        remaining: The pattern states that each state of the automaton still needs to complete. It is empty unless the
            query has partitions.
        negations: The negated steps of all trailing NOTs, including NOTs with a condition or limit, in the order of the
            text, without duplicates.
        terms_of_state: (states,) uint32: the terms of each state of the automaton. Term ``n`` is bit ``n``. All terms
            from the 30th on share a bit. All partitions together count as a single term.
    """

    query: Query
    pattern_states: tuple[tuple[PatternState, ...], ...]
    free_terms: tuple[tuple[int, ...], ...]
    remaining: tuple[Remaining, ...] = ()
    negations: tuple[Atom, ...] = ()
    terms_of_state: NDArray[np.uint32] = field(init=False, repr=False, compare=False)
    _places: dict[PatternState, int] = field(init=False, repr=False, compare=False)
    _columns: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _bits: NDArray[np.uint32] = field(init=False, repr=False, compare=False)
    _starts: NDArray[np.intp] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {state: place for place, state in enumerate(self.query.states)}
        columns: list[int] = []
        bits: list[int] = []
        starts: list[int] = []
        for states, free in zip(self.pattern_states, self.free_terms, strict=True):
            starts.append(len(columns))
            columns.append(len(places))  # the column that ``live_terms`` appends, which is always true
            bits.append(int(np.bitwise_or.reduce([0, *map(term_bit, free)])))
            columns += [places[state] for state in states]
            bits += [1 if self.query.partitions else term_bit(state.term) for state in states]
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_columns", np.array(columns, np.intp))
        object.__setattr__(self, "_bits", np.array(bits, np.uint32))
        object.__setattr__(self, "_starts", np.array(starts, np.intp))
        object.__setattr__(self, "terms_of_state", np.bitwise_or.reduceat(self._bits, self._starts))

    @property
    def is_free(self) -> tuple[bool, ...]:
        """For each state, whether some term needs no further event, so that no guard can rule out the state."""
        return tuple(bool(free) for free in self.free_terms)

    def live(self, of_query: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the automaton's states that can still complete.

        ``of_query`` is a guard's answer: a mask of the states of the query, in the order of ``query.states``.
        """
        return np.not_equal(self.live_terms(of_query), 0)

    def live_terms(self, of_query: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Return, for each state of the automaton, bits of the terms that can still complete.

        ``of_query`` is as in ``live``. The bits are as in ``terms_of_state``.
        """
        if self.remaining:
            is_live_state = [
                bool(free) or self._can_complete(remaining, of_query)
                for free, remaining in zip(self.free_terms, self.remaining, strict=True)
            ]
            return np.array(is_live_state, np.uint32)
        is_live = np.append(of_query, np.True_)[self._columns]
        return np.bitwise_or.reduceat(np.where(is_live, self._bits, np.uint32(0)), self._starts)

    def ended(self, state: int, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> PatternState:
        """Return the pattern state to report as the reason why an event killed an automaton state.

        ``before`` and ``after`` are a guard's answers before and after the event, in the order of ``query.states``. The
        result is the first pattern state that was alive before and is dead after the event. If no such pattern state
        exists, the result is the first dead pattern state. This happens because bit tables may detect dead states late.
        """
        dead = [pattern_state for pattern_state in self.pattern_states[state] if not after[self._places[pattern_state]]]
        return next((pattern_state for pattern_state in dead if before[self._places[pattern_state]]), dead[0])

    def _can_complete(self, remaining: Remaining, of_query: NDArray[np.bool_]) -> bool:
        if remaining.state is not None and not of_query[self._places[remaining.state]]:
            return False
        return all(
            any(self._can_complete(alternative, of_query) for alternative in choice) for choice in remaining.choices
        )


def guard_view(automaton: PatternAutomaton, query: Query) -> GuardView:
    """Return the view that translates a guard's answers about a query to the states of an automaton."""
    if query.partitions:
        return _of_partitions(automaton, query)
    terms = {frozenset(term.keys): index for index, term in enumerate(query.terms)}
    places = [{key: place for place, key in enumerate(term.keys)} for term in query.terms]
    shared_states = {
        state: state for state in query.states
    }  # a single object for each pattern state, because there may be many large ones
    alternatives = _Alternatives(automaton.outline, is_coarse(automaton.pattern.event))
    pattern_states = []
    free_terms = []
    for progress in automaton.states:
        represented: dict[PatternState, None] = {}
        free: dict[int, None] = {}
        for keys, bound in alternatives.of(_ROOT, progress, ()):
            term = terms[keys]
            if bound == keys and not query.terms[term].is_trailing:
                free[term] = None
            else:
                state = PatternState(term, frozenset(places[term][key] for key in bound))
                represented[shared_states.get(state, state)] = None
        pattern_states.append(tuple(represented))
        free_terms.append(tuple(free))
    return GuardView(
        query=query,
        pattern_states=tuple(pattern_states),
        free_terms=tuple(free_terms),
        negations=_negations(automaton),
    )


def _of_partitions(automaton: PatternAutomaton, query: Query) -> GuardView:
    remaining = []
    for progress in automaton.states:
        partition_states = partition_progress(automaton.pattern, progress)
        remaining.append(_remaining(query, 0, partition_states.bound, partition_states.closed))
    return GuardView(
        query=query,
        pattern_states=tuple(tuple(needs.states()) for needs in remaining),
        free_terms=tuple(() if needs.state or needs.choices else (0,) for needs in remaining),
        remaining=tuple(remaining),
        negations=_negations(automaton),
    )


def _remaining(query: Query, number: int, bound: frozenset[AtomKey], closed: frozenset[int]) -> Remaining:
    term, partition = query.terms[number], query.partitions[number]
    bound_places = frozenset(place for place, key in enumerate(term.keys) if key in bound)
    choices = []
    for choice in partition.choices:
        alternatives = [_remaining(query, child, bound, closed) for child in choice if child not in closed]
        if not any(alternative.state is None and not alternative.choices for alternative in alternatives):
            choices.append(tuple(alternatives))
    is_needed = not partition.own <= bound_places
    return Remaining(PatternState(number, bound_places) if is_needed else None, tuple(choices))


def _negations(automaton: PatternAutomaton) -> tuple[Atom, ...]:
    numbers = {
        negation.number for finishes in automaton.finishes for finish in finishes for negation in finish.negations
    }
    return tuple(dict.fromkeys(automaton.outline.negated[number] for number in sorted(numbers)))


def term_bit(term: int) -> int:
    """Return the bit of a term in ``GuardView.terms_of_state``."""
    return 1 << min(term, _LAST_BIT)


class _Alternatives:
    def __init__(self, outline: Outline, coarse: bool) -> None:
        self._outline = outline
        self._coarse = coarse
        self._unbegun: dict[tuple[int, tuple[int, ...]], list[Part]] = {}
        self._all_bound: dict[tuple[int, tuple[int, ...]], list[Part]] = {}

    def of(self, number: int, progress: Progress, iterations: tuple[int, ...]) -> list[Part]:
        """Return the alternatives of a part of the pattern that ``progress`` has not ruled out."""
        if progress is not None:
            return self._computed(number, progress, iterations)
        place = number, iterations
        if place not in self._unbegun:
            self._unbegun[place] = self._computed(number, None, iterations)
        return self._unbegun[place]

    def _finished(self, number: int, iterations: tuple[int, ...]) -> list[Part]:
        place = number, iterations
        if place not in self._all_bound:
            self._all_bound[place] = [(keys, keys) for keys, _ in self.of(number, None, iterations)]
        return self._all_bound[place]

    def _computed(self, number: int, progress: Progress, iterations: tuple[int, ...]) -> list[Part]:
        node, children = self._outline.nodes[number], self._outline.children[number]
        match node:
            case Atom():
                return self._of_atom(node, number, progress, iterations)
            case Disjunction():
                inner = None if progress is None else progress[1]
                open_children = [
                    child for place, child in enumerate(children) if progress is None or progress[0] == place
                ]
                return [part for child in open_children for part in self.of(child, inner, iterations)]
            case SequenceNode():
                position, inner = NOT_BEGUN if progress is None else progress
                return _joined(
                    self._finished(child, iterations)
                    if place < position
                    else self.of(child, inner if place == position else None, iterations)
                    for place, child in enumerate(children)
                    if child >= 0
                )
            case Conjunction():
                inners = [None] * len(children) if progress is None else progress[1]
                pairs = zip(children, inners, strict=True)
                return _joined(self.of(child, inner, iterations) for child, inner in pairs)
            case Repeat():
                return self._of_repeat(node, children[0], progress, iterations)
        raise AssertionError(node)

    def _of_repeat(self, node: Repeat, child: int, progress: Progress, iterations: tuple[int, ...]) -> list[Part]:
        finished, inner = NOT_BEGUN if progress is None else progress[:2]
        return _joined(
            self._finished(child, (*iterations, iteration))
            if iteration < finished
            else self.of(child, inner if iteration == finished else None, (*iterations, iteration))
            for iteration in reasoned(node, coarse=self._coarse)
        )

    def _of_atom(self, atom: Atom, number: int, progress: Progress, iterations: tuple[int, ...]) -> list[Part]:
        if atom.is_any_type:
            return [(frozenset(), frozenset())]
        place = self._outline.atom_numbers[number]
        alternatives = [frozenset({(place, iterations, name)}) for name in dict.fromkeys(atom.types)]
        return [(keys, frozenset() if progress is None else keys) for keys in alternatives]


def _joined(alternatives: Iterable[list[Part]]) -> list[Part]:
    return [
        (frozenset().union(*(keys for keys, _ in parts)), frozenset().union(*(bound for _, bound in parts)))
        for parts in product(*alternatives)
    ]
