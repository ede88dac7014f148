"""Calls of functions over columns of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.values import BOOLEAN, INTEGER, TEXT, Values, all_of, chosen, compared, first_known, of_floats
from nfa.functions.function import Function, Kind, Parameter, Result
from nfa.syntax import Scalar

_LARGE_US = 2.0**62  # later than the end of every calendar

_KNOWN: Mapping[Kind, Callable[[Values], NDArray[np.bool_]]] = {
    "text": lambda values: np.equal(values.kinds, TEXT),
    "number": lambda values: values.is_number,
    "boolean": lambda values: np.equal(values.kinds, BOOLEAN),
    "time": lambda values: values.is_number | np.equal(values.kinds, TEXT),
}


def times_of(values: Values) -> Any:
    """Return times as an int64 array of microseconds, or as a list if some times are texts.

    In the list, texts are unchanged, and all other times are in microseconds.
    """
    large = np.clip(values.floats, -_LARGE_US, _LARGE_US).astype(np.int64)
    times = np.where(values.kinds == INTEGER, values.integers, large)
    is_text = np.equal(values.kinds, TEXT)
    if not is_text.any():
        return times
    rows = zip(is_text.tolist(), values.texts.tolist(), times.tolist(), strict=True)
    return [text if is_text else time for is_text, text, time in rows]


_OPERATORS: Mapping[str, Callable[[Sequence[Values]], Values]] = {
    "coalesce": first_known,
    "if": lambda operands: chosen(*operands),
    "between": lambda operands: all_of(
        [compared(">=", operands[0], operands[1]), compared("<=", operands[0], operands[2])], len(operands[0])
    ),
}
_COLUMNS: Mapping[Kind, Callable[[Values], Any]] = {
    "text": lambda values: values.texts.tolist(),
    "number": lambda values: values.floats,
    "boolean": lambda values: values.integers != 0,
    "time": times_of,
}


def called(function: Function, arguments: Sequence[Values | Scalar], size: int) -> Values:
    """Return the values of a function on ``size`` rows. An argument is a column, or a plain value for all rows."""
    parameters = function.parameters_of(len(arguments))
    assert parameters is not None
    if function.column is None:
        return _OPERATORS[function.name](
            [operand if isinstance(operand, Values) else Values.of_constant(operand, size) for operand in arguments]
        )
    pairs = [
        (parameter, argument if parameter.fault or isinstance(argument, Values) else Values.of_constant(argument, size))
        for parameter, argument in zip(parameters, arguments, strict=True)
    ]
    is_known = np.ones(size, np.bool_)
    for parameter, argument in pairs:
        is_known &= _KNOWN[parameter.kind](argument) if isinstance(argument, Values) else argument is not None
    rows = np.flatnonzero(is_known)
    columns = [_column(parameter, argument, rows, size) for parameter, argument in pairs]
    return _spread(_values_of(function.column(*columns)), rows, size) if len(rows) else Values.of_constant(None, size)


def _column(parameter: Parameter, argument: Values | Scalar, rows: NDArray[np.intp], size: int) -> Any:
    if not isinstance(argument, Values):
        return argument
    return _COLUMNS[parameter.kind](argument if len(rows) == size else argument.take(rows))


def _values_of(result: Result) -> Values:
    if not isinstance(result, np.ndarray):
        return Values.of(result)
    if result.dtype == np.bool_:
        return Values.of_truth(result, np.zeros(len(result), np.bool_))
    return Values.of_integers(result) if result.dtype == np.int64 else of_floats(result, np.ones(len(result), np.bool_))


def _spread(values: Values, rows: NDArray[np.intp], size: int) -> Values:
    if len(rows) == size:
        return values
    places = np.zeros(size, np.intp)
    places[rows] = np.arange(len(rows))
    spread = values.take(places)
    is_null = np.ones(size, np.bool_)
    is_null[rows] = False
    spread.kinds[is_null] = 0
    spread.integers[is_null] = 0
    spread.floats[is_null] = 0.0
    spread.texts[is_null] = ""
    return spread
