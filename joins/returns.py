"""What the events of a join say: columns over the events of a combination, or totals over those of a key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast, get_args

from joins.errors import JoinRefused

OfEvent: TypeAlias = Literal["value", "id", "type", "time"]
Total: TypeAlias = Literal["count", "sum", "min", "max", "avg", "first", "last", "distinct"]

_COLUMN = re.compile(
    r"(?:(?P<function>[a-z]+)\s*\(\s*)?(?P<alias>[A-Za-z_]\w*)(?:\.(?P<path>[^\s()]+))?(?P<end>\s*\))?"
)
_WITHOUT_PATH = ("count", "id", "type", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One member of a derived event.

    Attributes:
        name: Of the member.
        alias: Of the input that it is about.
        function: What is said of one event, or a total over many.
        path: Of the attribute; empty where the function needs none.
    """

    name: str
    alias: str
    function: OfEvent | Total
    path: tuple[str, ...] = ()

    @property
    def is_total(self) -> bool:
        """Whether it is over many events."""
        return self.function in get_args(Total)


def read_columns(value: object, aliases: Sequence[str], *, is_on_close: bool) -> tuple[Column, ...]:
    """The columns of ``return``, in their order.

    Raises:
        JoinRefused: One cannot be read, names no input, or is a total in a join that emits each combination.
    """
    if not isinstance(value, Mapping) or not value:
        raise JoinRefused(
            "'return' of a join is an object of columns, such as {order: o.id, parcels: count(p)}", field="return"
        )
    return tuple(_column(str(name), text, aliases, is_on_close=is_on_close) for name, text in value.items())


def _column(name: str, text: object, aliases: Sequence[str], *, is_on_close: bool) -> Column:
    found = _COLUMN.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or bool(found["function"]) != bool(found["end"]):
        raise JoinRefused(
            f"'return' has {name}: {text!r}; write ALIAS.ATTRIBUTE, id(ALIAS), time(ALIAS) or, on_close, a total "
            "such as sum(ALIAS.ATTRIBUTE)",
            field="return",
        )
    if found["alias"] not in aliases:
        raise JoinRefused(
            f"'return' has {name}: {text!r}, but no input is called {found['alias']}; they are {', '.join(aliases)}",
            field="return",
        )
    function = found["function"] or "value"
    known = (*get_args(OfEvent)[1:], *(get_args(Total) if is_on_close else ()))
    if function != "value" and function not in known:
        what = "totals need emit: on_close" if function in get_args(Total) else f"known are {', '.join(known)}"
        raise JoinRefused(f"'return' has {name}: {text!r}; {what}", field="return")
    if (function in _WITHOUT_PATH) == bool(found["path"]):
        form = f"{function}({found['alias']})" if found["path"] else f"{found['alias']}.ATTRIBUTE"
        raise JoinRefused(f"'return' has {name}: {text!r}; write {form}", field="return")
    path = tuple(found["path"].split(".")) if found["path"] else ()
    return Column(name=name, alias=found["alias"], function=cast("OfEvent | Total", function), path=path)


def value_at(data: object, path: Sequence[str]) -> Any:
    """The value at a path of a JSON object; None where there is none."""
    for part in path:
        if not isinstance(data, Mapping):
            return None
        data = data.get(part)
    return data


@dataclass(slots=True)
class Totals:
    """The totals of one key, of the events that took part in something, each counted once.

    Attributes:
        columns: What is wanted.
        states: Of each column what is known so far.
    """

    columns: Sequence[Column]
    states: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = self.states or [0 if column.function == "count" else None for column in self.columns]

    def add(self, alias: str, sequence: int, values: Sequence[Any]) -> None:
        """Count an event in.

        Args:
            alias: Of its input.
            sequence: Its place among all events.
            values: Of each column its value; without meaning for columns of other inputs.
        """
        for place, (column, value) in enumerate(zip(self.columns, values, strict=True)):
            if column.alias == alias:
                self.states[place] = _added(column.function, self.states[place], sequence, value)

    def values(self) -> dict[str, Any]:
        """The members of the derived event."""
        return {
            column.name: _final(column.function, state) for column, state in zip(self.columns, self.states, strict=True)
        }


def _added(function: str, state: Any, sequence: int, value: Any) -> Any:
    if function == "count":
        return state + 1
    if function in ("first", "value", "id", "type", "time"):
        return [sequence, value] if state is None or sequence < state[0] else state
    if function == "last":
        return [sequence, value] if state is None or sequence > state[0] else state
    if function == "distinct":
        known = state or []
        return known if value is None or value in known else [*known, value]
    if not isinstance(value, int | float) or isinstance(value, bool):
        return state
    if function == "avg":
        total, count = state or (0, 0)
        return [total + value, count + 1]
    if state is None:
        return value
    return state + value if function == "sum" else min(state, value) if function == "min" else max(state, value)


def _final(function: str, state: Any) -> Any:
    if function in ("count", "sum", "min", "max"):
        return state
    if function == "distinct":
        return len(state or ())
    if state is None:
        return None
    return state[0] / state[1] if function == "avg" else state[1]
