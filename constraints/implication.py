"""Decides whether one condition on an event certainly implies another.

Conditions that compare an attribute with constants distinguish only finitely many *cells* of its values: null, true,
false, each constant, and the gaps between neighbouring constants (separately for numbers and texts). Every combination
of cells is tried. All other subexpressions count as free truth values, which are equal if their texts are equal. So the
answer "yes" is always right, and the answer "no" means "no or unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TypeAlias

from nfa import (
    FUNCTIONS,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Negative,
    Not,
    conjuncts_of,
    operands_of,
    without_alias,
)

MAX_CASES = 4_096
MAX_CONSTANTS = 256  # per conjunct; the work grows with the cube of their number

_EXACT = 2**53  # smaller whole numbers are exact float64 values, so comparisons with constants are exact
_OWN_CALLS = frozenset({"time", "type", "id", *FUNCTIONS})
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_Ordered: TypeAlias = float | str
_Constant: TypeAlias = bool | _Ordered | None
_Cell: TypeAlias = tuple[str, int]  # kind of value, rank within the kind
_Case: TypeAlias = Mapping[Expression, _Cell]

_NULL: _Cell = ("null", 0)
_FALSE: _Cell = ("boolean", 0)
_TRUE: _Cell = ("boolean", 1)
_LOGIC = (_TRUE, _FALSE, _NULL)


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison of an attribute with each of ``values``.

    It is true if some comparison is true, false if all are false, and otherwise null.
    """

    attribute: Attribute
    operator: str
    values: tuple[_Constant, ...]

    @property
    def ordered(self) -> tuple[_Ordered, ...]:
        return tuple(value for value in self.values if value is not None and not isinstance(value, bool))


