"""The query graph: a pattern as alternatives of partially ordered atoms, and the states between nothing and all.

A pattern is the disjunction of its *terms* (OR distributes over everything). A term is a set of atoms with a strict
partial order, and a *pattern state* (term, D) is a down-closed set D of atoms already bound. Source: C-CEP, query graph
and its states (constraint-aware CEP, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from nfa.syntax import Atom, Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One alternative of a pattern.

    Attributes:
        atoms: In the order of the text; an atom is named by its index here.
        before: ``before[i]`` holds the atoms that must be bound before atom ``i`` (transitively closed).
    """

    atoms: tuple[Atom, ...]
    before: tuple[frozenset[int], ...]

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
    """A pattern ready to be compiled or reasoned about.

    Attributes:
        pattern: Where it came from.
        terms: The alternatives.
        states: Every *incomplete* state of every term, the empty one included, ordered by term, number of bound atoms,
            then bound atoms. Guard tables are indexed by this order.
    """

    pattern: Pattern
    terms: tuple[Term, ...]
    states: tuple[PatternState, ...]

    @property
    def types(self) -> frozenset[str]:
        """Event types that the pattern listens to."""
        return frozenset().union(*(term.types for term in self.terms))
