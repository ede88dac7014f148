"""The lookups in reference tables that a pattern has."""

from __future__ import annotations

from nfa.conditions.lookups import lookup_of, lookups_of
from nfa.language.scope import all_atoms_of
from nfa.syntax import Pattern
from streams.tables import Lookup


def lookups_in(pattern: Pattern) -> frozenset[Lookup]:
    """The lookups of a pattern, in conditions, WHERE and RETURN."""
    conditions = [atom.condition for atom, _ in all_atoms_of(pattern.event)]
    expressions = [*conditions, pattern.where, *(column.expression for column in pattern.returns)]
    return frozenset(lookup_of(call) for one in expressions if one is not None for call in lookups_of(one))
