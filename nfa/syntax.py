"""The syntax tree of patterns, as frozen values. Equal patterns have equal trees, whatever their positions.

The normative meaning is in ``docs/semantics.md``. References are resolved: an ``Attribute`` names the step to which it
belongs. Durations are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
Scalar: TypeAlias = bool | int | float | str | None
ComparisonOperator: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]
ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/"]
Mode: TypeAlias = OneOf["any", "next", "strict"]
Selection: TypeAlias = OneOf["all", "next", "strict"]
AfterRule: TypeAlias = OneOf["none", "once_per_key", "skip_to_next", "skip_past_last", "skip_to_first", "skip_to_last"]

ANY_TYPE = "_"  # the only type of an atom that accepts events of any type
AGGREGATES = ("count", "sum", "min", "max", "avg", "first", "last")
OF_EVENT = ("time", "type", "id", "key")  # functions whose argument is an alias without an attribute


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the pattern text. Line and column count from 1."""

    line: int
    column: int


NOWHERE = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a condition. ``1``, ``1.0`` and ``TRUE`` are three different constants."""

    value: Scalar
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True, slots=True)
class Each(Literal):
    """The last argument of a function of a list: an expression over the members of each element.

    Code that looks for reads of events treats it as a constant, because it reads no event.
    """

    value: Scalar = field(default="", init=False)
    inner: Expression


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an event, given by its path.

    Attributes:
        path: Names from the outside in. An empty path means the event itself (``count(b)``, ``time(b)``).
        of: Alias of its step. None means the current event, and so does the step's own alias.
        ends_in_key: Whether its last name is an unquoted ``key``. If this name is alone or follows an alias, it is the
            event's correlation key. The flag has no meaning in resolved expressions.
    """

    path: Path
    of: str | None = None
    position: Position = field(default=NOWHERE, compare=False)
    ends_in_key: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right``.

    The result is null if a side is null, or if values of the two kinds cannot be compared.
    """

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``, which is never null itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class InList:
    """``operand IN (…)``.

    It is true if the operand equals a value. Otherwise it is null if any comparison is null, and false if none is.
    """

    operand: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """``operand LIKE 'a%'``. The result is null if the operand is not a string.

    ``%`` matches any text, ``_`` one character, and a backslash makes the next character literal.
    """

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued ``NOT`` of a condition."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Both:
    """Three-valued ``AND`` of two or more conditions."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Three-valued ``OR`` of two or more conditions."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic in float64. The result is null for non-numbers, division by zero and overflow."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative:
    """The negation of a number: ``- operand``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of ``AGGREGATES``, ``OF_EVENT``, ``prev``, or a function in ``FUNCTIONS``, in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    position: Position = field(default=NOWHERE, compare=False)


Expression: TypeAlias = (
    Literal | Attribute | Comparison | IsNull | InList | Like | Not | Both | Either | Arithmetic | Negative | Call
)


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly below an expression, in the order of the text."""
    match expression:
        case Literal() | Attribute():
            return ()
        case Comparison() | Arithmetic():
            return expression.left, expression.right
        case IsNull() | Not() | Negative() | Like():
            return (expression.operand,)
        case InList():
            return (expression.operand, *expression.values)
        case Both() | Either():
            return expression.operands
        case Call():
            return expression.arguments


