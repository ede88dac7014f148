"""The members of a join's derived events (``return``): columns over a combination, or totals over a key's events."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

from joins.errors import JoinRefused
from streams import inner_value

OfEvent: TypeAlias = Literal["value", "id", "type", "time", "decided_by"]
Total: TypeAlias = Literal["count", "sum", "min", "max", "avg", "first", "last", "distinct"]

_COLUMN = re.compile(
    r"(?:(?P<function>[a-z_]+)\s*\(\s*)?(?P<alias>[A-Za-z_]\w*)(?:\.(?P<path>[^\s()]+))?(?P<end>\s*\))?"
)
_NUMBERS = frozenset((int, float))
_MIXED = False  # state of a total that remains null, because a value has another type
_OF_COLUMNS = frozenset((None, *get_args(OfEvent)[1:], *get_args(Total)))
_WITHOUT_PATH = ("count", "id", "type", "time", "decided_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A value from which members of a derived event are made, such as ``o.price`` or ``sum(p.weight)``.

    Attributes:
        name: Name of the member of which the column is the only value. Otherwise empty.
        alias: The input.
        function: What the value is: a property of one event, or a total over many.
        path: Path of the attribute. Empty if the function needs none.
    """

    name: str
    alias: str
    function: OfEvent | Total
    path: tuple[str, ...] = ()


Placed: TypeAlias = tuple[Sequence[Any], NDArray[np.intp]]
"""Distinct values of a column, and for each combination the index of its value among them."""


class Expression(Protocol):
    """A compiled member of ``return`` that is more than one column. It is computed from columns or totals."""

    @property
    def reads(self) -> Sequence[Column]:
        """The columns that the expression needs, without names. A ``time`` of an event is passed in microseconds."""
        ...

    def column(self, values: Sequence[Placed], size: int) -> list[Any]:
        """Return the expression's value for each of ``size`` combinations or keys, as plain JSON.

        ``values`` has an entry for each column of ``reads``: the column's distinct values, and for each combination the
        index of its value.
        """
        ...


class Expressions(Protocol):
    """A function that compiles an expression in ``return``. It is not called for a text that is a single column."""

    def __call__(self, text: str, aliases: Sequence[str], *, takes_totals: bool) -> Expression | None:
        """Compile the text of a member of ``return``. Return None if the language has no such expressions.

        The text reads columns of the inputs in ``aliases``, or totals if ``takes_totals`` is true.
        """
        ...


def no_expressions(text: str, aliases: Sequence[str], *, takes_totals: bool) -> Expression | None:
    """Return None for every text. These are the ``Expressions`` of callers without a language of expressions."""
    return None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a derived event: a single column, or an expression over columns.

    ``places`` are the indices of the columns in ``JoinBody.columns``.
    """

    name: str
    places: tuple[int, ...]
    expression: Expression | None = None


def read_members(
    value: object, aliases: Sequence[str], expressions: Expressions, *, is_on_close: bool
) -> tuple[tuple[Column, ...], tuple[Member, ...]]:
    """Read the member ``return`` of a join. Return its columns, and the members of derived events in order.

    Totals are accepted only if ``is_on_close`` is true.
    """
    if not isinstance(value, Mapping) or not value:
        raise JoinRefused(
            "'return' of a join is an object of columns, such as {order: o.id, parcels: count(p)}", field="return"
        )
    columns: list[Column] = []
    members = []
    for name, text in value.items():
        expression = _expression(text, aliases, expressions, is_on_close=is_on_close)
        read = [_column(str(name), text, aliases, is_on_close=is_on_close)] if expression is None else expression.reads
        members.append(Member(str(name), tuple(range(len(columns), len(columns) + len(read))), expression))
        columns += read
    return tuple(columns), tuple(members)


def _expression(
    text: object, aliases: Sequence[str], expressions: Expressions, *, is_on_close: bool
) -> Expression | None:
    """Compile the text of a member. Return None if it is a single column, which needs no expression."""
    if not isinstance(text, str):
        return None
    column_match = _COLUMN.fullmatch(text.strip())
    if (
        column_match is not None
        and bool(column_match["function"]) == bool(column_match["end"])
        and column_match["function"] in _OF_COLUMNS
    ):
        return None
    return expressions(text, aliases, takes_totals=is_on_close)


def _column(name: str, text: object, aliases: Sequence[str], *, is_on_close: bool) -> Column:
    column_match = _COLUMN.fullmatch(text.strip()) if isinstance(text, str) else None
    if column_match is None or bool(column_match["function"]) != bool(column_match["end"]):
        raise JoinRefused(
            f"'return' has {name}: {text!r}; write ALIAS.ATTRIBUTE, id(ALIAS), time(ALIAS) or, on_close, a total "
            "such as sum(ALIAS.ATTRIBUTE)",
            field="return",
        )
    if column_match["alias"] not in aliases:
        raise JoinRefused(
            f"'return' has {name}: {text!r}, but no input is called {column_match['alias']}; "
            f"they are {', '.join(aliases)}",
            field="return",
        )
    function = column_match["function"] or "value"
    functions = (*get_args(OfEvent)[1 : -1 if is_on_close else None], *(get_args(Total) if is_on_close else ()))
    if function != "value" and function not in functions:
        problem = f"there is no function {function!r} here; use {', '.join(functions[:-1])} or {functions[-1]}"
        if function in get_args(Total):
            problem = f"{function} is a total, which needs emit: on_close"
        raise JoinRefused(f"return, {name}: {problem}", field="return")
    if (function in _WITHOUT_PATH) == bool(column_match["path"]):
        form = f"{function}({column_match['alias']})" if column_match["path"] else f"{column_match['alias']}.ATTRIBUTE"
        raise JoinRefused(f"'return' has {name}: {text!r}; write {form}", field="return")
    path = tuple(column_match["path"].split(".")) if column_match["path"] else ()
    return Column(name=name, alias=column_match["alias"], function=cast("OfEvent | Total", function), path=path)


def value_at(data: object, path: Sequence[str]) -> Any:
    """Return the value at a path into nested JSON objects, or None if it is absent."""
    for part in path:
        data = inner_value(data, part)
    return data


class Totals:
    """Computes totals over the events of a key. The state of a key's totals is a list with an entry for each column.

    ``adding`` has a list for each alias. An entry of the list is the index of a column, and a function that returns the
    column's new state. Its arguments are the state, the sequence number of an event and the value of the event. The
    caller adds each event once.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._finals = [_FINALS[column.function] for column in columns]
        self.adding = {
            alias: [(place, _ADDING[column.function]) for place, column in enumerate(columns) if column.alias == alias]
            for alias in {column.alias for column in columns}
        }

    def empty(self) -> list[Any]:
        """Return the state of the totals of a key without events."""
        return [0 if column.function == "count" else None for column in self._columns]

    def values(self, totals: Sequence[list[Any]]) -> list[list[Any]]:
        """Return the values of the totals from their states: a list for each column, with one value per key."""
        columns = zip(*totals, strict=True) if totals else ((),) * len(self._columns)
        return [list(map(final, states)) for final, states in zip(self._finals, columns, strict=True)]