@dataclass(frozen=True, slots=True)
class _Part:
    """A conjunct of a condition.

    Attributes:
        constants: Constants with which each attribute is compared. Subexpressions that are not understood are keys
            without constants.
        true_at: The cells of the conjunct's attribute in which the conjunct is true. None if the conjunct reads no or
            several attributes, or is large.
        is_large: Whether the conjunct has too many constants to be examined. If so, only an equal conjunct implies it.
    """

    expression: Expression
    constants: Mapping[Expression, frozenset[_Ordered]]
    variables: frozenset[Expression]
    true_at: frozenset[_Cell] | None
    scale: _Scale
    is_large: bool

    @classmethod
    def of(cls, expression: Expression) -> _Part:
        constants = _constants(expression)
        variable = next(iter(constants), None)
        scale = _Scale.of(constants[variable] if variable is not None else ())
        true_at = None
        is_large = sum(map(len, constants.values())) > MAX_CONSTANTS
        if len(constants) == 1 and isinstance(variable, Attribute) and not is_large:
            readings = {cell: _Reading({variable: cell}, {variable: scale}) for cell in scale.cells()}
            true_at = frozenset(cell for cell, reading in readings.items() if reading.truth(expression) is True)
        return cls(expression, constants, frozenset(constants), true_at, scale, is_large)


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a step, split into conjuncts. ``is_own`` is true if it reads only the current event."""

    atom: Atom
    parts: tuple[_Part, ...] = field(init=False, repr=False, compare=False)
    is_own: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        condition = self.atom.condition
        conjuncts = [] if condition is None else list(conjuncts_of(without_alias(condition, self.atom.alias)))
        object.__setattr__(self, "parts", tuple(map(_Part.of, conjuncts)))
        object.__setattr__(self, "is_own", all(map(_is_own, conjuncts)))


def implies(premise: Condition, conclusion: Condition) -> bool:
    """Check whether every event that satisfies ``premise`` also satisfies ``conclusion``.

    The result is False if this is not certain.
    """
    types = premise.atom.types
    if not conclusion.atom.is_any_type and (premise.atom.is_any_type or not set(types) <= set(conclusion.atom.types)):
        return False
    return conclusion.is_own and all(_follows(part, premise.parts) for part in conclusion.parts)


def _follows(part: _Part, premises: Iterable[_Part]) -> bool:
    relevant = [premise for premise in premises if premise.variables & part.variables]
    if any(conjunct.is_large for conjunct in (part, *relevant)):
        return any(premise.expression == part.expression for premise in relevant)
    if part.true_at is not None and all(premise.true_at is not None for premise in relevant):
        return _follows_on_one(part, relevant)
    constants: dict[Expression, frozenset[_Ordered]] = {}
    for conjunct in (part, *relevant):
        for variable, values in conjunct.constants.items():
            constants[variable] = constants.get(variable, frozenset()) | values
    scales: dict[Expression, _Scale] = {
        variable: _Scale.of(values) for variable, values in constants.items() if isinstance(variable, Attribute)
    }
    choices = [scales[variable].cells() if variable in scales else _LOGIC for variable in constants]
    if prod(map(len, choices)) > MAX_CASES:
        return False
    for cells in product(*choices):
        case = _Reading(dict(zip(constants, cells, strict=True)), scales)
        if (
            all(case.truth(premise.expression) is True for premise in relevant)
            and case.truth(part.expression) is not True
        ):
            return False
    return True


def _follows_on_one(part: _Part, premises: Sequence[_Part]) -> bool:
    """Check whether a conjunct is true wherever all premises are true, if all of them read a single attribute.

    Only the constants and the gaps between them are tried, because the truth cannot change elsewhere.
    """
    every = (*premises, part)
    for kind in ("null", "boolean", "number", "text"):
        values = sorted({value for conjunct in every for value in conjunct.scale.of_kind(kind)})
        lines = [_on_line(kind, values, conjunct) for conjunct in every]
        if any(all(truths[:-1]) and not truths[-1] for truths in zip(*lines, strict=True)):
            return False
    return True


def _on_line(kind: str, values: Sequence[_Ordered], part: _Part) -> Iterator[bool]:
    """Yield whether the conjunct is true at each value, and in each gap between the values, in ascending order.

    ``values`` include the conjunct's constants. With equal values, different conjuncts have results of equal length.
    """
    assert part.true_at is not None
    if kind in ("null", "boolean"):
        yield from ((kind, rank) in part.true_at for rank in ((0,) if kind == "null" else (0, 1)))
        return
    rank, constants = 0, part.scale.of_kind(kind)
    for value in values:
        yield (kind, rank) in part.true_at
        is_own = rank < 2 * len(constants) and constants[rank // 2] == value
        yield (kind, rank + is_own) in part.true_at
        rank += 2 * is_own
    yield (kind, rank) in part.true_at


@dataclass(frozen=True, slots=True)
class _Scale:
    numbers: tuple[float, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[_Ordered]) -> _Scale:
        listed = list(values)
        numbers = {value for value in listed if not isinstance(value, str)}
        return cls(tuple(sorted(numbers)), tuple(sorted({value for value in listed if isinstance(value, str)})))

    def of_kind(self, kind: str) -> Sequence[_Ordered]:
        return self.numbers if kind == "number" else self.texts if kind == "text" else ()

    def cells(self) -> tuple[_Cell, ...]:
        """The cells of an attribute's values, in which no comparison with a constant changes.

        They are the logical values, and ranks of numbers and texts. Constants have odd ranks. The gaps below, between
        and above the constants have even ranks.
        """
        numbers = [("number", rank) for rank in range(2 * len(self.numbers) + 1)]
        texts = [("text", rank) for rank in range(2 * len(self.texts) + 1)]
        return (*_LOGIC, *numbers, *texts)

    def cell(self, value: _Constant) -> _Cell:
        match value:
            case None:
                return _NULL
            case bool():
                return _TRUE if value else _FALSE
            case str():
                return "text", 2 * self.texts.index(value) + 1
            case _:
                return "number", 2 * self.numbers.index(value) + 1


@dataclass(frozen=True, slots=True)
class _Reading:
    case: _Case
    scales: Mapping[Expression, _Scale]

    def truth(self, expression: Expression) -> bool | None:
        match expression:
            case Not():
                truth = self.truth(expression.operand)
                return None if truth is None else not truth
            case Both() | Either():
                return _joined([self.truth(operand) for operand in expression.operands], isinstance(expression, Either))
            case Literal() if isinstance(expression.value, bool):
                return expression.value
            case IsNull() if isinstance(expression.operand, Attribute):
                return self.case[expression.operand] == _NULL
            case _:
                test = _test(expression)
                return self._tested(test) if test else _as_truth(self.case[expression])

    def _tested(self, test: _Test) -> bool | None:
        cell, scale = self.case[test.attribute], self.scales[test.attribute]
        return _joined([_compared(test.operator, cell, scale.cell(value)) for value in test.values], True)


def _as_truth(cell: _Cell) -> bool | None:
    return bool(cell[1]) if cell[0] == "boolean" else None


def _joined(truths: list[bool | None], is_either: bool) -> bool | None:
    if is_either in truths:
        return is_either
    return None if None in truths else not is_either


def _compared(operator: str, left: _Cell, right: _Cell) -> bool | None:
    kind = left[0]
    if kind != right[0] or kind == "null" or (kind == "boolean" and operator not in ("=", "!=")):
        return None
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _constants(expression: Expression) -> dict[Expression, frozenset[_Ordered]]:
    constants: dict[Expression, frozenset[_Ordered]] = {}
    match expression:
        case Not() | Both() | Either():
            operands = (expression.operand,) if isinstance(expression, Not) else expression.operands
            for operand in operands:
                for variable, values in _constants(operand).items():
                    constants[variable] = constants.get(variable, frozenset()) | values
        case Literal() if isinstance(expression.value, bool):
            pass
        case IsNull() if isinstance(expression.operand, Attribute):
            constants[expression.operand] = frozenset()
        case _:
            test = _test(expression)
            constants[test.attribute if test else expression] = frozenset(test.ordered if test else ())
    return constants


def _test(expression: Expression) -> _Test | None:
    match expression:
        case Comparison(operator=operator, left=Attribute() as attribute, right=constant):
            return _with_constants(attribute, operator, [constant])
        case Comparison(operator=operator, left=constant, right=Attribute() as attribute):
            return _with_constants(attribute, _MIRRORED[operator], [constant])
        case InList(operand=Attribute() as attribute, values=constants):
            return _with_constants(attribute, "=", constants)
        case _:
            return None


def _with_constants(attribute: Attribute, operator: str, expressions: Sequence[Expression]) -> _Test | None:
    values = [value for expression in expressions for value in _constant(expression)]
    return _Test(attribute, operator, tuple(values)) if len(values) == len(expressions) else None


def _constant(expression: Expression) -> tuple[_Constant, ...]:
    """Return the value of a constant as a tuple.

    Other expressions, and numbers too large to compare exactly, give ``()``.
    """
    match expression:
        case Literal():
            is_large = isinstance(expression.value, int | float) and abs(expression.value) >= _EXACT
            return () if is_large else (expression.value,)
        case Negative():
            value = _constant(expression.operand)
            is_number = all(isinstance(number, int | float) and not isinstance(number, bool) for number in value)
            return tuple(-number for number in value if isinstance(number, int | float)) if is_number else ()
        case _:
            return ()


def _is_own(expression: Expression) -> bool:
    if isinstance(expression, Attribute) and expression.of is not None:
        return False
    if isinstance(expression, Call) and expression.name not in _OWN_CALLS:
        return False
    return all(map(_is_own, operands_of(expression)))
