"""The query graph: a pattern as alternatives of partially ordered atoms, and the states between nothing and all.

This is what a guard reasons about: the events that a match *must* still have. A pattern is the disjunction of its
*terms* (OR distributes over everything). A term is a set of atoms of one type each with a strict partial order, and a
*pattern state* (term, D) is a down-closed set D of atoms already bound. What may be missing (optional parts, iterations
beyond the least number) is left out; NOT is not an event that a match has. Source: C-CEP, query graph and its states
(constraint-aware CEP, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nfa.syntax import Atom, Pattern

AtomKey = tuple[int, tuple[int, ...], str]
"""Which atom of a pattern, which iteration of each repetition around it, and which of its types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One alternative of a pattern.

    Attributes:
        atoms: In the order of the text, of one type each; an atom is named by its index here.
        before: ``before[i]`` holds the atoms that must be bound before atom ``i`` (transitively closed).
        keys: Where each atom comes from; not part of equality.
    """

    atoms: tuple[Atom, ...]
    before: tuple[frozenset[int], ...]
    keys: tuple[AtomKey, ...] = field(default=(), compare=False)

    @property
    def types(self) -> frozenset[str]:
        """Event types of all atoms."""
        return frozenset(atom.type for atom in self.atoms)


@dataclass(frozen=True, slots=True)
class PatternState:
    """Partial matches of term ``term`` that bind exactly the atoms ``bound`` (down-closed under ``before``)."""

    term: int
    bound: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A pattern ready to be reasoned about.

    Attributes:
        pattern: Where it came from.
        terms: The alternatives.
        states: Every *incomplete* state of every term, the empty one included, ordered by term, number of bound atoms,
            then bound atoms. A guard's answers are in this order.
    """

    pattern: Pattern
    terms: tuple[Term, ...]
    states: tuple[PatternState, ...]

    def __hash__(self) -> int:
        return hash((self.pattern.name, self.pattern.text, len(self.states)))

    @property
    def types(self) -> frozenset[str]:
        """Event types that some match must have."""
        return frozenset().union(*(term.types for term in self.terms))
