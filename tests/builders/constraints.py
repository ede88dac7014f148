"""Helpers for tests: patterns from nested values, an exhaustive oracle, and random constraint sets, queries and words.

The oracle uses neither closure nor graph (constraint-aware CEP, section 9.1): it searches over the names shown by a
trace and the atoms bound by a partial match. ``conforms`` and ``occurs_in`` follow the definitions of section 2
directly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from random import Random
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

from hypothesis import strategies as st

from constraints.model import Clause, Constraint, ConstraintSet, Exclusive, Prior, Require
from constraints.monitoring.monitor import Monitor
from constraints.remainder import Gap, Remainder
from nfa import (
    Atom,
    Attribute,
    Comparison,
    Conjunction,
    Disjunction,
    EventClass,
    Item,
    Literal,
    MonitorState,
    Node,
    Pattern,
    PatternState,
    Query,
    Symbol,
    build_query,
)
from nfa import Sequence as Seq
from streams import Event

Tree: TypeAlias = "str | tuple[Tree, ...]"
Sign: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]

SIGNS: tuple[Sign, ...] = ("=", "!=", "<", "<=", ">", ">=")

_OPERATORS: dict[str, Callable[[tuple[Node, ...]], Node]] = {"AND": Conjunction, "OR": Disjunction}
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def query_of(tree: Tree, name: str = "p") -> Query:
    """A query from nested tuples, such as ``("SEQ", "X", ("AND", "A q", "B"))``.

    A step is ``"Type alias"``; without an alias it is named by its type, and numbered if that name is taken. In a SEQ,
    ``"NOT Type"`` is a type that must not come.
    """
    return build_query(Pattern(name=name, event=_node(tree, set())))


def _node(tree: Tree, taken: set[str]) -> Node:
    if isinstance(tree, str):
        return _atom(tree, taken)
    word, *parts = tree
    if word == "SEQ":
        return Seq(tuple(_item(part, taken) for part in parts))
    return _OPERATORS[str(word)](tuple(_node(part, taken) for part in parts))


def _item(tree: Tree, taken: set[str]) -> Item:
    if isinstance(tree, str) and tree.startswith("NOT "):
        return Item(negated=_atom(tree.removeprefix("NOT "), taken))
    return Item(of=_node(tree, taken))


def _atom(text: str, taken: set[str]) -> Atom:
    event_type, _, alias = text.partition(" ")
    alias = alias or next(
        free for free in (event_type, *(f"{event_type}{n}" for n in range(2, 99))) if free not in taken
    )
    taken.add(alias)
    return Atom((event_type,), alias)


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of event in a test: the names that it shows, including its type, and the value of its attribute ``v``."""

    type: str
    shows: frozenset[str]
    value: int | None = None

    def serves(self, atom: Atom) -> bool:
        """Whether a step takes the event; the step has no condition, or one comparison of ``v`` with a whole number."""
        if atom.type != self.type or not isinstance(atom.condition, Comparison):
            return atom.type == self.type
        assert isinstance(atom.condition.right, Literal)
        constant = atom.condition.right.value
        return (
            self.value is not None
            and isinstance(constant, int)
            and _RELATIONS[atom.condition.operator](self.value, constant)
        )


def compared(event_type: str, sign: Sign, constant: int, alias: str = "s") -> Atom:
    """The step ``event_type [v sign constant]``."""
    return Atom((event_type,), alias, Comparison(sign, Attribute(("v",)), Literal(constant)))


def shapes_of(
    types: Iterable[str], constraint_set: ConstraintSet, values: Iterable[int | None] = (None,)
) -> list[Shape]:
    """All kinds of events of some types that constraints or steps can distinguish, for some values of ``v``."""
    listed = list(values)
    found = []
    for name in sorted(types):
        for value in listed:
            plain = Shape(name, frozenset({name}), value)
            symbols = {key for key, symbol in constraint_set.symbols.items() if plain.serves(symbol.step)}
            found.append(Shape(name, plain.shows | symbols, value))
    return found


class _Moment(NamedTuple):
    """The state of a continuation; ``fresh`` and ``now`` are always empty in the order of the log.

    Attributes:
        past: Names that block: those so far, or if events with equal timestamps are unordered, those before the newest
            time.
        fresh: Atoms bound at the newest time.
        now: Event types at the newest time.
        is_first: Whether the newest time is still that of the prefix.
    """

    shown: frozenset[str]
    past: frozenset[str]
    bound: frozenset[int] = frozenset()
    fresh: frozenset[int] = frozenset()
    now: frozenset[str] = frozenset()
    is_first: bool = True


