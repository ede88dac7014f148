"""The query graph: a pattern as alternatives of partially ordered atoms, and the states between nothing and all.

This is what a guard reasons about: the events that a match *must* still have. A pattern is the disjunction of its
*terms* (OR distributes over everything). A term is a set of atoms of one type each with a strict partial order, and a
*pattern state* (term, D) is a down-closed set D of atoms already bound. What may be missing (optional parts, iterations
beyond the least number) is left out; NOT is not an event that a match has, but a term knows where it forbids one.
Where the terms would be too many there are *partitions* instead. Source: C-CEP, query graph and its states
(constraint-aware CEP, sections 2 and 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nfa.syntax import Atom, Pattern

AtomKey = tuple[int, tuple[int, ...], str]
"""Which atom of a pattern, which iteration of each repetition around it, and which of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A NOT without condition: nothing that ``atom`` takes comes between the last of some atoms and the first of some.

    Attributes:
        atom: What must not come.
        after: Indices of atoms; empty: from the beginning of the trace on.
        before: Indices of atoms; empty: until the trace ends.
    """

    atom: Atom
    after: frozenset[int]
    before: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One alternative of a pattern.

    Attributes:
        atoms: In the order of the text, of one type each; an atom is named by its index here.
        before: ``before[i]`` holds the atoms that must be bound before atom ``i`` (transitively closed).
        keys: Where each atom comes from; not part of equality.
        absences: What must not come in between, where that follows from the NOTs of the pattern.
    """

    atoms: tuple[Atom, ...]
    before: tuple[frozenset[int], ...]
    keys: tuple[AtomKey, ...] = field(default=(), compare=False)
    absences: tuple[Absence, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        """Event types of all atoms."""
        return frozenset(atom.type for atom in self.atoms)

    def down_closed(self) -> Iterator[frozenset[int]]:
        """Every down-closed set of atoms, small ones first and those of one size in order; the whole comes last."""
        atoms = range(len(self.atoms))
        level: set[frozenset[int]] = {frozenset()}
        while level:
            yield from sorted(level, key=sorted)
            level = {
                bound | {atom} for bound in level for atom in atoms if atom not in bound and self.before[atom] <= bound
            }

    @property
    def is_trailing(self) -> bool:
        """Whether something must not come until the trace ends, once all atoms are bound."""
        return any(not absence.before for absence in self.absences)


@dataclass(frozen=True, slots=True)
class PatternState:
    """Partial matches of term ``term`` that bind exactly the atoms ``bound`` (down-closed under ``before``)."""

    term: int
    bound: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The atoms of a part of a pattern that stand under no OR within it; its term has those of the parts around it too.

    Attributes:
        own: Indices, in the term of the same number, of the atoms that no partition around it has.
        choices: For each OR directly within it, the numbers of the partitions that are its alternatives.
    """

    own: frozenset[int]
    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A pattern ready to be reasoned about.

    Attributes:
        pattern: Where it came from.
        terms: The alternatives; or, where there are partitions, what each partition needs together with those around
            it.
        states: Every *incomplete* state of every term, the empty one included, ordered by term, number of bound atoms,
            then bound atoms; behind them the complete state of a term that is trailing: the atoms are bound, and
            whether what must not come can stay away is still open. Of a partition, the states in which some atom of its
            own is missing. A guard's answers are in this order.
        partitions: In place of the alternatives, where those would be too many; the first is the whole pattern.
            Otherwise empty.
    """

    pattern: Pattern
    terms: tuple[Term, ...]
    states: tuple[PatternState, ...]
    partitions: tuple[Partition, ...] = ()

    def __hash__(self) -> int:
        return hash((self.pattern.name, self.pattern.text, len(self.states)))

    @property
    def types(self) -> frozenset[str]:
        """Event types that some match must have."""
        return frozenset().union(*(term.types for term in self.terms))

    def can_complete(self, is_live: Sequence[bool]) -> bool:
        """Whether the whole can, given for each term whether it can.

        Exact for alternatives. For partitions it may say so wrongly: each is judged without those beside it.
        """
        if not self.partitions:
            return any(is_live)
        found = list(is_live)
        for number in reversed(range(len(self.partitions))):
            found[number] &= all(any(found[child] for child in choice) for choice in self.partitions[number].choices)
        return found[0]
