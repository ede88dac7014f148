"""Results other than matches as tables: plain JSON rows in, typed columns out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from forestall.match_columns import FIXED, MatchForm, free_name
from streams import parse_time, time_column

_TEXT, _TEXTS, _TIME = pa.string(), pa.list_(pa.string()), FIXED.field("start").type
_EVENT, _ALIASES = "event", "bindings"
_COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
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
"""The columns of each list of results; timeouts and corrections also have one for each alias."""
_BOUND = ("timeouts", "corrections")


def table_of_rows(rows: Sequence[Mapping[str, Any]], output: str, form: MatchForm) -> pa.Table:
    """Results of one list as columns.

    Args:
        rows: The results, as runs list them.
        output: Their list in ``forestall match``.
        form: The form of the matches, whose aliases timeouts and corrections have.
    """
    columns = {
        name: _column([row.get(name) for row in rows], form.event if name == _EVENT else kind)
        for name, kind in _COLUMNS[output].items()
    }
    for alias in form.aliases if output in _BOUND else ():
        name = free_name(alias, list(columns))
        columns[name] = _column([row[_ALIASES].get(alias) for row in rows], pa.list_(form.event))
    return pa.table(columns)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == _TIME:
        return time_column(np.array([parse_time(value) for value in values], np.int64))
    if kind == pa.int64():
        return pa.array([None if value is None else int(value) for value in values], kind)
    if kind == pa.list_(pa.int64()):
        return pa.array([None if some is None else [int(one) for one in some] for some in values], kind)
    return pa.array(values, kind)