def _counted(state: Any, sequence: int, value: Any) -> Any:
    return state + 1


def _first(state: Any, sequence: int, value: Any) -> Any:
    return [sequence, value] if state is None or sequence < state[0] else state


def _last(state: Any, sequence: int, value: Any) -> Any:
    return [sequence, value] if state is None or sequence > state[0] else state


def _distinct(state: Any, sequence: int, value: Any) -> Any:
    distinct_values = state or []
    return (
        distinct_values
        if value is None or any(_is_same(value, other) for other in distinct_values)
        else [*distinct_values, value]
    )


def _is_same(first: Any, second: Any) -> bool:
    """Check whether two JSON values are equal. Unlike in Python, true and 1 differ, even within lists and objects."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_is_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_is_same(value, second[name]) for name, value in first.items())
    return bool(first == second)


def _sum(state: Any, sequence: int, value: Any) -> Any:
    if state is _MIXED or _is_null(value):
        return state
    if type(value) not in _NUMBERS:
        return _MIXED
    return _finite(value if state is None else state + value)


def _extreme(choose: Callable[[Any, Any], Any], state: Any, sequence: int, value: Any) -> Any:
    """Return the new state of ``min`` or ``max`` (``choose``). Numbers and texts do not mix: the total is null then.

    If values are equal, the oldest one is kept.
    """
    if state is _MIXED or _is_null(value):
        return state
    if type(value) not in _NUMBERS and type(value) is not str:
        return _MIXED
    if state is None:
        return value
    return choose(state, value) if isinstance(state, str) == isinstance(value, str) else _MIXED


def _average(state: Any, sequence: int, value: Any) -> Any:
    if state is _MIXED or _is_null(value):
        return state
    if type(value) not in _NUMBERS:
        return _MIXED
    total, count = state or (0, 0)
    added = _finite(total + value)
    return _MIXED if added is _MIXED else [added, count + 1]


def _is_null(value: Any) -> bool:
    """Check whether totals skip a value: null, or a list or object, which count as null in conditions too."""
    return value is None or isinstance(value, list | dict)


def _finite(total: Any) -> Any:
    return total if math.isfinite(total) else _MIXED


_ADDING: Mapping[str, Callable[[Any, int, Any], Any]] = {
    "count": _counted,
    "sum": _sum,
    "min": partial(_extreme, min),
    "max": partial(_extreme, max),
    "avg": _average,
    "first": _first,
    "last": _last,
    "distinct": _distinct,
    **dict.fromkeys(get_args(OfEvent), _first),
}


def _itself(state: Any) -> Any:
    return None if state is _MIXED else state


def _value(state: Any) -> Any:
    return None if state is None else state[1]


def _number(state: Any) -> Any:
    return len(state or ())


def _mean(state: Any) -> Any:
    return None if state is None or state is _MIXED else state[0] / state[1]


_FINALS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("count", "sum", "min", "max"), _itself),
    **dict.fromkeys(("first", "last", *get_args(OfEvent)), _value),
    "distinct": _number,
    "avg": _mean,
}


def packed_totals(totals: Any) -> bytes:
    """Encode states of totals as JSON. Sums may have more than 64 bits."""
    try:
        return orjson.dumps(totals)
    except TypeError:
        return json.dumps(totals).encode()


def unpacked_totals(text: bytes) -> Any:
    """Decode the result of ``packed_totals``."""
    return json.loads(text)
