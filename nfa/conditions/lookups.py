"""Lookups in reference tables and calendars: finds them in expressions, and evaluates them over columns.

A lookup in a calendar is a function of times that depends on business hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.calls import times_of
from nfa.conditions.residuals import event_of
from nfa.conditions.values import INTEGER, NULL, TEXT, Values
from nfa.functions.lookups import ADD_BUSINESS_DAYS, ADD_BUSINESS_TIME, BUSINESS_DURATION, BUSINESS_TIME, LOOKUP, NAMES
from nfa.functions.times import moments_of
from nfa.syntax import Arithmetic, Attribute, BusinessTime, Call, Expression, Literal, calls_of
from streams import key_of
from streams.tables import NEVER, OPENS, PREFIX, BusinessHours, Lookup, Tables


def lookups_of(expression: Expression) -> Iterator[Call]:
    """Return the lookups within an expression, inner ones first."""
    return (call for call in reversed(list(calls_of(expression))) if call.name in NAMES)


def lookup_of(call: Call) -> Lookup:
    """Return the table and the column that a lookup reads."""
    if call.name in _OF_CALENDARS:
        return Lookup(PREFIX + _calendar(call), OPENS, 1)
    table, column, keys = _parts(call)
    return Lookup(table, column, len(keys))


def deadline_of(business: BusinessTime) -> Call:
    """Return a call that computes the deadline of a WITHIN in business time, from the first event of a match."""
    time = Call("time", (Attribute(()),))
    name, amount = ADD_BUSINESS_TIME.name, business.us
    if amount is None:
        name, amount = ADD_BUSINESS_DAYS.name, business.days
    return Call(name, (time, Literal(amount), Literal(business.calendar)))


def of_each_event(call: Call) -> Expression:
    """Rewrite a business duration between two events as a difference of two calls, each of which reads one event.

    The matcher can compute such calls as columns before it combines events. Other calls are returned unchanged.
    """
    if call.name != BUSINESS_DURATION.name or event_of(call) is not None:
        return call
    begin, end, calendar = call.arguments
    return Arithmetic("-", *(Call(BUSINESS_TIME.name, (time, calendar), call.position) for time in (end, begin)))


def looked_up(
    call: Call,
    tables: Tables | None,
    values: Callable[[Expression], Values],
    size: int,
    times_us: NDArray[np.int64] | None,
) -> Values:
    """Return the values of a lookup on ``size`` rows.

    The lookup of row ``i`` reads the table as it was at ``times_us[i]``. The function ``values`` evaluates the keys.
    """
    if call.name in _OF_CALENDARS:
        return _by_calendar(call, tables, values, size, times_us)
    table, column, keys = _parts(call)
    if tables is None:
        return Values.of_constant(None, size)
    column_values = tables.looked_up(table, column, [_key_column(values(key)) for key in keys], times_us)
    if pa.types.is_boolean(column_values.type):
        is_null = np.asarray(column_values.is_null())
        return Values.of_truth(np.asarray(column_values.fill_null(False)), is_null)
    return Values.of_arrow(column_values)


def _parts(call: Call) -> tuple[str, str | None, Sequence[Expression]]:
    table, *rest = call.arguments
    assert isinstance(table, Literal)
    if call.name != LOOKUP.name:
        return str(table.value), None, rest
    column, *keys = rest
    assert isinstance(column, Literal)
    return str(table.value), str(column.value), keys


def _calendar(call: Call) -> str:
    name = call.arguments[-1]
    assert isinstance(name, Literal)
    return str(name.value)


def _by_calendar(
    call: Call,
    tables: Tables | None,
    values: Callable[[Expression], Values],
    size: int,
    times_us: NDArray[np.int64] | None,
) -> Values:
    """Return the values of a call that reads a calendar, or null for times outside the years of the calendar."""
    integers, is_known = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    operands = [values(argument) for argument in call.arguments[:-1]]
    for rows, hours in () if tables is None else tables.hours(_calendar(call), times_us, size):
        integers[rows], is_known[rows] = _OF_CALENDARS[call.name](hours, *(operand.take(rows) for operand in operands))
    column = Values.of_integers(np.where(is_known, integers, 0))
    column.kinds[~is_known] = NULL
    return column


def _time(hours: BusinessHours, times: Values) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    moments, is_known = moments_of(times_of(times), hours.zone)
    return moments, is_known & hours.covers(moments) & (times.is_number | (times.kinds == TEXT))


def _elapsed(hours: BusinessHours, times: Values) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    moments, is_known = _time(hours, times)
    return hours.elapsed(moments), is_known


def _passed(hours: BusinessHours, begin: Values, end: Values) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    (first, is_first_known), (last, is_last_known) = _elapsed(hours, begin), _elapsed(hours, end)
    return last - first, is_first_known & is_last_known


def _added(
    add: Callable[[BusinessHours, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
) -> Callable[..., tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return a function that adds amounts of business time to times, given ``add`` for valid amounts.

    The function's results are null for times outside the calendar and for amounts below 1.
    """

    def deadlines_of(
        hours: BusinessHours, times: Values, amounts: Values
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        moments, is_known = _time(hours, times)
        known_amounts = times_of(amounts.take(np.flatnonzero(amounts.is_number)))
        whole_amounts = np.zeros(len(moments), np.int64)
        whole_amounts[amounts.is_number] = known_amounts
        deadlines = add(hours, moments, np.maximum(whole_amounts, 1))
        return deadlines, is_known & (whole_amounts >= 1) & (deadlines != NEVER)

    return deadlines_of


_OF_CALENDARS: Mapping[str, Callable[..., tuple[NDArray[np.int64], NDArray[np.bool_]]]] = {
    BUSINESS_TIME.name: _elapsed,
    BUSINESS_DURATION.name: _passed,
    ADD_BUSINESS_TIME.name: _added(BusinessHours.after_hours),
    ADD_BUSINESS_DAYS.name: _added(BusinessHours.after_days),
}


def _key_column(values: Values) -> pa.Array:
    """Convert the values of a table key to Arrow. Keys are texts or whole numbers; other values become null."""
    if values.arrow is not None:
        return values.arrow
    if (values.kinds == INTEGER).all():
        return pa.array(values.integers)
    if (values.kinds == TEXT).all():
        try:
            return pa.array(values.texts, pa.string())
        except UnicodeEncodeError:  # half of a surrogate pair, which no table contains
            return pa.array([text if text.isascii() else _whole(text) for text in values.texts], pa.string())
    return pa.array(
        [None if (key := key_of(entry)) is None else _whole(key) for entry in values.to_list()], pa.string()
    )


def _whole(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
