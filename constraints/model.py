"""The vocabulary of constraints, as frozen values, and what follows from a set of them.

Two families (constraint-aware CEP, section 2): *order* constraints say what may follow what, *occurrence* constraints
are Horn clauses over the types of the entire trace. An end event closes its trace: every type is ordered before it,
also types that no constraint names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def quoted(name: str) -> str:
    """An event type as it is printed: in backticks, doubled inside, unless it is a plain or dotted name."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _printed(kind: str, names: Iterable[str]) -> str:
    return f"{kind}({', '.join(quoted(name) for name in names)})"


@dataclass(frozen=True, slots=True)
class Prior:
    """No ``later`` is followed by an ``earlier``; ``prior(A, A)`` allows at most one A. Neither need occur."""

    earlier: str
    later: str
    kind: ClassVar[str] = "prior"

    @property
    def names(self) -> tuple[str, ...]:
        """Event types in the order of the printed form."""
        return self.earlier, self.later

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Clause:
    """A Horn clause over the types of the entire trace: all of ``body`` imply ``head``; None stands for false.

    Clauses of one or two types print under their everyday names, longer ones as ``implication(A, B, K)`` (A and B
    imply K) and ``not_together(A, B, C)``.
    """

    body: frozenset[str]
    head: str | None

    def __post_init__(self) -> None:
        if not self.body and self.head is None:
            raise ValueError("a clause without body and head is plain false")
        if self.head in self.body:
            raise ValueError(f"a clause with {self.head!r} on both sides says nothing")

    @property
    def kind(self) -> str:
        """The name under which the clause prints and is uploaded."""
        if self.head is None:
            return {1: "absence", 2: "exclusive"}.get(len(self.body), "not_together")
        return {0: "existence", 1: "require"}.get(len(self.body), "implication")

    @property
    def names(self) -> tuple[str, ...]:
        """Event types in the order of the printed form: the body sorted, then the head."""
        return (*sorted(self.body), *(() if self.head is None else (self.head,)))

    @property
    def is_long(self) -> bool:
        """Whether it says more than a pair of types can."""
        return len(self.body) > (2 if self.head is None else 1)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Not both in one trace. Symmetric: the names are kept in alphabetical order."""

    first: str
    second: str
    kind: ClassVar[str] = "exclusive"

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"{self.first!r} cannot exclude itself; at most one is Prior, never is Clause")
        if self.second < self.first:
            first, second = self.second, self.first
            object.__setattr__(self, "first", first)
            object.__setattr__(self, "second", second)

    @property
    def names(self) -> tuple[str, ...]:
        """Event types in the order of the printed form."""
        return self.first, self.second

    @property
    def clause(self) -> Clause:
        """The Horn clause that it stands for."""
        return Clause(frozenset(self.names), None)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class Require:
    """A trace with ``trigger`` has ``required`` too, before or after it."""

    trigger: str
    required: str
    kind: ClassVar[str] = "require"

    def __post_init__(self) -> None:
        if self.trigger == self.required:
            raise ValueError(f"that {self.trigger!r} requires itself says nothing")

    @property
    def names(self) -> tuple[str, ...]:
        """Event types in the order of the printed form."""
        return self.trigger, self.required

    @property
    def clause(self) -> Clause:
        """The Horn clause that it stands for."""
        return Clause(frozenset({self.trigger}), self.required)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


@dataclass(frozen=True, slots=True)
class End:
    """``type`` ends its trace: nothing follows it."""

    type: str
    kind: ClassVar[str] = "end"

    @property
    def names(self) -> tuple[str, ...]:
        """The end event."""
        return (self.type,)

    def __str__(self) -> str:
        return _printed(self.kind, self.names)


Constraint: TypeAlias = Prior | Exclusive | Require | Clause
Part: TypeAlias = Constraint | End


def _everyday(constraint: Constraint) -> Constraint:
    if not isinstance(constraint, Clause):
        return constraint
    match constraint.kind, constraint.names:
        case "exclusive", (first, second):
            return Exclusive(first, second)
        case "require", (trigger, required):
            return Require(trigger, required)
        case _:
            return constraint


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """What the traces of one stream keep to.

    Attributes:
        constraints: In the order of the upload, without repetitions; a clause that says no more than ``Exclusive`` or
            ``Require`` is one.
        end_events: Types that end a trace.
        clauses: The occurrence constraints as Horn clauses.
        earlier: ``earlier[F]`` holds every E with ``prior(E, F)``; end events, which come after everything, are not
            in it.
    """

    constraints: tuple[Constraint, ...] = ()
    end_events: frozenset[str] = frozenset()
    clauses: tuple[Clause, ...] = field(init=False, repr=False, compare=False)
    earlier: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        constraints = tuple(dict.fromkeys(_everyday(constraint) for constraint in self.constraints))
        earlier: dict[str, set[str]] = {}
        for constraint in constraints:
            if isinstance(constraint, Prior):
                earlier.setdefault(constraint.later, set()).add(constraint.earlier)
        clauses = tuple(
            constraint if isinstance(constraint, Clause) else constraint.clause
            for constraint in constraints
            if not isinstance(constraint, Prior)
        )
        object.__setattr__(self, "constraints", constraints)
        object.__setattr__(self, "clauses", clauses)
        object.__setattr__(self, "earlier", {later: frozenset(names) for later, names in earlier.items()})

    @classmethod
    def of(cls, parts: Iterable[Part]) -> ConstraintSet:
        """The set of some parts."""
        listed = tuple(parts)
        return cls(
            tuple(part for part in listed if not isinstance(part, End)),
            frozenset(part.type for part in listed if isinstance(part, End)),
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """End events, sorted, then the constraints: all that an explanation can cite."""
        return (*(End(name) for name in sorted(self.end_events)), *self.constraints)

    @property
    def types(self) -> frozenset[str]:
        """Every type that some constraint names, end events included."""
        return frozenset(name for part in self.parts for name in part.names)

    def comes_before(self, first: str, second: str) -> bool:
        """Whether no ``second`` may be followed by a ``first``."""
        return second in self.end_events or first in self.earlier.get(second, ())

    def blocks(self, seen: Iterable[str], name: str) -> bool:
        """Whether ``name`` can no longer occur after the types ``seen``, by order alone."""
        return any(self.comes_before(name, other) for other in seen)

    def horn_closure(self, names: Iterable[str]) -> frozenset[str]:
        """The least superset of ``names`` that satisfies every clause with a head."""
        closed = set(names)
        is_growing = True
        while is_growing:
            heads = {clause.head for clause in self.clauses if clause.head is not None and clause.body <= closed}
            is_growing = not heads <= closed
            closed |= heads
        return frozenset(closed)

    def is_ruled_out(self, names: frozenset[str]) -> bool:
        """Whether some clause says that no trace holds all of ``names``."""
        return any(clause.head is None and clause.body <= names for clause in self.clauses)
