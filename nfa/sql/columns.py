"""Evaluation of expressions over columns of Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from nfa.errors import PatternRefused
from nfa.sql.operations import FUNCTIONS, OPERATIONS
from nfa.sql.syntax import Constant, Expression, Operation
from nfa.syntax import Position

_OF_NULLS = (None, pa.bool_(), pa.int64(), pa.string(), pa.timestamp("us"))  # types that nulls are given, in turn

Reader = Callable[[Expression], Any]
"""The column, or the scalar, of an expression that is no operation and no constant."""


def column_of(expression: Expression, read: Reader, size: int) -> Any:
    """The values of an expression on each of ``size`` rows, as an Arrow array.

    Raises:
        PatternRefused: An operator does not take operands of these types, or a number is too large.
    """
    found = value_of(expression, read)
    if isinstance(found, pa.Scalar):
        return pa.nulls(size, found.type) if not found.is_valid else pa.repeat(found, size)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def value_of(expression: Expression, read: Reader) -> Any:
    """As ``column_of``, but constants are scalars."""
    match expression:
        case Constant():
            return pa.scalar(expression.value)
        case Operation():
            operands = [value_of(one, read) for one in expression.operands]
            return applied(expression.name, operands, expression.position)
        case _:
            return read(expression)


def applied(name: str, operands: list[Any], position: Position) -> Any:
    """The result of an operation on Arrow arrays or scalars.

    A column of nulls has no type in Arrow; the operation gives it one that fits.
    """
    column = (OPERATIONS.get(name) or FUNCTIONS[name]).column
    has_nulls = any(pa.types.is_null(one.type) for one in operands)
    errors: list[pa.ArrowException] = []
    for kind in _OF_NULLS if has_nulls else _OF_NULLS[:1]:
        try:
            return column(*(plain(one, kind) for one in operands))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            errors.append(error)
    kinds = " and ".join(str(one.type) for one in operands)
    reason = "overflow" if "overflow" in str(errors[0]) else "type"
    what = "its result is too large" if reason == "overflow" else f"it does not take {kinds}"
    word = name.removeprefix("cast_")
    raise PatternRefused(reason, f"{word} fails: {what} ({_first_line(errors[0])})", position) from errors[0]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def plain(operand: Any, of_nulls: Any = None) -> Any:
    """A column in a type that all functions take: dictionaries and large or view texts become plain texts."""
    kind = operand.type
    if pa.types.is_null(kind) and of_nulls is not None:
        return operand.cast(of_nulls)
    if pa.types.is_dictionary(kind):
        return operand.cast(kind.value_type)
    if pa.types.is_large_string(kind) or (hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind)):
        return operand.cast(pa.string())
    return operand
