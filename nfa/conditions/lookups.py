"""Lookups in reference tables: which ones expressions have, and their values over columns and for a match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.values import INTEGER, TEXT, Values
from nfa.functions.lookups import LOOKUP, NAMES
from nfa.syntax import Call, Expression, Literal, Scalar, calls_of
from streams import key_of
from streams.tables import Lookup, Tables


def lookups_of(expression: Expression) -> Iterator[Call]:
    """The lookups within an expression, inner ones first."""
    return (call for call in reversed(list(calls_of(expression))) if call.name in NAMES)


def lookup_of(call: Call) -> Lookup:
    """The table and the column that a lookup reads."""
    table, column, keys = _parts(call)
    return Lookup(table, column, len(keys))


def looked_up(
    call: Call,
    tables: Tables | None,
    values: Callable[[Expression], Values],
    size: int,
    times_us: NDArray[np.int64] | None,
) -> Values:
    """The values of a lookup on ``size`` rows with these times; ``values`` evaluates the keys."""
    table, column, keys = _parts(call)
    if tables is None:
        return Values.of_constant(None, size)
    found = tables.looked_up(table, column, [_key_column(values(key)) for key in keys], times_us)
    if pa.types.is_boolean(found.type):
        is_null = np.asarray(found.is_null())
        return Values.of_truth(np.asarray(found.fill_null(False)), is_null)
    return Values.of_arrow(found)


def looked_up_once(call: Call, tables: Tables | None, value: Callable[[Expression], Scalar], time_us: int) -> Scalar:
    """The value of a lookup at a time; ``value`` evaluates the keys."""
    (found,) = looked_up(call, tables, lambda key: Values.of([value(key)]), 1, np.array([time_us])).to_list()
    return found


def _parts(call: Call) -> tuple[str, str | None, Sequence[Expression]]:
    table, *rest = call.arguments
    assert isinstance(table, Literal)
    if call.name != LOOKUP.name:
        return str(table.value), None, rest
    column, *keys = rest
    assert isinstance(column, Literal)
    return str(table.value), str(column.value), keys


def _key_column(values: Values) -> pa.Array:
    """The values as keys: texts, or whole numbers; others are null."""
    if values.arrow is not None:
        return values.arrow
    if (values.kinds == INTEGER).all():
        return pa.array(values.integers)
    if (values.kinds == TEXT).all():
        try:
            return pa.array(values.texts, pa.string())
        except UnicodeEncodeError:  # half of a surrogate pair, which no table has
            return pa.array([text if text.isascii() else _whole(text) for text in values.texts], pa.string())
    return pa.array([None if (key := key_of(one)) is None else _whole(key) for one in values.to_list()], pa.string())


def _whole(text: str) -> str | None:
    """The text, or None if it has half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
