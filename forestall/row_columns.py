"""Results other than matches as tables, converted from plain JSON rows to typed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from forestall.match_columns import FIXED, MatchForm, free_name, typed_column
from service import StreamReport
from streams import parse_time

_TEXT, _TEXTS, _TIME = pa.string(), pa.list_(pa.string()), FIXED.field("start").type
_MATCH = {field.name: field.type for field in FIXED}
_COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "alerts": _MATCH,
    "suppressed_alerts": _MATCH,
    "endings": {"pattern": _TEXT, "key": _TEXT, "event": _TEXT, "reason": _TEXT},
    "deviations": {
        "key": _TEXT,
        "event": _TEXT,
        "event_type": _TEXT,
        "time": _TIME,
        "kind": _TEXT,
        "constraints": _TEXTS,
        "symbols": _TEXTS,
        "allowed": _TEXTS,
        "released": pa.int64(),
        "reason": _TEXT,
    },
    "timeouts": {"pattern": _TEXT, "key": _TEXT, "missing": _TEXTS, "start": _TIME, "due": _TIME},
    "corrections": {"pattern": _TEXT, "key": _TEXT, "event": _TEXT, "event_type": _TEXT, "time": _TIME},
}
"""Columns of each list of results; lists with bound events also have a column per alias."""
_EVENT, _ALIASES, _RETURNS, _STREAM = "event", "bindings", "returns", "stream"


OUTPUTS: Mapping[str, str] = MappingProxyType(
    {
        "matches": "matches",
        "terminations": "endings",
        "deviations": "deviations",
        "timeouts": "timeouts",
        "corrections": "corrections",
    }
)
"""The lists of results of ``forestall.match``, and their names in ``forestall match``."""


def table_of_results(report: StreamReport, output: str, form: MatchForm) -> pa.Table:
    """Return a list of a run's results as an Arrow table. ``output`` is a name in ``OUTPUTS``."""
    if output == "matches":
        return form.table(report.lanes)
    return table_of_rows(report.bodies(OUTPUTS[output]), OUTPUTS[output], form)


def table_of_rows(
    rows: Sequence[Mapping[str, Any]], output: str, form: MatchForm, *, has_stream: bool = False
) -> pa.Table:
    """Convert the results of one list to columns.

    Args:
        rows: The results, as runs list them.
        output: The list's name in a run.
        form: The columns of matches. Columns of RETURN and of aliases are added if the list has them.
        has_stream: Whether the results name their stream.
    """
    kinds = {**({_STREAM: _TEXT} if has_stream else {}), **_COLUMNS[output]}
    kinds |= {"row": _TEXT} if form.has_rows and "pattern" in kinds else {}
    columns = {
        name: _column([row.get(name) for row in rows], form.event if name == _EVENT else kind)
        for name, kind in kinds.items()
    }
    is_match = _COLUMNS[output] is _MATCH
    for name in form.returns if is_match else ():
        columns[free_name(name, list(columns))] = value_column([row.get(_RETURNS, {}).get(name) for row in rows])
    for alias in form.aliases if is_match or output in ("timeouts", "corrections") else ():
        values = [row[_ALIASES].get(alias) for row in rows]
        columns[free_name(alias, list(columns))] = _column(values, pa.list_(form.event))
    return pa.table(columns)


def value_column(values: Sequence[Any]) -> pa.Array:
    """Convert plain JSON values to a column of their type. If they have several types, they become JSON text."""
    try:
        column = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return typed_column(values, _TEXT)
    return column.cast(_TEXT) if pa.types.is_null(column.type) else column


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == _TIME:
        times = [None if value is None else parse_time(value) for value in values]
        return pa.array(times, pa.int64()).cast(pa.timestamp("us")).cast(_TIME)
    if kind == pa.bool_():
        return pa.array([bool(value) for value in values], kind)
    if kind == pa.int64():
        return pa.array([None if value is None else int(value) for value in values], kind)
    if kind == pa.list_(pa.int64()):
        return pa.array([None if numbers is None else [int(number) for number in numbers] for numbers in values], kind)
    return typed_column(values, kind)
