"""Partitions of patterns with too many alternatives: each alternative of an OR is a partition, in a tree.

A partition needs its own atoms and the atoms of the partitions around it, in order. It fails if these atoms cannot be
completed, or if all alternatives of one of its ORs fail. The number of partitions is linear in the size of the pattern.
Partitions are judged independently. So a partition that fails is really dead, but partitions that exclude each other
may all count as possible. NOTs are ignored. Source: C-CEP, disjunction (constraint-aware CEP, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from nfa.automata.iterations import is_coarse, reasoned
from nfa.automata.progress import Progress
from nfa.automata.query import AtomKey, Partition, PatternState, Query, Term
from nfa.errors import PatternRefused
from nfa.syntax import Atom, Conjunction, Disjunction, Node, Pattern, Repeat, Sequence, atoms_of, parts_of

_DONE = object()  # progress of a finished part, independent of the alternative that was bound

_Way = tuple[tuple[int, bool], ...]
"""A path from the root: the number of each part, and whether it and its siblings are ordered."""


def build_partitions(pattern: Pattern, *, max_states: int) -> Query:
    """Build the query of a pattern that has too many terms: a query with one term for each partition.

    A partition is the whole pattern or one alternative of an OR (see ``Partition``). At first, each partition is judged
    together with the partitions that enclose it. If this needs more than ``max_states`` states, each partition is
    judged alone. If even this needs more, the pattern is refused.
    """
    reader = _Reader.over(pattern, None)
    for has_around in (True, False):
        terms, partitions = reader.terms(has_around=has_around), reader.partitions(has_around=has_around)
        states = _states(terms, partitions, max_states)
        if len(states) <= max_states:
            return Query(pattern=pattern, terms=terms, states=tuple(states), partitions=partitions)
    advice = f"its parallel branches make more than {max_states} states; split the pattern"
    raise PatternRefused("too-large", advice, next(atoms_of(pattern.event)).position)


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The progress of a partial match: its bound atoms, and the partitions that its choices at ORs have ruled out.

    Once an OR is finished, the atoms of all its alternatives count as bound.
    """

    bound: frozenset[AtomKey]
    closed: frozenset[int]


def partition_progress(pattern: Pattern, progress: Progress) -> PartitionProgress:
    """Translate progress through a pattern's tree into bound atoms and closed partitions.

    A partition is closed if a choice at an OR has ruled it out.
    """
    reader = _Reader.over(pattern, progress)
    return PartitionProgress(frozenset(reader.bound), frozenset(reader.closed))


def _states(terms: tuple[Term, ...], partitions: tuple[Partition, ...], most: int) -> list[PatternState]:
    states: list[PatternState] = []
    for index, (term, partition) in enumerate(zip(terms, partitions, strict=True)):
        for bound in term.down_closed():
            if not partition.own <= bound or (index == 0 and not term.atoms):
                states.append(PatternState(index, bound))
            if len(states) > most:
                return states
    return states


@dataclass(frozen=True, slots=True)
class _Leaf:
    key: AtomKey
    atom: Atom
    way: _Way

    def is_before(self, other: _Leaf) -> bool:
        """Return whether the atom of this leaf must be bound before the atom of another leaf.

        The innermost node that contains both leaves decides.
        """
        for (own_place, is_ordered), (other_place, _) in zip(self.way, other.way, strict=False):
            if own_place != other_place:
                return is_ordered and own_place < other_place
        return False


