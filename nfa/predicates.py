"""Step conditions, evaluated once per distinct condition and batch, over columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from nfa.query import Query
from nfa.scope import attributes_of, own_path
from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Not,
    Path,
)
from nfa.values import BOOLEAN, FLOAT, INTEGER, TEXT, Values
from streams import EventBatch

ALWAYS = 0  # row of the condition that every event meets

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Columns = Mapping[Path, Values]


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """The distinct (event type, condition) pairs of a set of patterns.

    Attributes:
        rows: Row of each pair in the result of ``evaluate``, from 1; row ``ALWAYS`` is true everywhere.
    """

    rows: Mapping[tuple[str, Expression | None], int]

    @classmethod
    def of(cls, queries: Sequence[Query]) -> PredicateTable:
        """The conditions of some patterns, each once."""
        rows: dict[tuple[str, Expression | None], int] = {}
        for query in queries:
            for term in query.terms:
                for atom in term.atoms:
                    if atom.condition is not None:
                        rows.setdefault((atom.type, cls.normal_form(atom)), len(rows) + 1)
        return cls(rows)

    @staticmethod
    def normal_form(atom: Atom) -> Expression | None:
        """The atom's condition without its own alias, so that equal conditions are equal values."""
        return None if atom.condition is None else _without_alias(atom.condition, atom.alias)

    def evaluate(self, batch: EventBatch) -> NDArray[np.bool_]:
        """Truth of every condition on every row, shape (conditions + 1, rows); only rows of its type can be true."""
        passed = np.zeros((len(self.rows) + 1, len(batch)), np.bool_)
        passed[ALWAYS] = True
        codes = {name: code for code, name in enumerate(batch.type_names)}
        type_codes = batch.type_codes
        by_type: dict[str, list[tuple[Expression, int]]] = {}
        for (event_type, condition), row in self.rows.items():
            if condition is not None and event_type in codes:
                by_type.setdefault(event_type, []).append((condition, row))
        for event_type, conditions in by_type.items():
            rows = np.flatnonzero(type_codes == codes[event_type])
            paths = {attribute.path for condition, _ in conditions for attribute in attributes_of(condition)}
            columns = read_columns(batch, rows, paths)
            for condition, row in conditions:
                passed[row, rows] = evaluate(condition, columns, len(rows)).is_true
        return passed


def read_columns(batch: EventBatch, rows: NDArray[np.intp], paths: set[Path]) -> dict[Path, Values]:
    """Attributes of some rows, from decoded columns where the batch has them, else from its JSON."""
    decoded = {path: Values.of_arrow(batch.attributes[path].take(rows)) for path in paths if path in batch.attributes}
    if missing := paths - decoded.keys():
        objects = [orjson.loads(data) for data in batch.columns.column("data").take(rows).to_pylist()]
        for path in missing:
            decoded[path] = Values.of(read_path(item, path) for item in objects)
    return decoded


def read_path(item: Any, path: Path) -> Any:
    """Value at a path within nested objects; None where it leads nowhere."""
    for name in path:
        if not isinstance(item, dict):
            return None
        item = item.get(name)
    return item


def evaluate(expression: Expression, columns: Columns, size: int) -> Values:
    """Value of an expression on ``size`` rows."""
    match expression:
        case Literal():
            return _repeated(Values.of([expression.value]), size)
        case Attribute():
            return columns[expression.path]
        case Comparison():
            left, right = evaluate(expression.left, columns, size), evaluate(expression.right, columns, size)
            return _compared(expression.operator, left, right)
        case IsNull():
            operand = evaluate(expression.operand, columns, size)
            return Values.of_truth(operand.is_null, np.zeros(size, np.bool_))
        case InList():
            operand = evaluate(expression.operand, columns, size)
            return _any_of(
                [_compared("=", operand, evaluate(value, columns, size)) for value in expression.values], size
            )
        case Not():
            operand = evaluate(expression.operand, columns, size)
            return Values.of_truth(operand.is_false, ~(operand.is_true | operand.is_false))
        case Both():
            return _all_of([evaluate(operand, columns, size) for operand in expression.operands], size)
        case Either():
            return _any_of([evaluate(operand, columns, size) for operand in expression.operands], size)


def _any_of(operands: list[Values], size: int) -> Values:
    is_true = reduce(np.logical_or, [operand.is_true for operand in operands], np.zeros(size, np.bool_))
    is_false = reduce(np.logical_and, [operand.is_false for operand in operands], np.ones(size, np.bool_))
    return Values.of_truth(is_true, ~(is_true | is_false))


def _all_of(operands: list[Values], size: int) -> Values:
    is_true = reduce(np.logical_and, [operand.is_true for operand in operands], np.ones(size, np.bool_))
    is_false = reduce(np.logical_or, [operand.is_false for operand in operands], np.zeros(size, np.bool_))
    return Values.of_truth(is_true, ~(is_true | is_false))


def _compared(sign: str, left: Values, right: Values) -> Values:
    """Numbers with numbers (two integers exactly, else as float64), texts with texts, booleans for equality only."""
    compare = _COMPARE[sign]
    is_true = np.zeros(len(left), np.bool_)
    is_known = np.zeros(len(left), np.bool_)
    both_integers = (left.kinds == INTEGER) & (right.kinds == INTEGER)
    numbers = _is_number(left) & _is_number(right) & ~both_integers
    texts = (left.kinds == TEXT) & (right.kinds == TEXT)
    booleans = (left.kinds == BOOLEAN) & (right.kinds == BOOLEAN) & (sign in ("=", "!="))
    for rows, values in (
        (both_integers, (left.integers, right.integers)),
        (numbers, (left.floats, right.floats)),
        (texts, (left.texts, right.texts)),
        (booleans, (left.integers, right.integers)),
    ):
        if rows.any():
            is_true[rows] = compare(values[0][rows], values[1][rows])
            is_known |= rows
    return Values.of_truth(is_true, ~is_known)


def _is_number(values: Values) -> NDArray[np.bool_]:
    is_number: NDArray[np.bool_] = (values.kinds == INTEGER) | (values.kinds == FLOAT)
    return is_number


def _repeated(value: Values, size: int) -> Values:
    return Values(
        np.repeat(value.kinds, size),
        np.repeat(value.integers, size),
        np.repeat(value.floats, size),
        np.repeat(value.texts, size),
    )


def _without_alias(expression: Expression, alias: str) -> Expression:
    match expression:
        case Attribute():
            return Attribute(own_path(expression, alias))
        case Literal():
            return expression
        case Comparison():
            left, right = _without_alias(expression.left, alias), _without_alias(expression.right, alias)
            return Comparison(expression.operator, left, right)
        case IsNull():
            return IsNull(_without_alias(expression.operand, alias))
        case InList():
            return InList(_without_alias(expression.operand, alias), expression.values)
        case Not():
            return Not(_without_alias(expression.operand, alias))
        case Both():
            return Both(tuple(_without_alias(operand, alias) for operand in expression.operands))
        case Either():
            return Either(tuple(_without_alias(operand, alias) for operand in expression.operands))
