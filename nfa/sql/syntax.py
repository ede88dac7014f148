"""The syntax tree of a query with ``MATCH_RECOGNIZE``, as frozen values. Equal queries have equal trees.

Unresolved expressions contain ``Name`` and ``Call``. ``nfa.sql.resolving`` replaces these by values with the row of the
match at which each value is read (``At``). A label is the index of a variable of the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal as OneOf
from typing import TypeAlias

from nfa.syntax import NOWHERE, Position

Value: TypeAlias = bool | int | float | str | datetime | date | timedelta | None
Rows: TypeAlias = OneOf["one", "show_empty", "omit_empty", "unmatched"]
SkipRule: TypeAlias = OneOf["past_last_row", "to_next_row", "to_first", "to_last"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant value in an expression of a query."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A column name that is not resolved yet, with the pattern variable before it, if any."""

    column: str
    variable: str | None = None
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is not resolved yet.

    ``semantics`` is ``running`` or ``final`` if the text has one of these words. ``of_rows`` is set for ``count(*)``
    and ``count(A.*)``. The latter has ``A`` as ``rows_of``.
    """

    name: str
    operands: tuple[Expression, ...]
    semantics: str = ""
    of_rows: bool = False
    rows_of: str | None = None
    is_distinct: bool = False
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a scalar function, by its name in ``nfa.sql.operations``."""

    name: str
    operands: tuple[Expression, ...]
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the row at which the expression is read."""

    name: str


@dataclass(frozen=True, slots=True)
class LabelOfRow:
    """The label, as text, of the row at which the expression is read. It is null outside the match."""


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The number of the match in its partition, from 1."""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a match, relative to the current row.

    Attributes:
        labels: The labels whose rows count, or None for all labels.
        is_first: Whether rows are counted forward from the first row. Otherwise they are counted backward from the last
            row.
        offset: Number of rows with these labels to skip.
        is_final: Whether the last row is the last row of the whole match. Otherwise it is the current row.
        physical: Number of rows by which to move afterwards in the partition. A negative number moves backward.
    """

    labels: frozenset[int] | None = None
    is_first: bool = False
    offset: int = 0
    is_final: bool = False
    physical: int = 0

    @property
    def is_here(self) -> bool:
        """Whether the place is at a fixed distance from the current row."""
        return self.labels is None and not self.is_first and self.offset == 0 and not self.is_final


@dataclass(frozen=True, slots=True)
class At:
    """An expression over one row, evaluated at a place. If there is no such row, all its columns are null."""

    content: Expression
    place: Place
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the rows of a match that have one of ``labels``, or over all rows if ``labels`` is None."""

    name: str
    operands: tuple[Expression, ...]
    labels: frozenset[int] | None
    is_final: bool
    is_distinct: bool
    position: Position = field(default=NOWHERE, compare=False)


Expression: TypeAlias = Constant | Name | Call | Operation | Column | LabelOfRow | MatchNumber | At | Aggregate


@dataclass(frozen=True, slots=True)
class Labelled:
    """A row to which the pattern gives a label."""

    label: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start or the end of the partition."""

    is_start: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Parts that match one after the other. Without parts it is the empty pattern."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Alternatives in the order of preference."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """``least`` to ``most`` iterations of a part. There is no upper bound if ``most`` is None."""

    part: Node
    least: int
    most: int | None
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part whose rows are not in the output of ``ALL ROWS PER MATCH``."""

    part: Node


Node: TypeAlias = Labelled | Anchor | Concatenation | Alternation | Repetition | Exclusion


@dataclass(frozen=True, slots=True)
class Sort:
    """A column by which rows are sorted."""

    column: str
    is_descending: bool = False
    are_nulls_first: bool = False
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Named:
    """A named expression: a measure, or a column of the result."""

    name: str
    expression: Expression
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Skip:
    """The row at which the search continues after a match. Only ``to_first`` and ``to_last`` use ``labels``."""

    rule: SkipRule = "past_last_row"
    labels: frozenset[int] = frozenset()
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A ``MATCH_RECOGNIZE`` clause.

    Attributes:
        variables: The pattern's variables. The index of a variable is its label.
        subsets: The labels of each union of ``SUBSET``, by name.
        definitions: The conditions of ``DEFINE``, each with its label.
        within: The exclusive upper bound of a match's length, in the unit of the first column of ``ORDER BY``.
        position: Position of ``PATTERN``.
    """

    partition: tuple[Sort, ...]
    order: tuple[Sort, ...]
    measures: tuple[Named, ...]
    rows: Rows
    skip: Skip
    pattern: Node
    within: Expression | None
    variables: tuple[str, ...]
    subsets: tuple[tuple[str, frozenset[int]], ...]
    definitions: tuple[tuple[int, Expression], ...]
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ordering:
    """An ORDER BY item of the query around the clause. A whole number is the position of a SELECT column, from 1."""

    expression: Expression
    is_descending: bool = False
    are_nulls_first: bool = False
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query with ``MATCH_RECOGNIZE``. ``outputs`` has the columns of SELECT, or is None for all columns."""

    table: str
    alias: str | None
    clause: Clause
    outputs: tuple[Named, ...] | None
    where: Expression | None
    ordering: tuple[Ordering, ...]
    limit: int | None
    table_position: Position = field(default=NOWHERE, compare=False)


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside an expression."""
    match expression:
        case Operation() | Call() | Aggregate():
            return expression.operands
        case At():
            return (expression.content,)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions inside it."""
    yield expression
    for part in parts_of(expression):
        yield from walk(part)