def subexpressions(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions below it, outer ones first, in the order of the text."""
    yield expression
    for operand in operands_of(expression):
        yield from subexpressions(operand)


def calls_of(expression: Expression) -> Iterator[Call]:
    """Return all calls within an expression, outer ones first."""
    return (part for part in subexpressions(expression) if isinstance(part, Call))


def attributes_of(expression: Expression) -> Iterator[Attribute]:
    """Return all attributes that an expression reads, in the order of the text. A bare alias has the empty path."""
    return (part for part in subexpressions(expression) if isinstance(part, Attribute))


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap between two neighbouring parts. Its mode and its limit are written before a step or ``EACH``.

    If ``mode`` is None, the mode of the pattern applies. ``within_us`` is the exclusive limit of the time from the last
    event before the gap to the first event after the gap.
    """

    mode: Mode | None = None
    within_us: int | None = None


@dataclass(frozen=True, slots=True)
class Atom:
    """One step: an event of one of ``types`` that satisfies ``condition``, bound to ``alias``."""

    types: tuple[str, ...]
    alias: str
    condition: Expression | None = None
    position: Position = field(default=NOWHERE, compare=False)

    @property
    def is_any_type(self) -> bool:
        """Whether the step accepts events of any type."""
        return self.types == (ANY_TYPE,)

    @property
    def type(self) -> str:
        """The types as one text, joined by ``|``."""
        return "|".join(self.types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """``min`` to ``max`` iterations of a part. There is no upper bound if ``max`` is None, as for ``+``."""

    of: Node
    min: int
    max: int | None
    each: Gap | None = None
    until: Atom | None = None
    greedy: bool = False
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of a sequence: a part (``of``), or a step that must not occur at this place (``negated``)."""

    of: Node | None = None
    negated: Atom | None = None
    gap: Gap | None = None
    position: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A SEQ: every part ends before the next begins. ``within_us`` limits the time from first to last event."""

    items: tuple[Item, ...]
    within_us: int | None = None

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(item.of for item in self.items if item.of is not None)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """An AND: all parts match, in any interleaving. ``within_us`` limits the time from first to last event."""

    parts: tuple[Node, ...]
    within_us: int | None = None


@dataclass(frozen=True, slots=True)
class Disjunction:
    """An OR: one of the parts matches. ``within_us`` limits the time from first to last event."""

    parts: tuple[Node, ...]
    within_us: int | None = None


Node: TypeAlias = Atom | Repeat | Sequence | Conjunction | Disjunction


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the positive parts directly below a node."""
    match node:
        case Atom():
            return ()
        case Repeat():
            return (node.of,)
        case _:
            return node.parts


def can_be_empty(node: Node) -> bool:
    """Check whether a part can match without an event."""
    match node:
        case Atom():
            return False
        case Repeat():
            return node.min == 0 or can_be_empty(node.of)
        case Disjunction():
            return any(map(can_be_empty, node.parts))
        case _:
            return all(map(can_be_empty, node.parts))


def atoms_of(node: Node) -> Iterator[Atom]:
    """Yield the atoms below a node in the order of the text, without the negated ones of NOT and UNTIL."""
    if isinstance(node, Atom):
        yield node
    for part in parts_of(node):
        yield from atoms_of(part)


@dataclass(frozen=True, slots=True)
class After:
    """The after-match rule: which matches a reported match excludes. ``alias`` is only for SKIP TO FIRST or LAST."""

    rule: AfterRule = "none"
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of RETURN. Its name is the one that the user gave, or the expression's text."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Into:
    """The INTO clause, by which a match becomes an event of a derived stream instead of an alert.

    ``key`` is the column of RETURN whose value is the event's correlation key, or None for the key of the match.
    Without ``event_type``, the event's type is the pattern's name.
    """

    stream: str
    key: str | None = None
    event_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessTime:
    """An amount of business time by a calendar: business days, or business hours in microseconds."""

    calendar: str
    days: int | None = None
    us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EachRow:
    """The clause FOR EACH ROW: every row of a reference table has its own matches. ``alias`` names the row."""

    table: str
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named pattern.

    Attributes:
        keys: Paths of ``WHERE [..]``. If there are none, the key is the stream's correlation key.
        within_us: Span of the whole match, exclusive.
        within_business: Span in business time. It is set only if ``within_us`` is None.
        select: Mode of the gaps that have no mode themselves.
        limit: Maximum number of matches per trace, pattern and detection time. None means the limit of the settings.
        into: The derived stream of its matches, or None if its matches are alerts.
        rows: The clause FOR EACH ROW, or None. With this clause, each row of a table has its own matches.
        text: The text from which it was parsed, if any. Texts are ignored when patterns are compared.
    """

    name: str
    event: Node
    keys: tuple[Path, ...] = ()
    where: Expression | None = None
    within_us: int | None = None
    within_business: BusinessTime | None = None
    select: Selection = "all"
    after: After = After()
    limit: int | None = None
    timeouts: bool = False
    returns: tuple[Column, ...] = ()
    into: Into | None = None
    rows: EachRow | None = None
    text: str = field(default="", compare=False, repr=False)

    @property
    def has_window(self) -> bool:
        """Whether the pattern has a clause WITHIN, after which its partial matches end."""
        return self.within_us is not None or self.within_business is not None
