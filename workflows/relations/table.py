"""Relations between event types as tables, and the constraints that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from constraints import Clause
from workflows.relations.extraction import Extraction, Method, Pair

Relation = NDArray[np.bool_]

MOST_LONG = 5_000  # limit of clauses over three types, because comparing them takes quadratic time


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationTable:
    """Relations between the event types of a model. Each of the types occurs in some trace.

    Attributes:
        events: The types, in the order of rows and columns.
        follows: Mask (A, B), true if some trace has an A, and later a B.
        lacks: Mask (A, B), true if some trace has an A and no B. It is false on the diagonal.
        optional: Mask of the types that are absent from some trace.
    """

    events: tuple[str, ...]
    follows: Relation
    lacks: Relation
    optional: Relation
    long_clauses: tuple[Clause, ...] = ()

    @property
    def meets(self) -> Relation:
        """Mask (A, B), true if some trace has both types. It is symmetric, and true on the diagonal."""
        return self.follows | self.follows.T | np.eye(len(self.events), dtype=np.bool_)

    @property
    def priors(self) -> Iterator[Pair]:
        """The pairs (A, B) for which no B is ever followed by an A, in the order of the types."""
        return self._pairs(~self.follows.T)

    @property
    def exclusives(self) -> Iterator[Pair]:
        """The pairs of types that never occur in one trace, each pair once, in the order of the types."""
        return self._pairs(np.triu(~self.meets, 1))

    @property
    def requires(self) -> Iterator[Pair]:
        """The pairs (A, B) of different types for which every trace with an A has a B, in the order of the types."""
        return self._pairs(~self.lacks & ~np.eye(len(self.events), dtype=np.bool_))

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(name for name, row in zip(self.events, self.follows, strict=True) if not row.any())

    @property
    def existences(self) -> tuple[Clause, ...]:
        """The types that occur in every trace, as clauses with an empty body."""
        return tuple(
            Clause(frozenset(), name)
            for name, is_optional in zip(self.events, self.optional, strict=True)
            if not is_optional
        )

    def _pairs(self, holds: Relation) -> Iterator[Pair]:
        return ((self.events[first], self.events[second]) for first, second in np.argwhere(holds).tolist())

    def to_extraction(self, method: Method, warnings: Iterable[str] = ()) -> Extraction:
        """Return the relations as sorted constraints."""
        return Extraction(
            events=tuple(sorted(self.events)),
            prior=tuple(sorted(self.priors)),
            exclusive=tuple(sorted((min(pair), max(pair)) for pair in self.exclusives)),
            require=tuple(sorted(self.requires)),
            horn=tuple(sorted((*self.existences, *self.long_clauses), key=clause_order)),
            end=tuple(sorted(self.ends)),
            method=method,
            warnings=tuple(warnings),
        )

    def with_long_clauses(self, clauses: Iterable[Clause]) -> tuple[RelationTable, tuple[str, ...]]:
        """Return the table with ``clauses`` over three types, and warnings.

        If there are more than ``MOST_LONG``, the others are left out with a warning.
        """
        long_clauses = tuple(islice(clauses, MOST_LONG + 1))
        if len(long_clauses) <= MOST_LONG:
            return replace(self, long_clauses=long_clauses), ()
        warning = (
            f"more than {MOST_LONG} constraints of three event types together hold, and were left out; "
            "orders, exclusions, requirements and ends are complete"
        )
        return self, (warning,)


def clause_order(clause: Clause) -> tuple[list[str], bool, str]:
    """Return a sort key for clauses: by body, then by head. A clause without a head precedes clauses with one."""
    return sorted(clause.body), clause.head is not None, clause.head or ""


def too_many_triples(count: int, most: int) -> str:
    """Return the warning that clauses over three event types were left out."""
    return (
        f"{count} event types: what holds of three of them together was left out, beyond {most}; "
        "orders, exclusions, requirements and ends are complete"
    )
