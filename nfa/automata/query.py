"""The query graph of a pattern: alternatives of partially ordered atoms, with their states from none to all bound.

A guard reasons about this graph: the events that a match *must* still have. A pattern is the disjunction of its *terms*
(OR distributes over everything). A term is a set of atoms of one type each with a strict partial order, and a *pattern
state* (term, D) is a down-closed set D of atoms already bound. Optional events (optional parts, iterations beyond the
least number) are left out. A NOT is not an event of a match, but a term knows where it forbids one. If there are too
many terms, there are *partitions* instead. Source: C-CEP, query graph and its states (constraint-aware CEP, sections 2
and 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nfa.syntax import Atom, Pattern

AtomKey = tuple[int, tuple[int, ...], str]
"""Number of an atom of a pattern, the iteration of each repetition around it, and one of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A NOT without condition: no event of ``atom`` lies between the last of ``after`` and the first of ``before``.

    ``after`` and ``before`` are indices of atoms. If ``after`` is empty, the absence begins with the trace; if
    ``before`` is empty, the absence lasts until the trace ends.
    """

    atom: Atom
    after: frozenset[int]
    before: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One alternative of a pattern.

    Attributes:
        atoms: Atoms in the order of the text, of one type each; other members refer to an atom by its index here.
        before: ``before[i]`` holds the atoms that must be bound before atom ``i`` (transitively closed).
        keys: For each atom, the atom of the pattern that it comes from; ignored when terms are compared.
        absences: Forbidden events between atoms, as far as the NOTs of the pattern imply them.
    """

    atoms: tuple[Atom, ...]
    before: tuple[frozenset[int], ...]
    keys: tuple[AtomKey, ...] = field(default=(), compare=False)
    absences: tuple[Absence, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        return frozenset(atom.type for atom in self.atoms)

    def down_closed(self) -> Iterator[frozenset[int]]:
        """Every down-closed set of atoms, from the empty set to the set of all atoms."""
        atoms = range(len(self.atoms))
        level: set[frozenset[int]] = {frozenset()}
        while level:
            yield from sorted(level, key=sorted)
            level = {
                bound | {atom} for bound in level for atom in atoms if atom not in bound and self.before[atom] <= bound
            }

    @property
    def is_trailing(self) -> bool:
        """Whether an event is forbidden until the trace ends, once all atoms are bound."""
        return any(not absence.before for absence in self.absences)


@dataclass(frozen=True, slots=True)
class PatternState:
    """Partial matches of term ``term`` that bind exactly the atoms ``bound`` (down-closed under ``before``)."""

    term: int
    bound: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A whole pattern or an alternative of an OR, without its inner ORs, whose alternatives are further partitions.

    The partition's term may also have the atoms of the partitions around it; see ``build_partitions``.

    Attributes:
        own: Indices of the partition's own atoms in its term, without atoms of the partitions around it.
        choices: For each OR directly within the partition, the numbers of the alternative partitions.
    """

    own: frozenset[int]
    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A pattern in the form that guards reason about.

    Attributes:
        terms: The alternatives; with partitions, one term for each partition.
        states: The states of all terms, ordered by term, number of bound atoms, then bound atoms. A guard's answers are
            in this order. The complete state of a term is left out, unless the term is trailing: then a forbidden event
            may still come. A partition only has states in which an own atom is missing.
        partitions: If there are too many alternatives, the partitions that replace them, the first for the whole
            pattern; otherwise empty.
    """

    pattern: Pattern
    terms: tuple[Term, ...]
    states: tuple[PatternState, ...]
    partitions: tuple[Partition, ...] = ()

    def __hash__(self) -> int:
        return hash((self.pattern.name, self.pattern.text, len(self.states)))

    @property
    def types(self) -> frozenset[str]:
        return frozenset().union(*(term.types for term in self.terms))

    def can_complete(self, is_live: Sequence[bool]) -> bool:
        """Whether the whole pattern can complete; ``is_live`` is a mask of the terms that can complete.

        With partitions, the answer may be wrongly true, because each partition is judged without its siblings.
        """
        if not self.partitions:
            return any(is_live)
        is_possible = list(is_live)
        for number in reversed(range(len(self.partitions))):
            is_possible[number] &= all(
                any(is_possible[child] for child in choice) for choice in self.partitions[number].choices
            )
        return is_possible[0]