def oracle_alive(
    constraint_set: ConstraintSet,
    seen: frozenset[str],
    remainder: Remainder,
    *,
    settled: frozenset[str] | None = None,
    shapes: Sequence[Shape] | None = None,
) -> bool:
    """``alive`` by exhaustive search over continuations of any length, with any number of events at one time.

    Only the names of the prefix are known, so anything that may have been bound at its newest time counts as bound.
    """
    events = shapes or shapes_of(constraint_set.types | remainder.types, constraint_set)
    start = _Moment(seen, seen if settled is None else settled)
    if any(gap.since is None and gap.type in start.past for gap in remainder.gaps):
        return False
    allowed: dict[frozenset[str], list[Shape]] = {}
    reached, waiting = {start}, [start]
    while waiting:
        moment = waiting.pop()
        is_clear = _is_clear(remainder, moment)
        if is_clear and len(moment.bound) == len(remainder.atoms) and _keeps_clauses(constraint_set, moment.shown):
            return True
        if moment.past not in allowed:
            allowed[moment.past] = [event for event in events if not _is_blocked(constraint_set, moment.past, event)]
        following = [
            after for event in allowed[moment.past] for after in _after(remainder, moment, event, settled is None)
        ]
        if settled is not None and is_clear:
            following.append(_Moment(moment.shown, moment.shown, moment.bound, is_first=False))
        waiting.extend(set(following) - reached)
        reached.update(following)
    return False


def _is_blocked(constraint_set: ConstraintSet, past: frozenset[str], event: Shape) -> bool:
    return any(constraint_set.blocks(past, name) for name in event.shows)


def _after(remainder: Remainder, moment: _Moment, event: Shape, is_log: bool) -> Iterator[_Moment]:
    shown = moment.shown | event.shows
    for bound in _bindings(remainder, moment.bound, moment.fresh, event):
        if not is_log:
            fresh, now = moment.fresh | bound - moment.bound, moment.now | {event.type}
            yield _Moment(shown, moment.past, bound, fresh, now, moment.is_first)
        elif not any(
            gap.type == event.type and (gap.since or frozenset()) <= moment.bound and not gap.until & bound
            for gap in remainder.gaps
        ):
            yield _Moment(shown, shown, bound)


def _is_clear(remainder: Remainder, moment: _Moment) -> bool:
    """Whether no event of the newest time lies in a gap that was open before this time and stays open."""
    return not any(
        gap.type in moment.now
        and (gap.since or frozenset()) <= moment.bound - moment.fresh
        and not gap.until & moment.bound
        and not (moment.is_first and gap.since is not None and not gap.since)
        for gap in remainder.gaps
    )


