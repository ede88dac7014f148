"""The value type for the constraints that hold in a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from constraints import Clause, Constraint, Exclusive, Prior, Require

Pair: TypeAlias = tuple[str, str]


class Method(StrEnum):
    """The method by which the relations between event types were found."""

    COMPOSITIONAL = "compositional"  # block by block: sound and complete
    AUTOMATON = "automaton"  # from the automaton of the language: sound and complete
    STRUCTURAL = "structural"  # from the structure of the net: sound, not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The constraints that hold on every complete trace of a model.

    Attributes:
        events: The event types that occur in some complete trace, sorted.
        prior: The pairs (A, B) for which no B is ever followed by an A, sorted. The pair (A, A) means that A occurs at
            most once. Types that never occur together are listed in both orders.
        exclusive: The pairs (A, B) of types that never occur in one trace, sorted. A precedes B in the alphabet.
        require: The pairs (A, B) of different types for which every trace with an A has a B, sorted.
        horn: The clauses that pairs cannot express and that do not follow from a shorter clause: types that always
            occur (empty body), two types that together require a third, three types that never occur together. Sorted
            by body and head.
        end: The types after which no event occurs, sorted.
        warnings: Warnings in words: dead tasks, deadlocks, parts of the model that were left out.
        origins: Origins of constraints, in words that name elements of the model. A constraint without an origin comes
            from the model as a whole.
    """

    events: tuple[str, ...]
    prior: tuple[Pair, ...]
    exclusive: tuple[Pair, ...]
    require: tuple[Pair, ...]
    horn: tuple[Clause, ...]
    end: tuple[str, ...]
    method: Method
    warnings: tuple[str, ...] = ()
    origins: Mapping[Constraint, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints: first orders, then occurrence."""
        return (
            *(Prior(*pair) for pair in self.prior),
            *(Exclusive(*pair) for pair in self.exclusive),
            *(Require(*pair) for pair in self.require),
            *self.horn,
        )

    def to_document(self) -> dict[str, Any]:
        """Return the document that ``forestall constraints --output json`` prints.

        New versions may add members, but never change the meaning of existing ones.
        """
        return {
            "prior": [list(pair) for pair in self.prior],
            "exclusive": [list(pair) for pair in self.exclusive],
            "require": [list(pair) for pair in self.require],
            "horn": [{"body": sorted(clause.body), "head": clause.head} for clause in self.horn],
            "end": list(self.end),
            "events": list(self.events),
            "method": self.method.value,
            "warnings": list(self.warnings),
        }
