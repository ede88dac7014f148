"""Lookups in reference tables, as entries of the table of functions; ``nfa.conditions.lookups`` evaluates them."""

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
FUNCTIONS = (LOOKUP, IN_TABLE)
NAMES = frozenset(one.name for one in FUNCTIONS)
