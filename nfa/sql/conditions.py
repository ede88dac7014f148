"""Compiles the conditions of DEFINE for a table.

Conditions that read rows at fixed distances become columns. Other conditions become kernel programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.errors import PatternRefused
from nfa.kernels.row_patterns import tables
from nfa.sql.expression_building import MAX_COPIED
from nfa.sql.operations import column_of, plain
from nfa.sql.syntax import (
    Aggregate,
    At,
    Clause,
    Column,
    Constant,
    Expression,
    LabelOfRow,
    MatchNumber,
    Operation,
    Place,
    Value,
    walk,
)
from nfa.sql.table import SortedTable, integers_of
from nfa.sql.time_numbers import TimeNumbers
from nfa.syntax import NOWHERE, Position

_Code: TypeAlias = list[tuple[int, int]]
FOLDED: Mapping[str, int] = {
    "count": tables.COUNT,
    "sum": tables.SUM,
    "avg": tables.AVERAGE,
    "min": tables.MINIMUM,
    "max": tables.MAXIMUM,
}
"""The aggregates that kernels compute from row to row."""
_FUNCTIONS: Mapping[str, int] = {**FOLDED, "arbitrary": tables.ANY_VALUE}
_ARITHMETIC: Mapping[str, int] = {
    "+": tables.ADD,
    "-": tables.SUBTRACT,
    "*": tables.MULTIPLY,
    "/": tables.DIVIDE,
    "%": tables.REMAINDER,
    "mod": tables.REMAINDER,
    "least": tables.LEAST,
    "greatest": tables.GREATEST,
}
_COMPARISONS: Mapping[str, int] = {
    "=": tables.EQUAL,
    "<>": tables.DIFFERENT,
    "<": tables.LESS,
    "<=": tables.LESS_OR_EQUAL,
    ">": tables.MORE,
    ">=": tables.MORE_OR_EQUAL,
    "is_distinct": tables.DISTINCT,
}
_UNARY: Mapping[str, int] = {"not": tables.NOT, "negative": tables.NEGATE, "abs": tables.ABSOLUTE}
_NUMBERS = ("integer", "float")
_TIMES = ("time", "interval")
_SUMS: Mapping[tuple[str, str, str], str] = {
    ("time", "+", "interval"): "time",
    ("interval", "+", "time"): "time",
    ("interval", "+", "interval"): "interval",
    ("time", "-", "interval"): "time",
    ("time", "-", "time"): "interval",
    ("interval", "-", "interval"): "interval",
    ("interval", "*", "integer"): "interval",
    ("integer", "*", "interval"): "interval",
}


@dataclass
class Conditions:
    """The compiled conditions of a ``MATCH_RECOGNIZE`` clause, and the columns that their programs read."""

    kinds: NDArray[np.int32]
    places: NDArray[np.int32]
    code: _Code = field(default_factory=list)
    truth: list[NDArray[np.uint8]] = field(default_factory=list)
    leaves: list[list[int]] = field(default_factory=list)
    aggregates: list[list[int]] = field(default_factory=list)
    sets: list[frozenset[int]] = field(default_factory=list)
    constants: list[tuple[str, Value]] = field(default_factory=list)
    integer_columns: list[tuple[str, Any]] = field(default_factory=list)
    float_columns: list[Any] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    times: TimeNumbers = field(default_factory=TimeNumbers)
    times_of_columns: dict[int, int] = field(default_factory=dict)
    times_of_constants: dict[int, int] = field(default_factory=dict)
    copied: int = 0

    @property
    def has_history(self) -> bool:
        """Whether some condition reads rows that are not at fixed distances. Such a condition needs a program."""
        return bool((self.kinds == tables.CODE).any())

    def times_in(self, code: _Code) -> list[int]:
        """Return the indices in ``times`` of the columns and constants that the instructions of ``code`` read."""
        indices = []
        for sign, place in code:
            match sign:
                case tables.CONSTANT:
                    indices.append(self.times_of_constants.get(place))
                case tables.LEAF if self.leaves[place][tables.LANE] == tables.INTEGERS:
                    indices.append(self.times_of_columns.get(self.leaves[place][tables.AT_COLUMN]))
                case tables.AGGREGATE if self.aggregates[place][tables.OF_LANE] == tables.INTEGERS:
                    indices.append(self.times_of_columns.get(self.aggregates[place][tables.OF_COLUMN]))
        return [index for index in indices if index is not None]

    @property
    def depth(self) -> int:
        """The number of stack entries that is sufficient for every program."""
        return len(self.code) + 2


def compile_conditions(clause: Clause, table: SortedTable) -> Conditions:
    """Compile the conditions of DEFINE over a table.

    A condition is refused if its value is not a truth value, or if only MEASURES supports it.
    """
    labels = len(clause.variables)
    compiled = Conditions(np.zeros(labels, np.int32), np.zeros((labels, 2), np.int32))
    for label, condition in clause.definitions:
        compiler = _Compiler(clause, table, compiled)
        labelled = _with_own_label(condition, clause.variables[label])
        if compiler.is_static(labelled):
            compiled.kinds[label], compiled.places[label] = tables.COLUMN, (len(compiled.truth), 0)
            compiled.truth.append(_truth(compiler.column(labelled), condition))
            continue
        code, kind = compiler.compile(labelled)
        if kind not in ("boolean", "null"):
            raise _refusal_of_kind(kind, condition)
        start = len(compiled.code)
        compiled.code.extend(code)
        compiled.kinds[label], compiled.places[label] = tables.CODE, (start, len(compiled.code))
    return compiled


def position_of(expression: Expression) -> Position:
    """Return the first position in an expression, for refusals of expressions that have no position themselves."""
    positions = (getattr(part, "position", NOWHERE) for part in walk(expression))
    return next((position for position in positions if position != NOWHERE), NOWHERE)


def _truth(column: Any, condition: Expression) -> NDArray[np.uint8]:
    if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise _refusal_of_kind(str(column.type), condition)
    return np.asarray(integers_of(column), np.uint8)


def _refusal_of_kind(kind: str, condition: Expression) -> PatternRefused:
    return PatternRefused("type", f"a condition is true or false, this one is {kind}", position_of(condition))


def _with_own_label(expression: Expression, name: str) -> Expression:
    """Replace the label of the current row by ``name``, the label of the condition.

    The condition decides whether the row gets this label.
    """
    match expression:
        case At() if expression.place.is_here and expression.place.physical == 0:
            return replace(expression, content=_replaced_label(expression.content, name))
        case Operation():
            return replace(
                expression, operands=tuple(_with_own_label(operand, name) for operand in expression.operands)
            )
        case _:
            return expression


def _replaced_label(expression: Expression, name: str | None) -> Expression:
    match expression:
        case LabelOfRow():
            return Constant(name)
        case Operation():
            return replace(
                expression, operands=tuple(_replaced_label(operand, name) for operand in expression.operands)
            )
        case _:
            return expression


def kind_of(kind: Any) -> str:
    """Return the kind of values of an Arrow type."""
    tests = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "float"),
        (pa.types.is_decimal, "float"),
        (pa.types.is_null, "null"),
        (pa.types.is_date, "time"),
        (pa.types.is_timestamp, "time"),
        (pa.types.is_duration, "interval"),
    )
    for test, name in tests:
        if test(kind):
            return name
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)


@dataclass(frozen=True)
class _Compiler:
    clause: Clause
    table: SortedTable
    into: Conditions

    def is_static(self, expression: Expression) -> bool:
        """Check whether an expression reads only the current row and rows at fixed distances from it."""
        match expression:
            case Constant():
                return True
            case At():
                return expression.place.is_here and LabelOfRow() not in walk(expression.content)
            case Operation():
                return all(map(self.is_static, expression.operands))
            case _:
                return False

    def column(self, expression: Expression) -> Any:
        def read(leaf: Expression) -> Any:
            assert isinstance(leaf, At)
            if leaf.place.physical == 0:
                return self.table.values(leaf.content)
            return self.table.values(leaf.content, self.table.neighbours(leaf.place.physical))

        return column_of(expression, read, self.table.size)

    def compile(self, expression: Expression) -> tuple[_Code, str]:
        match expression:
            case Constant():
                return self._constant(expression.value)
            case MatchNumber():
                return [(tables.NUMBER, 0)], "integer"
            case Aggregate():
                return self._aggregate(expression)
            case _ if self.is_static(expression):
                return self._leaf(Place(), [self._with_missing_row(self.column(expression))], position_of(expression))
            case At():
                return self._at(expression)
            case Operation():
                return self._operation(expression)
        raise AssertionError(expression)

    def _constant(self, value: Value) -> tuple[_Code, str]:
        if value is None:
            return [(tables.NOTHING, 0)], "null"
        kind = kind_of(pa.scalar(value).type)
        self.into.constants.append((kind, value))
        if kind in _TIMES:
            self.into.times_of_constants[len(self.into.constants) - 1] = self.into.times.add(pa.array([_in_utc(value)]))
        return [(tables.CONSTANT, len(self.into.constants) - 1)], kind

    def _with_missing_row(self, column: Any) -> Any:
        return pa.concat_arrays([column, pa.nulls(1, column.type)])

    def _contents(self, expression: Expression) -> list[Any]:
        """Return the values of an expression on all rows, as columns.

        There is one column or, if the expression reads the label of the row, a column for each label. In the second
        case, a last column is for rows without a label.
        """
        if LabelOfRow() not in walk(expression):
            return [self._content(expression)]
        names = (*self.clause.variables, None)
        columns = [self._content(_replaced_label(expression, name)) for name in names]
        kind = columns[0].type
        return [column.cast(kind) if column.type != kind else column for column in columns]

    def _content(self, expression: Expression) -> Any:
        """Return the value of an expression for each row of the table, and then for a row that does not exist."""
        size = self.table.size + 1

        def read(leaf: Expression) -> Any:
            if not isinstance(leaf, Column):
                raise PatternRefused(
                    "define",
                    "MATCH_NUMBER() inside an aggregate is supported in MEASURES only",
                    position_of(expression),
                )
            return self._with_missing_row(self.table.column(leaf.name))

        return column_of(expression, read, size)

    def _at(self, expression: At) -> tuple[_Code, str]:
        return self._leaf(expression.place, self._contents(expression.content), expression.position)

    def _leaf(self, place: Place, columns: list[Any], position: Position) -> tuple[_Code, str]:
        column, lane, kind = self._add_columns(columns, position)
        labels = len(columns) if len(columns) > 1 else 0
        label_set = -1 if place.labels is None else self._set(place.labels)
        self.into.leaves.append([label_set, int(place.is_first), place.offset, place.physical, column, labels, lane])
        return [(tables.LEAF, len(self.into.leaves) - 1)], kind

    def _add_columns(self, arrays: list[Any], position: Position) -> tuple[int, int, str]:
        """Add columns for the kernel. All of them have the same type.

        Returns the index of the first column, whether the columns are integers or floats, and the kind of their values.
        """
        columns = [plain(array) for array in arrays]
        kind = kind_of(columns[0].type)
        if kind == "float":
            self.into.float_columns.extend(columns)
            return len(self.into.float_columns) - len(columns), tables.FLOATS, kind
        if kind not in ("boolean", "integer", "text", "time", "interval", "null"):
            raise PatternRefused("type", f"conditions between rows do not read {kind}", position)
        first = len(self.into.integer_columns)
        self.into.integer_columns.extend((kind, column) for column in columns)
        self.into.positions.extend(position for _ in columns)
        if kind in _TIMES:
            indices = [self.into.times.add(column, position) for column in columns]
            self.into.times_of_columns.update(enumerate(indices, first))
            self.into.times.link(indices)
        return first, tables.INTEGERS, kind

    def _set(self, labels: frozenset[int]) -> int:
        if labels not in self.into.sets:
            self.into.sets.append(labels)
        return self.into.sets.index(labels)

    def _aggregate(self, aggregate: Aggregate) -> tuple[_Code, str]:
        function = _FUNCTIONS.get(aggregate.name)
        if function is None or aggregate.is_distinct:
            name = f"{aggregate.name}(DISTINCT ...)" if aggregate.is_distinct else aggregate.name
            raise PatternRefused("define", f"{name} is supported in MEASURES only, not in DEFINE", aggregate.position)
        labels = range(len(self.clause.variables)) if aggregate.labels is None else aggregate.labels
        label_set, column, by_label, lane, kind = self._set(frozenset(labels)), -1, 0, tables.INTEGERS, "integer"
        if aggregate.operands:
            columns = self._contents(aggregate.operands[0])
            column, lane, kind = self._add_columns(columns, aggregate.position)
            by_label = int(len(columns) > 1)
        self._check_kind(aggregate, kind)
        self.into.aggregates.append([function, label_set, column, by_label, lane])
        code = [(tables.AGGREGATE, len(self.into.aggregates) - 1)]
        if aggregate.name in ("sum", "avg"):
            self.into.times.link(self.into.times_in(code), aggregate.position)
        return code, {"count": "integer", "avg": "float"}.get(aggregate.name, kind)

    def _check_kind(self, aggregate: Aggregate, kind: str) -> None:
        if aggregate.name in ("sum", "avg") and kind not in (*_NUMBERS, "interval", "null"):
            raise PatternRefused("type", f"{aggregate.name} adds numbers, not {kind}", aggregate.position)

    def _operation(self, operation: Operation) -> tuple[_Code, str]:
        name, operands = operation.name, operation.operands
        if name in ("and", "or"):
            return self._joined(operation)
        if name in _UNARY:
            code, kind = self.compile(operands[0])
            if kind in _TIMES:
                self.into.times.link(self.into.times_in(code), operation.position)
            return [*code, (_UNARY[name], 0)], kind
        if name == "is_null":
            return [*self.compile(operands[0])[0], (tables.IS_NULL, 0)], "boolean"
        if name == "in":
            return self._in_list(operation)
        if name in ("case", "if"):
            return self._case(operation)
        if name in ("coalesce", "least", "greatest"):
            return self._folded(operation)
        if name in _ARITHMETIC or name in _COMPARISONS:
            return self._binary(operation, *operands)
        raise PatternRefused(
            "define",
            f"{name.removeprefix('cast_')} of values from several rows of a match is supported in MEASURES only",
            operation.position,
        )

    def _in_list(self, operation: Operation) -> tuple[_Code, str]:
        operand, *choices = operation.operands
        compiled = self.compile(operand)
        self.into.copied += len(compiled[0]) * (len(choices) - 1)
        if self.into.copied > MAX_COPIED:
            raise PatternRefused(
                "too-large",
                "IN between rows of a match repeats its operand for each choice; nested as here, or with as many "
                f"choices, it repeats more than {MAX_COPIED} parts; nest fewer, or list fewer",
                operation.position,
            )
        code: _Code = []
        for place, choice in enumerate(choices):
            left, right, kind = self._aligned(replace(operation, name="="), compiled, self.compile(choice))
            lane = tables.FLOATS if kind == "float" else tables.INTEGERS
            code.extend([*left, *right, (tables.EQUAL, lane), *([(tables.OR, 0)] if place else [])])
        return code, "boolean"

    def _joined(self, operation: Operation) -> tuple[_Code, str]:
        sign = tables.AND if operation.name == "and" else tables.OR
        code: _Code = []
        for place, operand in enumerate(operation.operands):
            part, kind = self.compile(operand)
            if kind not in ("boolean", "null"):
                raise PatternRefused(
                    "type", f"{operation.name.upper()} joins conditions, not {kind}", operation.position
                )
            code = [*code, *part, *([(sign, 0)] if place else [])]
        return code, "boolean"

    def _case(self, operation: Operation) -> tuple[_Code, str]:
        condition, value, *branches = operation.operands
        otherwise: Expression = Constant(None)
        if branches:
            otherwise = branches[0] if len(branches) == 1 else replace(operation, operands=tuple(branches))
        left, right, kind = self._alike(operation, value, otherwise)
        return [*self.compile(condition)[0], *left, *right, (tables.CHOOSE, 0)], kind

    def _folded(self, operation: Operation) -> tuple[_Code, str]:
        if len(operation.operands) == 1:
            return self.compile(operation.operands[0])
        *earlier_operands, last = operation.operands
        first = (
            earlier_operands[0] if len(earlier_operands) == 1 else replace(operation, operands=tuple(earlier_operands))
        )
        left, right, kind = self._alike(operation, first, last)
        if operation.name == "coalesce":
            return [*left, *right, (tables.KNOWN_ONE, 0)], kind
        lane = tables.FLOATS if kind == "float" else tables.INTEGERS
        return [*left, *right, (_ARITHMETIC[operation.name], lane)], kind

    def _binary(self, operation: Operation, first: Expression, second: Expression) -> tuple[_Code, str]:
        name, compiled = operation.name, (self.compile(first), self.compile(second))
        (left, kind), (right, other_kind) = compiled
        if result := _SUMS.get((kind, name, other_kind)):
            self.into.times.link(self.into.times_in([*left, *right]), operation.position)
            return [*left, *right, (_ARITHMETIC[name], tables.INTEGERS)], result
        left, right, kind = self._aligned(operation, *compiled)
        lane = tables.FLOATS if kind == "float" else tables.INTEGERS
        if name in _COMPARISONS:
            return [*left, *right, (_COMPARISONS[name], lane)], "boolean"
        if kind not in (*_NUMBERS, "null"):
            raise PatternRefused("type", f"{name} does not take {kind}", operation.position)
        return [*left, *right, (_ARITHMETIC[name], lane)], kind

    def _alike(self, operation: Operation, first: Expression, second: Expression) -> tuple[_Code, _Code, str]:
        return self._aligned(operation, self.compile(first), self.compile(second))

    def _aligned(
        self, operation: Operation, first: tuple[_Code, str], second: tuple[_Code, str]
    ) -> tuple[_Code, _Code, str]:
        left, right, kind = _aligned(operation, first, second)
        if kind in _TIMES:
            self.into.times.link(self.into.times_in([*left, *right]))
        return left, right, kind


def _aligned(operation: Operation, first: tuple[_Code, str], second: tuple[_Code, str]) -> tuple[_Code, _Code, str]:
    (left, kind), (right, other_kind) = first, second
    if kind in _NUMBERS and other_kind in _NUMBERS and kind != other_kind:
        converted = [(tables.TO_FLOAT, 0)]
        return [*left, *(converted * (kind == "integer"))], [*right, *(converted * (other_kind == "integer"))], "float"
    if kind != other_kind and "null" not in (kind, other_kind):
        raise PatternRefused("type", f"{operation.name} does not take {kind} and {other_kind}", operation.position)
    return left, right, kind if other_kind == "null" else other_kind


def constant_of(conditions: Conditions, place: int, ranks: Mapping[str, int]) -> tuple[int, float]:
    """Return a constant in the two forms that kernels read, integer and float. A text becomes its rank."""
    match conditions.constants[place][1]:
        case str() as text:
            return ranks[text], 0.0
        case bool() | int() as whole:
            return int(whole), float(whole)
        case float() as number:
            return 0, number
        case datetime() | date() | timedelta():
            return int(conditions.times.numbers[conditions.times_of_constants[place]][0]), 0.0
    return 0, 0.0


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def lane_of_integers(conditions: Conditions, size: int) -> tuple[NDArray[np.int64], NDArray[np.uint8], dict[str, int]]:
    """Return the columns that kernels read as integers, a mask of their known values, and the ranks of texts.

    A text is represented by its rank among all texts of these columns and of constants. If no constant is a text, the
    returned ranks are empty.
    """
    text_columns = [column for kind, column in conditions.integer_columns if kind == "text"]
    constants = [value for kind, value in conditions.constants if kind == "text"]
    ordered = pc.unique(
        pa.concat_arrays(
            [*(text_column.cast(pa.string()) for text_column in text_columns), pa.array(constants, pa.string())]
        )
    )
    ordered = ordered.drop_null().sort()
    values = np.zeros((len(conditions.integer_columns), size), np.int64)
    is_known = np.zeros(values.shape, np.uint8)
    for place, (kind, column) in enumerate(conditions.integer_columns):
        is_known[place] = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        ranked = pc.index_in(column.cast(pa.string()), value_set=ordered) if kind == "text" else column
        if kind in _TIMES:
            values[place] = conditions.times.numbers[conditions.times_of_columns[place]]
        else:
            values[place] = integers_of(ranked, position=conditions.positions[place])
    ranks = {str(text): rank for rank, text in enumerate(ordered.to_pylist())} if constants else {}
    return values, is_known, ranks


def lane_of_floats(conditions: Conditions, size: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the columns that kernels read as floats, and a mask of the values that are not null."""
    values = np.zeros((len(conditions.float_columns), size), np.float64)
    is_known = np.zeros(values.shape, np.uint8)
    for place, column in enumerate(conditions.float_columns):
        is_known[place] = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        values[place] = column.cast(pa.float64()).fill_null(0.0).to_numpy()
    return values, is_known