@dataclass(slots=True)
class _Draft:
    around: int | None
    own: list[_Leaf] = field(default_factory=list)
    choices: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    numbers: dict[int, int]
    coarse: bool
    drafts: list[_Draft] = field(default_factory=list)
    bound: set[AtomKey] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)

    @classmethod
    def over(cls, pattern: Pattern, progress: Progress) -> _Reader:
        numbers = {id(atom): number for number, atom in enumerate(atoms_of(pattern.event))}
        reader = cls(numbers, is_coarse(pattern.event))
        reader.drafts.append(_Draft(None))
        reader.read(pattern.event, progress, (), (), 0)
        return reader

    def read(self, node: Node, progress: Progress, way: _Way, iterations: tuple[int, ...], partition: int) -> None:
        if isinstance(node, Atom):
            self._read_atom(node, progress, way, iterations, partition)
            return
        alternatives = []
        for place, part in _numbered(node, coarse=self.coarse):
            home = partition
            if isinstance(node, Disjunction):
                home = self._open(partition)
                alternatives.append(home)
                if progress is not None and progress is not _DONE and progress[0] != place:
                    self.closed.add(home)
            inner_iterations = (*iterations, place) if isinstance(node, Repeat) else iterations
            step = (place, isinstance(node, Sequence | Repeat))
            self.read(part, _within(node, progress, place), (*way, step), inner_iterations, home)
        if alternatives:
            self.drafts[partition].choices.append(tuple(alternatives))

    def _read_atom(
        self, atom: Atom, progress: Progress, way: _Way, iterations: tuple[int, ...], partition: int
    ) -> None:
        if atom.is_any_type:  # some event can always match
            return
        names = tuple(dict.fromkeys(atom.types))
        homes = [partition] if len(names) == 1 else [self._open(partition) for _ in names]
        for name, home in zip(names, homes, strict=True):
            key: AtomKey = (self.numbers[id(atom)], iterations, name)
            self.drafts[home].own.append(_Leaf(key, replace(atom, types=(name,)), way))
            if progress is not None:
                self.bound.add(key)
        if len(names) > 1:
            self.drafts[partition].choices.append(tuple(homes))

    def _open(self, around: int) -> int:
        self.drafts.append(_Draft(around))
        return len(self.drafts) - 1

    def terms(self, *, has_around: bool) -> tuple[Term, ...]:
        """Return one term for each partition, in order.

        If ``has_around``, a term also has the atoms of the partitions that enclose its partition.
        """
        terms = []
        for number in range(len(self.drafts)):
            leaves = sorted(self._leaves(number, has_around=has_around), key=lambda leaf: leaf.way)
            before = [
                frozenset(place for place, other_leaf in enumerate(leaves) if other_leaf.is_before(leaf))
                for leaf in leaves
            ]
            terms.append(
                Term(
                    atoms=tuple(leaf.atom for leaf in leaves),
                    before=tuple(before),
                    keys=tuple(leaf.key for leaf in leaves),
                )
            )
        return tuple(terms)

    def partitions(self, *, has_around: bool) -> tuple[Partition, ...]:
        partitions = []
        for draft, term in zip(self.drafts, self.terms(has_around=has_around), strict=True):
            own_keys = {leaf.key for leaf in draft.own}
            places = frozenset(place for place, key in enumerate(term.keys) if key in own_keys)
            partitions.append(Partition(own=places, choices=tuple(draft.choices)))
        return tuple(partitions)

    def _leaves(self, number: int, *, has_around: bool) -> list[_Leaf]:
        draft = self.drafts[number]
        if draft.around is None or not has_around:
            return draft.own
        return self._leaves(draft.around, has_around=True) + draft.own


def _numbered(node: Node, *, coarse: bool) -> Iterator[tuple[int, Node]]:
    """Yield the children of a node that can bind events, each with its number in the node's ``Progress``."""
    match node:
        case Repeat():
            yield from ((number, node.of) for number in reasoned(node, coarse=coarse))
        case Sequence():
            yield from ((place, item.of) for place, item in enumerate(node.items) if item.of is not None)
        case _:
            yield from enumerate(parts_of(node))


def _within(node: Node, progress: Progress, place: int) -> Progress:
    if progress is None or progress is _DONE:
        return progress
    match node:
        case Conjunction():
            return progress[1][place]
        case Disjunction():
            return progress[1] if progress[0] == place else None
        case _:
            return _DONE if place < progress[0] else progress[1] if place == progress[0] else None
