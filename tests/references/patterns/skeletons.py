"""Skeletons (section 4.1): every choice of alternatives and of iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from nfa.syntax import Atom, Conjunction, Disjunction, Gap, Node, Repeat, Sequence, atoms_of
from streams import Event

Place: TypeAlias = tuple[int, ...]  # of a node in the syntax tree: which child of which child
Budget: TypeAlias = Callable[[Repeat], int]


@dataclass(frozen=True, slots=True)
class AtomPart:
    """One occurrence; ``is_bound`` is false for the next one that a partial match could bind."""

    atom: Atom
    is_bound: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a row: a part, or a step that must not occur there."""

    part: Part | None
    negated: Atom | None
    gap: Gap | None


@dataclass(frozen=True, slots=True)
class Row:
    """A SEQ with chosen parts."""

    entries: tuple[Entry, ...]
    within_us: int | None


@dataclass(frozen=True, slots=True)
class Loop:
    """The iterations of a repetition, each chosen independently."""

    repeat: Repeat
    place: Place
    rounds: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """An AND with chosen parts."""

    branches: tuple[Part, ...]
    within_us: int | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen alternative of an OR."""

    part: Part
    within_us: int | None


Part: TypeAlias = AtomPart | Row | Loop | Shuffle | Choice


def steps_of(part: Part) -> Iterator[AtomPart]:
    """All occurrences of a part, in the order of the text."""
    match part:
        case AtomPart():
            yield part
        case Row():
            for entry in part.entries:
                if entry.part is not None:
                    yield from steps_of(entry.part)
        case Choice():
            yield from steps_of(part.part)
        case Loop():
            for each in part.rounds:
                yield from steps_of(each)
        case Shuffle():
            for branch in part.branches:
                yield from steps_of(branch)


def size_of(part: Part) -> int:
    """Number of occurrences."""
    return sum(1 for _ in steps_of(part))


def whole_skeletons(event: Node, events: tuple[Event, ...]) -> Iterator[Part]:
    """The skeletons that could be bound to distinct events of ``events``."""
    supply = _supply(event, events)
    for part in _chosen(event, (), len(events), lambda repeat: _rounds(repeat, events)):
        needed = Counter(step.atom.types for step in steps_of(part))
        if needed and all(supply[types] >= number for types, number in needed.items()):
            yield part


def begun_skeletons(event: Node, events: tuple[Event, ...]) -> Iterator[Part]:
    """The relevant skeletons of which a part could be bound to distinct events of ``events``.

    They end with the steps that could be bound next: later steps do not affect a partial match.
    """
    supply = _supply(event, events)
    for part in _begun(event, (), len(events), lambda repeat: _rounds(repeat, events)):
        needed = Counter(step.atom.types for step in steps_of(part) if step.is_bound)
        if needed and all(supply[types] >= number for types, number in needed.items()):
            yield part


def _supply(event: Node, events: tuple[Event, ...]) -> Counter[tuple[str, ...]]:
    return Counter(
        {atom.types: sum(1 for one in events if atom.is_any_type or one.type in atom.types) for atom in atoms_of(event)}
    )


def _rounds(repeat: Repeat, events: tuple[Event, ...]) -> int:
    """The number of whole iterations for which there may be enough events."""
    atoms = list(atoms_of(repeat))
    candidates = sum(1 for event in events if any(atom.is_any_type or event.type in atom.types for atom in atoms))
    return candidates // _least(repeat.of)


def _least(node: Node) -> int:
    match node:
        case Atom():
            return 1
        case Repeat():
            return node.min * _least(node.of)
        case Disjunction():
            return min(_least(part) for part in node.parts)
        case _:
            return sum(_least(part) for part in node.parts)


def _chosen(node: Node, place: Place, room: int, budget: Budget) -> Iterator[Part]:
    """All choices within a node of at most ``room`` occurrences."""
    if room < _least(node):
        return
    match node:
        case Atom():
            yield AtomPart(node)
        case Disjunction():
            for number, part in enumerate(node.parts):
                yield from (Choice(choice, node.within_us) for choice in _chosen(part, (*place, number), room, budget))
        case Conjunction():
            branches = [(part, (*place, number)) for number, part in enumerate(node.parts)]
            yield from (Shuffle(parts, node.within_us) for parts in _all_chosen(branches, room, budget))
        case Sequence():
            yield from _rows(node, place, room, budget)
        case Repeat():
            yield from _loops(node, place, room, budget)


def _rows(node: Sequence, place: Place, room: int, budget: Budget) -> Iterator[Row]:
    positive = [(item.of, (*place, number)) for number, item in enumerate(node.items) if item.of is not None]
    for parts in _all_chosen(positive, room, budget):
        remaining = iter(parts)
        entries = tuple(
            Entry(part=None if item.of is None else next(remaining), negated=item.negated, gap=item.gap)
            for item in node.items
        )
        yield Row(entries, node.within_us)


def _loops(node: Repeat, place: Place, room: int, budget: Budget) -> Iterator[Loop]:
    most = min(room, budget(node))
    for number in range(node.min, (most if node.max is None else min(most, node.max)) + 1):
        for rounds in _all_chosen([(node.of, (*place, 0))] * number, room, budget):
            yield Loop(node, place, rounds)


def _all_chosen(nodes: list[tuple[Node, Place]], room: int, budget: Budget) -> Iterator[tuple[Part, ...]]:
    """All choices of several nodes that together have at most ``room`` occurrences."""
    if not nodes:
        yield ()
        return
    (node, place), *rest = nodes
    for part in _chosen(node, place, room - sum(_least(other) for other, _ in rest), budget):
        for parts in _all_chosen(rest, room - size_of(part), budget):
            yield (part, *parts)


def _begun(node: Node, place: Place, room: int, budget: Budget) -> Iterator[Part]:
    """All positions in or before a part that is not finished, with at most ``room`` occurrences bound."""
    match node:
        case Atom():
            yield AtomPart(node, is_bound=False)
        case Disjunction():
            for number, part in enumerate(node.parts):
                yield from (Choice(choice, node.within_us) for choice in _begun(part, (*place, number), room, budget))
        case Conjunction():
            for branches in _branches([(part, (*place, n)) for n, part in enumerate(node.parts)], room, budget):
                if any(not step.is_bound for branch in branches for step in steps_of(branch)):
                    yield Shuffle(branches, node.within_us)
        case Sequence():
            yield from _begun_rows(node, place, room, budget)
        case Repeat():
            yield from _begun_loops(node, place, room, budget)


def _begun_rows(node: Sequence, place: Place, room: int, budget: Budget) -> Iterator[Row]:
    for number, item in enumerate(node.items):
        if item.of is not None:
            for row in _rows(replace(node, items=node.items[:number]), place, room, budget):
                for part in _begun(item.of, (*place, number), room - _bound_size(row), budget):
                    yield Row((*row.entries, Entry(part=part, negated=None, gap=item.gap)), node.within_us)


def _begun_loops(node: Repeat, place: Place, room: int, budget: Budget) -> Iterator[Loop]:
    most = min(room, budget(node)) if node.max is None else min(room, budget(node), node.max - 1)
    for number in range(most + 1):
        for rounds in _all_chosen([(node.of, (*place, 0))] * number, room, budget):
            left = room - sum(map(_bound_size, rounds))
            for last in _begun(node.of, (*place, 0), left, budget):
                yield Loop(node, place, (*rounds, last))


def _branches(nodes: list[tuple[Node, Place]], room: int, budget: Budget) -> Iterator[tuple[Part, ...]]:
    """All positions in several branches, each finished or not."""
    if not nodes:
        yield ()
        return
    (node, place), *rest = nodes
    for part in (*_chosen(node, place, room, budget), *_begun(node, place, room, budget)):
        for parts in _branches(rest, room - _bound_size(part), budget):
            yield (part, *parts)


def _bound_size(part: Part) -> int:
    return sum(step.is_bound for step in steps_of(part))
