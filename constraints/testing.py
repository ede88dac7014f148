"""For tests: patterns from nested values, an exhaustive oracle, and random constraint sets, queries and words.

The oracle knows neither closure nor graph (constraint-aware CEP, section 9.1): it searches over what a trace has shown
and what a partial match has bound. ``conforms`` and ``occurs_in`` go further back, to the definitions of section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeAlias

from hypothesis import strategies as st

from constraints.model import Clause, Constraint, ConstraintSet, Exclusive, Prior, Require
from constraints.remainder import Remainder
from nfa import Atom, Conjunction, Disjunction, Node, Pattern, PatternState, Query, build_query
from nfa import Sequence as Seq

Tree: TypeAlias = "str | tuple[Tree, ...]"

_OPERATORS: dict[str, Callable[[tuple[Node, ...]], Node]] = {
    "SEQ": lambda parts: Seq.of(*parts),
    "AND": Conjunction,
    "OR": Disjunction,
}


def query_of(tree: Tree, name: str = "p") -> Query:
    """A query from nested tuples, such as ``("SEQ", "X", ("AND", "A q", "B"))``.

    A step is ``"Type alias"``; without an alias it is named by its type, and numbered if that name is taken.
    """
    return build_query(Pattern(name=name, event=_node(tree, set())))


def _node(tree: Tree, taken: set[str]) -> Node:
    if isinstance(tree, str):
        event_type, _, alias = tree.partition(" ")
        alias = alias or next(
            free for free in (event_type, *(f"{event_type}{n}" for n in range(2, 99))) if free not in taken
        )
        taken.add(alias)
        return Atom((event_type,), alias)
    operator, *parts = tree
    return _OPERATORS[str(operator)](tuple(_node(part, taken) for part in parts))


def oracle_alive(constraint_set: ConstraintSet, seen: frozenset[str], remainder: Remainder) -> bool:
    """``alive`` by exhaustive search over continuations of every length."""
    types = sorted(constraint_set.types | remainder.types)
    start = (seen, frozenset[int]())
    reached, waiting = {start}, [start]
    while waiting:
        shown, bound = waiting.pop()
        if len(bound) == len(remainder.atoms) and _keeps_clauses(constraint_set, shown):
            return True
        for name in types:
            if not constraint_set.blocks(shown, name):
                for taken in _bindings(remainder, bound, name):
                    state = (shown | {name}, taken)
                    if state not in reached:
                        reached.add(state)
                        waiting.append(state)
    return False


def _bindings(remainder: Remainder, bound: frozenset[int], name: str) -> Iterator[frozenset[int]]:
    yield bound
    for index, atom in enumerate(remainder.atoms):
        if index not in bound and atom.type == name and remainder.before[index] <= bound:
            yield bound | {index}


def _keeps_clauses(constraint_set: ConstraintSet, occurring: frozenset[str]) -> bool:
    return all(not clause.body <= occurring or clause.head in occurring for clause in constraint_set.clauses)


def conforms(constraint_set: ConstraintSet, word: Sequence[str]) -> bool:
    """Whether a complete trace keeps every constraint, by definition."""
    ordered = all(
        not constraint_set.comes_before(word[late], word[early]) for late in range(len(word)) for early in range(late)
    )
    return ordered and _keeps_clauses(constraint_set, frozenset(word))


def occurs_in(remainder: Remainder, word: Sequence[str]) -> bool:
    """Whether distinct events of ``word`` serve all atoms in their order, by definition."""
    return any(
        all(
            word[place] == atom.type and all(places[other] < place for other in before)
            for place, atom, before in zip(places, remainder.atoms, remainder.before, strict=True)
        )
        for places in permutations(range(len(word)), len(remainder.atoms))
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a trace in a test; ``is_taken`` says whether it passes the predicates of the atoms it meets."""

    type: str
    is_taken: bool = True


def steps_of(text: str) -> tuple[Step, ...]:
    """``"A B! C"``; the mark says that the event fails every predicate."""
    return tuple(Step(word.rstrip("!"), not word.endswith("!")) for word in text.split())


def occupied_states(query: Query, steps: Sequence[Step]) -> frozenset[PatternState]:
    """The incomplete states that partial matches reach, every combination counted, by definition."""
    occupied = {PatternState(term, frozenset()) for term in range(len(query.terms))}
    for step in steps:
        for state in tuple(occupied):
            term = query.terms[state.term]
            whole = Remainder(term.atoms, term.before)
            if step.is_taken:
                occupied.update(PatternState(state.term, bound) for bound in _bindings(whole, state.bound, step.type))
    return frozenset(occupied & set(query.states))


def words(types: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
    """Every word over some types, short ones first."""
    for length in range(longest + 1):
        yield from product(types, repeat=length)


def constraint_sets(
    types: Sequence[str], *, max_size: int = 7, is_long: bool = True
) -> st.SearchStrategy[ConstraintSet]:
    """Random sets over ``types``, with clauses of up to three types if ``is_long``, at times with an end event."""
    name = st.sampled_from(types)
    apart = st.builds(
        lambda place, distance: (types[place], types[(place + distance) % len(types)]),
        st.integers(0, len(types) - 1),
        st.integers(1, len(types) - 1),
    )
    kinds: list[st.SearchStrategy[Constraint]] = [
        st.builds(Prior, name, name),
        apart.map(lambda pair: Prior(*pair)),
        apart.map(lambda pair: Exclusive(*pair)),
        apart.map(lambda pair: Require(*pair)),
    ]
    if is_long:
        bodies = st.frozensets(name, min_size=2, max_size=3)
        kinds.append(st.builds(lambda body, head: Clause(body, None if head in body else head), bodies, name))
        kinds.append(st.builds(Clause, st.just(frozenset[str]()), name))
    ends = st.just(frozenset[str]()) | st.frozensets(name, max_size=1)
    sizes = st.integers(0, max_size)
    constraints = sizes.flatmap(lambda size: st.lists(st.one_of(kinds), min_size=size, max_size=size))
    return st.builds(ConstraintSet, constraints.map(tuple), ends)


@st.composite
def queries(draw: st.DrawFn, types: Sequence[str], *, max_atoms: int = 4) -> Query:
    """Random patterns over ``types``."""
    size = draw(st.integers(1, max_atoms))
    trees: list[Tree] = draw(st.lists(st.sampled_from(types), min_size=size, max_size=size))
    while len(trees) > 1:
        place = draw(st.integers(0, len(trees) - 2))
        trees[place : place + 2] = [(draw(st.sampled_from(["SEQ", "AND", "OR"])), trees[place], trees[place + 1])]
    return query_of(trees[0])