def _bindings(
    remainder: Remainder, bound: frozenset[int], fresh: frozenset[int], event: Shape
) -> Iterator[frozenset[int]]:
    yield bound
    for index, atom in enumerate(remainder.atoms):
        if index not in bound and event.serves(atom) and remainder.before[index] <= bound - fresh:
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
    """Whether distinct events of ``word`` serve all atoms in their order and keep the gaps free, by definition."""
    return any(
        all(
            word[place] == atom.type and all(places[other] < place for other in before)
            for place, atom, before in zip(places, remainder.atoms, remainder.before, strict=True)
        )
        and all(
            word[place] != gap.type
            for gap in remainder.gaps
            for place in range(
                max((places[index] for index in gap.since or ()), default=-1) + 1,
                min((places[index] for index in gap.until), default=len(word)),
            )
        )
        for places in permutations(range(len(word)), len(remainder.atoms))
    )


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An event of a trace in a test; ``is_taken`` is whether it satisfies the conditions of the atoms it meets."""

    type: str
    is_taken: bool = True


def steps_of(text: str) -> tuple[TraceStep, ...]:
    """Steps from a text such as ``"A B! C"``; the mark means that the event fails every condition."""
    return tuple(TraceStep(word.rstrip("!"), not word.endswith("!")) for word in text.split())


def occupied_states(query: Query, steps: Sequence[TraceStep]) -> frozenset[PatternState]:
    """The incomplete states that partial matches reach, in all combinations, by definition."""
    occupied = {PatternState(term, frozenset()) for term in range(len(query.terms))}
    for step in steps:
        for state in tuple(occupied):
            term = query.terms[state.term]
            whole = Remainder(term.atoms, term.before)
            if step.is_taken:
                event = Shape(step.type, frozenset({step.type}))
                bindings = _bindings(whole, state.bound, frozenset(), event)
                occupied.update(PatternState(state.term, bound) for bound in bindings)
    return frozenset(occupied & set(query.states))


def words(types: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
    """All words over some types, short ones first."""
    for length in range(longest + 1):
        yield from product(types, repeat=length)


def constraint_sets(
    types: Sequence[str], *, max_size: int = 7, is_long: bool = True
) -> st.SearchStrategy[ConstraintSet]:
    """Random sets over ``types``, with clauses of up to three types if ``is_long``, sometimes with an end event."""
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


def random_set(random: Random, names: Sequence[str], size: int) -> ConstraintSet:
    """A random set like those of ``constraint_sets``, without symbols; for seeded loops over many."""
    found: list[Constraint] = []
    for _ in range(size):
        kind = random.random()
        one, other = random.sample(names, 2)
        if kind < 0.45:
            found.append(Prior(one, random.choice(names)))
        elif kind < 0.6:
            found.append(Exclusive(one, other))
        elif kind < 0.85:
            found.append(Require(one, other))
        elif kind < 0.9:
            found.append(Clause(frozenset(), one))
        else:
            body = frozenset(random.sample(names, random.choice([2, 3])))
            head = random.choice([None, *names])
            found.append(Clause(body, None if head in body else head))
    return ConstraintSet(tuple(found), frozenset(random.sample(names, random.choice([0, 0, 0, 1]))))


def random_remainder(random: Random, types: Sequence[str], atoms: int, gaps: int) -> Remainder:
    """Atoms in a random partial order with random gaps, some of them open or until the end of the trace."""
    steps = tuple(Atom((random.choice(types),), f"a{index}") for index in range(atoms))
    before: list[frozenset[int]] = []
    for index in range(atoms):
        direct = [other for other in range(index) if random.random() < 0.4]
        before.append(frozenset(direct).union(*(before[other] for other in direct)))
    found = []
    for _ in range(gaps):
        until = frozenset(index for index in range(atoms) if random.random() < 0.4)
        earlier = frozenset[int]().union(*(before[index] for index in until)) if until else frozenset(range(atoms))
        since = frozenset(index for index in earlier - until if random.random() < 0.7)
        is_leading = bool(until) and not since and random.random() < 0.5
        found.append(Gap(type=random.choice(types), since=None if is_leading else since, until=until))
    return Remainder(steps, tuple(before), tuple(found))


def random_symbols(random: Random, types: Sequence[str], count: int) -> dict[str, Symbol]:
    """Symbols that compare ``v`` with 0, 1 or 2."""
    steps = [compared(random.choice(types), random.choice(SIGNS), random.randrange(3)) for _ in range(count)]
    return {symbol.name: symbol for symbol in map(Symbol, steps)}


def with_conditions(random: Random, remainder: Remainder) -> Remainder:
    """The remainder with random comparisons of ``v`` at some of its atoms."""
    atoms = tuple(
        atom if random.random() < 0.5 else compared(atom.type, random.choice(SIGNS), random.randrange(3), atom.alias)
        for atom in remainder.atoms
    )
    return replace(remainder, atoms=atoms)


def random_query(random: Random, types: Sequence[str], atoms: int, *, has_absence: bool = False) -> Query:
    """A pattern with a number of steps, possibly with NOTs."""
    trees: list[Tree] = [random.choice(types) for _ in range(atoms)]
    while len(trees) > 1:
        place = random.randrange(len(trees) - 1)
        parts: list[Tree] = [trees[place], trees[place + 1]]
        word = random.choice(["SEQ", "SEQ", "AND", "OR"])
        if word == "SEQ" and has_absence and random.random() < 0.5:
            parts.insert(random.choice([0, 1]), f"NOT {random.choice(types)}")
        trees[place : place + 2] = [(word, *parts)]
    is_trailing = has_absence and random.random() < 0.5
    return query_of(("SEQ", trees[0], f"NOT {random.choice(types)}") if is_trailing else trees[0])


def keeping(constraint_set: ConstraintSet, events: list[Event]) -> list[Event]:
    """The given events without those at which their trace would deviate."""
    monitor = Monitor(constraint_set)
    states: dict[str, MonitorState] = {}
    kept = []
    for event in events:
        after = monitor.step(states.get(event.key, monitor.start), EventClass(type=event.type))
        if after is not None:
            states[event.key] = monitor.start if event.type in constraint_set.end_events else after
            kept.append(event)
    return kept
