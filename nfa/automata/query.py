"""The query graph of a pattern: its terms (alternatives of partially ordered atoms) and their pattern states.

A guard reasons about this graph: the events that a match *must* still have. A pattern is the disjunction of its *terms*
(OR distributes over everything). A term is a set of atoms, each of one type, with a strict partial order. A *pattern
state* (term, D) is a down-closed set D of bound atoms. Optional events (optional parts, iterations beyond the least
number) are left out. A NOT is not an event of a match, but a term records where the NOT forbids an event. If there are
too many terms, there are *partitions* instead. Source: C-CEP, query graph and its states (constraint-aware CEP,
sections 2 and 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nfa.syntax import Atom, Pattern

AtomKey = tuple[int, tuple[int, ...], str]
"""The number of an atom in the pattern, the iteration of each repetition around the atom, and one of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A stretch of a trace in which a NOT without condition forbids the events of ``atom``.

    ``after`` and ``before`` are sets of indices of atoms. The stretch begins after the last event of ``after``, or with
    the trace if ``after`` is empty. It ends at the first event of ``before``, or with the trace if ``before`` is empty.
    """

    atom: Atom
    after: frozenset[int]
    before: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One alternative of a pattern: a set of atoms, the order in which they are bound, and forbidden events.

    Attributes:
        atoms: Atoms of one type each, in the order of the text. The other members refer to an atom by its index here.
        before: ``before[i]`` has the atoms that must be bound before atom ``i`` (transitively closed).
        keys: For each atom of the term, its origin in the pattern. Terms are compared without ``keys``.
        absences: The events that NOTs of the pattern forbid between atoms.
    """

    atoms: tuple[Atom, ...]
    before: tuple[frozenset[int], ...]
    keys: tuple[AtomKey, ...] = field(default=(), compare=False)
    absences: tuple[Absence, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        return frozenset(atom.type for atom in self.atoms)

    def down_closed(self) -> Iterator[frozenset[int]]:
        """Yield every set of atoms that a partial match can have bound, from the empty set to all atoms.

        The sets are down-closed: a set that contains an atom also contains all atoms that must be bound before this
        atom.
        """
        atoms = range(len(self.atoms))
        level: set[frozenset[int]] = {frozenset()}
        while level:
            yield from sorted(level, key=sorted)
            level = {
                bound | {atom} for bound in level for atom in atoms if atom not in bound and self.before[atom] <= bound
            }

    @property
    def is_trailing(self) -> bool:
        """Whether some event is forbidden until the trace ends, even after all atoms are bound."""
        return any(not absence.before for absence in self.absences)


@dataclass(frozen=True, slots=True)
class PatternState:
    """All partial matches of the term number ``term`` that have bound exactly the atoms ``bound``.

    ``bound`` is down-closed: for each of its atoms, it contains all atoms that must be bound before.
    """

    term: int
    bound: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A whole pattern or one alternative of an OR, without the alternatives of its inner ORs.

    These alternatives are partitions, too. The term of a partition may also have the atoms of the partitions that
    enclose it (see ``build_partitions``).

    Attributes:
        own: Indices, in the term, of the atoms that belong to the partition itself.
        choices: For each OR directly in the partition, the numbers of its alternatives. They are partitions.
    """

    own: frozenset[int]
    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A pattern in the form in which guards reason about it.

    Attributes:
        terms: The alternatives, or one term for each partition if there are partitions.
        states: The states of all terms, sorted by term, then by number of bound atoms, then by bound atoms. A guard's
            answers are in this order. The complete state of a term is present only if the term is trailing. A partition
            has only states in which one of its own atoms is missing.
        partitions: The partitions, if the alternatives would be too many or have too many states. Otherwise empty. The
            first partition is the whole pattern.
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
        """Return whether the whole pattern can complete, given a mask ``is_live`` of the terms that can complete.

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
