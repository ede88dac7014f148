"""Attribute values as columns, with the pattern language's own comparison and arithmetic.

Values are null, boolean, int64, float64 and string. Other JSON values (lists, objects), floats that are not finite, and
missing attributes are null. Logic is three-valued, as in SQL. Semantics: ``docs/semantics.md``, values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.likeness import like_test
from nfa.syntax import ArithmeticOperator, ComparisonOperator
from streams import numbers_of

NULL, BOOLEAN, INTEGER, FLOAT, TEXT = range(5)

COMPARE: Mapping[ComparisonOperator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CALCULATE: Mapping[ArithmeticOperator, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}

_INT64 = range(-(2**63), 2**63)
_FEW_ROWS = 256
_NO_TEXT = np.array("", np.object_)
_PLAIN: Sequence[Callable[[int, float, str], Any]] = (  # indexed by kind
    lambda integer, number, text: None,
    lambda integer, number, text: integer != 0,
    lambda integer, number, text: integer,
    lambda integer, number, text: number,
    lambda integer, number, text: text,
)


@dataclass(frozen=True, slots=True)
class Values:
    """A column of values, each of which is null, a boolean, an integer, a float or a text.

    ``kinds`` has the kind of each row's value, from ``NULL`` to ``TEXT``. ``integers`` has the integers, and booleans
    as 0 and 1. ``floats`` has all numbers. ``texts`` has the texts, and an empty text on other rows. ``arrow`` is the
    column of texts in Arrow, if the caller had it.
    """

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]
    texts: NDArray[np.object_]
    arrow: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, items: Iterable[Any]) -> Values:
        values = list(items)
        return _of_one_type(values) or cls._of_any(values)

    @classmethod
    def of_columns(cls, items: Any) -> Values:
        """Build the column from plain JSON values, or from a tuple (kinds, integers, floats) if no value is a text."""
        if not isinstance(items, tuple):
            return cls.of(items)
        kinds, integers, floats = items
        return cls(kinds, integers, floats, _no_texts(len(kinds)))

    @classmethod
    def _of_any(cls, items: Sequence[Any]) -> Values:
        rows = [classified(item) for item in items]
        kinds = np.array([kind for kind, _ in rows], np.uint8)
        integers = np.array([value if kind in (BOOLEAN, INTEGER) else 0 for kind, value in rows], np.int64)
        floats = np.array([float(value) if kind in (INTEGER, FLOAT) else 0.0 for kind, value in rows], np.float64)
        texts = np.array([value if kind == TEXT else "" for kind, value in rows], np.object_)
        return cls(kinds, integers, floats, texts)

    @classmethod
    def of_arrow(cls, column: pa.Array) -> Values:
        """Build the column from an Arrow array. Types other than int64, float64 and string are slower to read."""
        size = len(column)
        if size and not column.null_count and pa.types.is_float64(column.type):
            return of_floats(numbers_of(column), np.ones(size, np.bool_))
        is_valid = np.asarray(column.is_valid())
        zeros, texts = np.zeros(size, np.int64), _no_texts(size)
        if pa.types.is_int64(column.type):
            integers = column.fill_null(0).to_numpy(zero_copy_only=False)
            return cls(np.where(is_valid, INTEGER, NULL).astype(np.uint8), integers, integers.astype(np.float64), texts)
        if pa.types.is_float64(column.type):
            floats = column.fill_null(np.nan).to_numpy(zero_copy_only=False)
            return of_floats(floats, is_valid)
        if pa.types.is_string(column.type):
            return _ArrowTexts(np.where(is_valid, TEXT, NULL).astype(np.uint8), zeros, np.zeros(size), column)
        return cls.of(column.to_pylist())

    @classmethod
    def of_constant(cls, item: Any, size: int) -> Values:
        """Build a column with the same value on every row. Callers must not write to its arrays."""
        cell = _constant(item)
        if size <= _FEW_ROWS:  # up to this size, copies cost less than views
            return cls(
                cell.kinds.repeat(size), cell.integers.repeat(size), cell.floats.repeat(size), cell.texts.repeat(size)
            )
        return cls(
            np.broadcast_to(cell.kinds, size),
            np.broadcast_to(cell.integers, size),
            np.broadcast_to(cell.floats, size),
            np.broadcast_to(cell.texts, size),
        )

    @classmethod
    def of_texts(cls, texts: NDArray[np.object_]) -> Values:
        size = len(texts)
        return cls(np.full(size, TEXT, np.uint8), np.zeros(size, np.int64), np.zeros(size), texts)

    @classmethod
    def of_lists(cls, items: Sequence[Any]) -> Values:
        """Build a column of any JSON values, for functions of lists only.

        The values are in ``texts``. Every kind is ``NULL``, so all other code reads null.
        """
        size = len(items)
        lists = np.fromiter(items, np.object_, size)
        return cls(np.full(size, NULL, np.uint8), np.zeros(size, np.int64), np.zeros(size), lists)

    @classmethod
    def of_integers(cls, integers: NDArray[np.int64]) -> Values:
        size = len(integers)
        return cls(np.full(size, INTEGER, np.uint8), integers, integers.astype(np.float64), _no_texts(size))

    @classmethod
    def of_truth(cls, is_true: NDArray[np.bool_], is_null: NDArray[np.bool_]) -> Values:
        """Build a column of truth values. A value is null where ``is_null`` is true, whatever ``is_true`` says."""
        kinds = np.where(is_null, NULL, BOOLEAN).astype(np.uint8)
        integers = (is_true & ~is_null).astype(np.int64)
        return cls(kinds, integers, np.zeros(len(kinds)), _no_texts(len(kinds)))

    def take(self, rows: NDArray[np.intp]) -> Values:
        return Values(self.kinds[rows], self.integers[rows], self.floats[rows], self.texts[rows])

    def to_list(self) -> list[bool | int | float | str | None]:
        """Return the values as plain JSON."""
        columns = (self.kinds, self.integers, self.floats, self.texts)
        return [
            _PLAIN[kind](integer, number, text)
            for kind, integer, number, text in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def to_arrow(self) -> pa.Array | None:
        """Return the column in the Arrow form that ``of_arrow`` reads.

        The result is None if the values have several kinds, or if a text is not valid Unicode.
        """
        if self.arrow is not None:
            return self.arrow
        kinds = {int(kind) for kind in np.unique(self.kinds)} - {NULL}
        if len(kinds) > 1:
            return None
        values = {BOOLEAN: self.integers != 0, INTEGER: self.integers, FLOAT: self.floats}
        try:
            return pa.array(values.get(next(iter(kinds), NULL), self.texts), mask=self.is_null)
        except UnicodeEncodeError:  # a text contains half of a surrogate pair
            return None

    @property
    def is_number(self) -> NDArray[np.bool_]:
        is_number: NDArray[np.bool_] = (self.kinds == INTEGER) | (self.kinds == FLOAT)
        return is_number

    @property
    def is_true(self) -> NDArray[np.bool_]:
        is_true: NDArray[np.bool_] = (self.kinds == BOOLEAN) & (self.integers != 0)
        return is_true

    @property
    def is_false(self) -> NDArray[np.bool_]:
        is_false: NDArray[np.bool_] = (self.kinds == BOOLEAN) & (self.integers == 0)
        return is_false

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.equal(self.kinds, NULL)


class _ArrowTexts(Values):
    """A column of texts in Arrow.

    Python strings are made on the first use of ``texts``, because lookups never need them.
    """

    def __init__(
        self, kinds: NDArray[np.uint8], integers: NDArray[np.int64], floats: NDArray[np.float64], arrow: pa.Array
    ) -> None:
        for name, value in (("kinds", kinds), ("integers", integers), ("floats", floats), ("arrow", arrow)):
            object.__setattr__(self, name, value)

    @cached_property
    def texts(self) -> NDArray[np.object_]:
        assert self.arrow is not None
        texts: NDArray[np.object_] = self.arrow.fill_null("").to_numpy(zero_copy_only=False)
        return texts


@lru_cache(maxsize=4096, typed=True)
def _constant(item: Any) -> Values:
    return Values.of([item])


def _no_texts(size: int) -> NDArray[np.object_]:
    """Return an array of ``size`` empty texts. Callers must not write to the result."""
    return np.full(size, "", np.object_) if size <= _FEW_ROWS else np.broadcast_to(_NO_TEXT, size)


def _of_one_type(items: Sequence[Any]) -> Values | None:
    """Build a column of only str, only int or only float, which is fast.

    The result is None for other items, or if an integer exceeds int64.
    """
    types = set(map(type, items))
    if types == {str}:
        texts = np.empty(len(items), np.object_)
        texts[:] = items
        return Values.of_texts(texts)
    if types == {int}:
        try:
            return Values.of_integers(np.array(items, np.int64))
        except OverflowError:
            return None
    if types == {float}:
        return of_floats(np.array(items, np.float64), np.ones(len(items), np.bool_))
    return None


def classified(item: Any) -> tuple[int, Any]:
    """Return the kind and the normalised value of one plain JSON value."""
    match item:
        case bool():
            return BOOLEAN, int(item)
        case int():
            return (INTEGER, item) if item in _INT64 else classified(_as_float(item))
        case float():
            return (FLOAT, item) if isfinite(item) else (NULL, None)
        case str():
            return TEXT, item
        case _:
            return NULL, None


def any_of(operands: Sequence[Values], size: int) -> Values:
    """Return the three-valued OR of the operands."""
    is_true = reduce(np.logical_or, [operand.is_true for operand in operands], np.zeros(size, np.bool_))
    is_false = reduce(np.logical_and, [operand.is_false for operand in operands], np.ones(size, np.bool_))
    return Values.of_truth(is_true, ~(is_true | is_false))


def all_of(operands: Sequence[Values], size: int) -> Values:
    """Return the three-valued AND of the operands."""
    is_true = reduce(np.logical_and, [operand.is_true for operand in operands], np.ones(size, np.bool_))
    is_false = reduce(np.logical_or, [operand.is_false for operand in operands], np.zeros(size, np.bool_))
    return Values.of_truth(is_true, ~(is_true | is_false))


def compared(sign: ComparisonOperator, left: Values, right: Values) -> Values:
    """Compare two columns row by row: numbers with numbers, texts with texts, and booleans for equality only.

    Two integers are compared exactly, other numbers as float64. The result is null for other pairs of kinds.
    """
    compare = COMPARE[sign]
    both_integers = (left.kinds == INTEGER) & (right.kinds == INTEGER)
    if both_integers.all():
        return Values.of_truth(compare(left.integers, right.integers), ~both_integers)
    is_true = np.zeros(len(left), np.bool_)
    is_known = np.zeros(len(left), np.bool_)
    numbers = left.is_number & right.is_number & ~both_integers
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


def calculated(sign: ArithmeticOperator, left: Values, right: Values) -> Values:
    """Return the results of float64 arithmetic, or null for non-numbers, division by zero and overflow."""
    with np.errstate(all="ignore"):
        floats = CALCULATE[sign](left.floats, right.floats)
    return of_floats(floats, left.is_number & right.is_number)


def negated(operand: Values) -> Values:
    """Return the negated numbers, as float64."""
    return of_floats(-operand.floats, operand.is_number)


def first_known(operands: Sequence[Values]) -> Values:
    """Return, on each row, the first operand that is not null."""
    first = operands[0]
    for operand in operands[1:]:
        is_null = first.is_null
        if not is_null.any():
            break
        first = _where(is_null, operand, first)
    return first


def chosen(condition: Values, value: Values, otherwise: Values) -> Values:
    """Return, on each row, ``value`` if the condition is true, and ``otherwise`` if it is false or null."""
    return _where(condition.is_true, value, otherwise)


def _where(rows: NDArray[np.bool_], value: Values, otherwise: Values) -> Values:
    return Values(
        np.where(rows, value.kinds, otherwise.kinds),
        np.where(rows, value.integers, otherwise.integers),
        np.where(rows, value.floats, otherwise.floats),
        np.where(rows, value.texts, otherwise.texts),
    )


def likened(operand: Values, pattern: str) -> Values:
    """Test whether each text matches the LIKE pattern. The result is null for values that are not texts."""
    resembles = like_test(pattern)
    is_text = np.equal(operand.kinds, TEXT)
    is_true = np.zeros(len(operand), np.bool_)
    is_true[is_text] = [resembles(text) for text in operand.texts[is_text]]
    return Values.of_truth(is_true, ~is_text)


def of_floats(floats: NDArray[np.float64], is_known: NDArray[np.bool_]) -> Values:
    """Build a column of numbers. NaN, infinite numbers and numbers that are not known become null."""
    is_known = is_known & np.isfinite(floats)
    size = len(floats)
    kinds = np.multiply(is_known, FLOAT, dtype=np.uint8)  # NULL is 0
    known = floats if is_known.all() else np.where(is_known, floats, 0.0)
    return Values(kinds, np.zeros(size, np.int64), known, _no_texts(size))


def _as_float(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None
