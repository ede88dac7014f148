"""RETURN of finished matches: expressions whose references read the events that each match binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np

from nfa.conditions.lookups import lookups_of
from nfa.conditions.predicates import Leaf, evaluate_with_tables, over_lists, read_path
from nfa.conditions.residuals import rewritten
from nfa.conditions.values import BOOLEAN, COMPARE, NULL, Values, classified
from nfa.syntax import AGGREGATES, OF_EVENT, Attribute, Call, Column, Each, Expression, Scalar, attributes_of
from streams import Event
from streams.tables import Tables


class BoundEvent(NamedTuple):
    """A bound event in the form that expressions read. Its values were checked when the event was ingested."""

    id: str
    type: str
    time_us: int
    key: str
    data: Mapping[str, Any]


# The events of each alias, in order; an unbound alias is missing or empty.
Bound = Mapping[str, Sequence[BoundEvent | Event]]


def project(
    columns: Sequence[Column], matches: Sequence[Bound], tables: Tables | None = None
) -> list[dict[str, Scalar]]:
    """Return the columns of RETURN for the given matches, by name. Lookups read ``tables``."""
    names = [column.name for column in columns]
    values = (values_in_matches(column.expression, matches, tables) for column in columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def values_in_matches(expression: Expression, matches: Sequence[Bound], tables: Tables | None = None) -> list[Scalar]:
    """Return the value of an expression for each match, or None where it is null.

    Every reference must have an alias. A plain reference reads the alias' last event. Aggregates over several aliases,
    and ``prev``, are not supported.
    """
    if (scalars := _read(expression, matches, tables)) is not None:
        return scalars
    columns: dict[Leaf, Values] = {}

    def change(part: Expression) -> Expression | None:
        if isinstance(part, Call) and isinstance(part.arguments[-1], Each):
            owner = cast(Attribute, part.arguments[0])
            column = over_lists(part, [_raw(event, owner) for event in _newest(owner, matches)])
        elif (values := _read(part, matches, tables)) is not None:
            column = Values.of(values)
        else:
            return None
        path = (str(len(columns)),)
        columns[path] = column
        return Attribute(path)

    flat, times_us = rewritten(expression, change), None
    if any(lookups_of(flat)):
        newest = (max(event.time_us for events in bound.values() for event in events) for bound in matches)
        times_us = np.fromiter(newest, np.int64, len(matches))
    return evaluate_with_tables(flat, columns, len(matches), tables, times_us).to_list()


def _read(part: Expression, matches: Sequence[Bound], tables: Tables | None) -> list[Scalar] | None:
    match part:
        case Attribute():
            return [_normal(_raw(event, part)) for event in _newest(part, matches)]
        case Call(name="prev"):
            raise ValueError("prev has no meaning in a finished match")
        case Call(arguments=(Attribute() as event_itself,)) if part.name in OF_EVENT:
            return [None if event is None else _of_event(part.name, event) for event in _newest(event_itself, matches)]
        case Call(arguments=(argument,)) if part.name in AGGREGATES:
            return _aggregates(part.name, argument, matches, tables)
        case _:
            return None


def _newest(attribute: Attribute, matches: Sequence[Bound]) -> list[BoundEvent | Event | None]:
    alias = _alias_of(attribute)
    return [events[-1] if (events := bound.get(alias)) else None for bound in matches]


def _aggregates(name: str, argument: Expression, matches: Sequence[Bound], tables: Tables | None) -> list[Scalar]:
    aliases = {_alias_of(attribute) for attribute in attributes_of(argument)}
    if len(aliases) != 1:
        raise ValueError(f"{name} runs over the events of one alias")
    (alias,) = aliases
    groups = [bound.get(alias, ()) for bound in matches]
    values = iter(values_in_matches(argument, [{alias: (event,)} for events in groups for event in events], tables))
    return [_aggregated(name, [next(values) for _ in events]) for events in groups]


def _aggregated(name: str, values: Sequence[Scalar]) -> Scalar:
    if name in ("first", "last"):
        return values[0 if name == "first" else -1] if values else None
    non_nulls = [value for value in values if value is not None]
    if name == "count":
        return len(non_nulls)
    return _extreme(name, non_nulls) if name in ("min", "max") else _summed(name, non_nulls)


def _extreme(name: str, values: Sequence[Any]) -> Scalar:
    are_texts = all(isinstance(value, str) for value in values)
    if not values or not (are_texts or all(map(_is_number, values))):
        return None
    is_better, best = COMPARE["<" if name == "min" else ">"], values[0]
    for value in values[1:]:
        is_exact = are_texts or (isinstance(value, int) and isinstance(best, int))
        best = value if is_better(*((value, best) if is_exact else (float(value), float(best)))) else best
    return cast(Scalar, best)


def _summed(name: str, values: Sequence[Scalar]) -> float | None:
    total = 0.0
    for value in values:
        if not _is_number(value):
            return None
        total += float(value)
    total = total / len(values) if values and name == "avg" else total
    return total if values and isfinite(total) else None


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _normal(item: Any) -> Scalar:
    kind, value = classified(item)
    if kind == NULL:
        return None
    return bool(value) if kind == BOOLEAN else value


def _raw(event: BoundEvent | Event | None, attribute: Attribute) -> Any:
    """Return the value of an attribute, or None without an event. An empty path, as in ``count(b)``, gives true."""
    if event is None:
        return None
    return read_path(dict(event.data), attribute.path) if attribute.path else True


def _of_event(name: str, event: BoundEvent | Event) -> int | str:
    values: dict[str, int | str] = {"time": event.time_us, "type": event.type, "id": event.id, "key": event.key}
    return values[name]


def _alias_of(attribute: Attribute) -> str:
    if attribute.of is None:
        raise ValueError(f"{'.'.join(attribute.path)} has no alias: there is no current event in a finished match")
    return attribute.of
