"""Helpers for tests: small automata, constraints that hold in them, and constraint sets that follow them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from random import Random

from constraints.model import Constraint, ConstraintSet, Exclusive, Part, Prior, Require, Settings, following
from constraints.process.automaton import NOWHERE, ProcessAutomaton


def followed(
    automaton: ProcessAutomaton, parts: Iterable[Part] = (), settings: Settings | None = None
) -> ConstraintSet:
    """Some parts, joined with the workflow ``order`` of an automaton and all pairs that hold in it."""
    return following(
        ConstraintSet.of(parts, settings=settings),
        workflow="order",
        version=1,
        constraints=pairs_of(automaton),
        end_events=ends_of(automaton),
        automaton=automaton,
    )


def of_words(text: str) -> ProcessAutomaton:
    """The automaton of a finite list of words of one-letter types, such as ``AB AC``."""
    moves: list[dict[str, int]] = [{}]
    accepting = set()
    for word in text.split():
        place = 0
        for name in word:
            if name not in moves[place]:
                moves[place][name] = len(moves)
                moves.append({})
            place = moves[place][name]
        accepting.add(place)
    found = minimised(sorted({name for row in moves for name in row}), moves, accepting)
    assert found is not None
    return found


def random_automaton(
    random: Random, letters: Sequence[str], states: int, *, is_acyclic: bool = False
) -> ProcessAutomaton:
    """A random minimal automaton of at most ``states`` states, with some trace of at least one event."""
    while True:
        moves: list[dict[str, int]] = []
        for place in range(states):
            least = place + 1 if is_acyclic else 0
            usable = [name for name in letters if random.random() < 0.6] if least < states else []
            moves.append({name: random.randrange(least, states) for name in usable})
        accepting = {place for place in range(states) if random.random() < 0.35}
        found = minimised(letters, moves, accepting)
        if found is not None and len(found) > 1:
            return found


def language_of(constraint_set: ConstraintSet, types: Iterable[str]) -> ProcessAutomaton:
    """All complete traces over some types that keep orders, clauses and end events, by definition."""
    letters = sorted(types)
    shown, moves = [frozenset[str]()], list[dict[str, int]]()
    for seen in shown:
        moves.append({})
        for name in letters:
            if not constraint_set.blocks(seen, name):
                after = seen | {name}
                if after not in shown:
                    shown.append(after)
                moves[-1][name] = shown.index(after)
    accepting = [
        place
        for place, seen in enumerate(shown)
        if all(not clause.body <= seen or clause.head in seen for clause in constraint_set.clauses)
    ]
    found = minimised(letters, moves, accepting)
    assert found is not None
    return found


def minimised(
    letters: Iterable[str], moves: Sequence[Mapping[str, int]], accepting: Collection[int]
) -> ProcessAutomaton | None:
    """The minimal automaton of a language by Moore's refinement, numbered breadth first; None if it has no word."""
    hopeful = set(accepting)
    while more := {place for place, row in enumerate(moves) if place not in hopeful and hopeful & set(row.values())}:
        hopeful |= more
    kept = [{name: after for name, after in row.items() if after in hopeful} for row in moves]
    block = [int(place in accepting) for place in range(len(moves))]
    while True:
        ways = [sorted((name, block[after]) for name, after in row.items()) for row in kept]
        looks = [(own, tuple(way)) for own, way in zip(block, ways, strict=True)]
        numbers = {look: number for number, look in enumerate(dict.fromkeys(looks))}
        if len(numbers) == len(set(block)):
            break
        block = [numbers[look] for look in looks]
    order, number_of = [0], {block[0]: 0}
    for place in order:
        for _, after in sorted(kept[place].items()):
            if block[after] not in number_of:
                number_of[block[after]] = len(order)
                order.append(after)
    rows = [{name: number_of[block[after]] for name, after in kept[place].items()} for place in order]
    ends = [number for number, place in enumerate(order) if place in accepting]
    return ProcessAutomaton.of(letters, rows, ends) if 0 in hopeful else None


def ends_of(automaton: ProcessAutomaton) -> frozenset[str]:
    """The types that occur in some trace of a trimmed automaton and that nothing ever follows."""
    ends = set()
    for code, name in enumerate(automaton.letters):
        places = set(automaton.table[:, code].tolist()) - {NOWHERE}
        if places and not any(automaton.allowed(place) for place in places):
            ends.add(name)
    return frozenset(ends)


def pairs_of(automaton: ProcessAutomaton) -> tuple[Constraint, ...]:
    """Every order, exclusion and requirement between two types that holds in all complete traces, by exhaustion."""
    start = (0, frozenset[str](), frozenset[tuple[str, str]]())
    reached, waiting = {start}, [start]
    while waiting:
        place, seen, followed = waiting.pop()
        for name in automaton.allowed(place):
            after = automaton.step(place, name)
            assert after is not None
            moment = (after, seen | {name}, followed | {(one, name) for one in seen})
            if moment not in reached:
                reached.add(moment)
                waiting.append(moment)
    traces = [(seen, followed) for place, seen, followed in reached if automaton.accepting[place]]
    found: list[Constraint] = []
    for one, other in product(automaton.letters, repeat=2):
        if not any((other, one) in followed for _, followed in traces):
            found.append(Prior(one, other))
        if one < other and not any({one, other} <= seen for seen, _ in traces):
            found.append(Exclusive(one, other))
        if one != other and all(other in seen for seen, _ in traces if one in seen):
            found.append(Require(one, other))
    return tuple(found)
