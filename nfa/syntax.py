"""The pattern's syntax tree: frozen values, equal when the patterns are.

The normative meaning is in ``docs/semantics.md``. Positions are not part of equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
Scalar: TypeAlias = bool | int | float | str | None
ComparisonOperator: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Position:
    """Place in the pattern text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a condition; ``1``, ``1.0`` and ``TRUE`` are three different constants."""

    value: Scalar
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the event at hand, by path."""

    path: Path
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right``; null when either side is null or the two do not compare."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``; never null itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class InList:
    """``operand IN (…)``: true if equal to one, else null if any comparison is null, else false."""

    operand: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued negation."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Both:
    """Three-valued ``AND`` of two or more conditions."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Three-valued ``OR`` of two or more conditions."""

    operands: tuple[Expression, ...]


Expression: TypeAlias = Literal | Attribute | Comparison | IsNull | InList | Not | Both | Either


@dataclass(frozen=True, slots=True)
class Atom:
    """One step: an event of ``type`` that meets ``condition``, named ``alias``."""

    type: str
    alias: str
    condition: Expression | None = None
    position: Position = field(default=Position(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Every part ends before the next begins."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All parts, in any interleaving."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any one part."""

    parts: tuple[Node, ...]


Node: TypeAlias = Atom | Sequence | Conjunction | Disjunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named pattern.

    Attributes:
        name: Chosen by the user.
        event: The composite event that is looked for.
        keys: Paths of ``WHERE [..]``; empty stands for the stream's correlation key.
        text: As it was written, where it was read from text; not part of equality.
    """

    name: str
    event: Node
    keys: tuple[Path, ...] = ()
    text: str = field(default="", compare=False, repr=False)
