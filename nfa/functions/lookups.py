"""Lookups in reference tables and calendars, as entries of the table of functions.

``nfa.conditions.lookups`` evaluates them.
"""

from __future__ import annotations

from typing import Any

from nfa.functions.function import Function, Parameter


def _fault_of_name(name: Any) -> str | None:
    return None if isinstance(name, str) and name else "write a name"


_TABLE = Parameter("table", "text", _fault_of_name)
_COLUMN = Parameter("column", "text", _fault_of_name)
_KEY = Parameter("key", "any")

LOOKUP = Function(
    name="lookup",
    parameters=(_TABLE, _COLUMN, _KEY),
    is_repeated=True,
    result="any",
    column=None,
    summary="The value of a column in the row of a reference table, written `lookup(table, key).column`; null without "
    "such a row.",
)
IN_TABLE = Function(
    name="in_table",
    parameters=(_TABLE, _KEY),
    is_repeated=True,
    result="boolean",
    column=None,
    summary="Whether a reference table has a row with a key, written `key IN TABLE table`.",
)
_TIME = Parameter("time", "time")
_CALENDAR = Parameter("calendar", "text", _fault_of_name)


def _of_calendar(name: str, parameters: tuple[Parameter, ...], summary: str) -> Function:
    return Function(name=name, parameters=(*parameters, _CALENDAR), result="number", column=None, summary=summary)


BUSINESS_TIME = _of_calendar(
    "business_time", (_TIME,), "The business time, in microseconds, from the beginning of a calendar to a time."
)
BUSINESS_DURATION = _of_calendar(
    "business_duration",
    (Parameter("from", "time"), Parameter("to", "time")),
    "The business time between two times, in microseconds as durations are; negative if the second is earlier.",
)
ADD_BUSINESS_TIME = _of_calendar(
    "add_business_time",
    (_TIME, Parameter("duration", "number")),
    "The first moment at which a duration of business time has passed since a time.",
)
ADD_BUSINESS_DAYS = _of_calendar(
    "add_business_days",
    (_TIME, Parameter("days", "number")),
    "The end of the n-th business day after the day of a time.",
)
OF_CALENDARS = (BUSINESS_TIME, BUSINESS_DURATION, ADD_BUSINESS_TIME, ADD_BUSINESS_DAYS)
FUNCTIONS = (LOOKUP, IN_TABLE, *OF_CALENDARS)
NAMES = frozenset(function.name for function in FUNCTIONS)
