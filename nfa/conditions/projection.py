"""Conditions and RETURN on a finished match, in plain Python: once per match, so clear before fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Protocol, TypeGuard, cast

from nfa.conditions.calls import called_once
from nfa.conditions.likeness import like_test
from nfa.conditions.lookups import looked_up_once
from nfa.conditions.predicates import over_lists, read_path
from nfa.conditions.values import BOOLEAN, CALCULATE, COMPARE, NULL, classified
from nfa.functions.lookups import NAMES as LOOKUPS
from nfa.functions.table import FUNCTIONS
from nfa.syntax import (
    AGGREGATES,
    OF_EVENT,
    Arithmetic,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
    ComparisonOperator,
    Each,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Path,
    Scalar,
    attributes_of,
)
from streams.tables import Tables


class BoundEvent(Protocol):
    """The members of a bound event that expressions read; ``streams.Event`` has them."""

    @property
    def id(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def time_us(self) -> int: ...

    @property
    def key(self) -> str: ...

    @property
    def data(self) -> Mapping[str, Any]:
        """Attributes as plain JSON values."""
        ...


Bound = Mapping[str, Sequence[BoundEvent]]  # the events of each alias, in order; an unbound alias is missing or empty


def project(columns: Sequence[Column], bindings: Bound, tables: Tables | None = None) -> dict[str, Scalar]:
    """The columns of RETURN for a match, by name; lookups read ``tables``."""
    return {column.name: value_in_match(column.expression, bindings, tables) for column in columns}


def value_in_match(expression: Expression, bindings: Bound, tables: Tables | None = None) -> Scalar:
    """Value of an expression in which every reference has an alias; null is None.

    A plain reference reads the alias' last event. Aggregates of several aliases, and ``prev``, have no value here.
    """
    match expression:
        case Literal():
            return _normal(expression.value)
        case Attribute():
            events = bindings.get(_alias_of(expression), ())
            return _attribute(events[-1], expression.path) if events else None
        case Comparison():
            left, right = (
                value_in_match(expression.left, bindings, tables),
                value_in_match(expression.right, bindings, tables),
            )
            return _compared(expression.operator, left, right)
        case Arithmetic() | Negative():
            return _calculated(expression, bindings, tables)
        case InList():
            operand = value_in_match(expression.operand, bindings, tables)
            return _any_of([_compared("=", operand, _normal(value.value)) for value in expression.values])
        case Both():
            # By De Morgan: an AND is false iff the OR of the negations is true.
            return _negated(_any_of([_negated(value_in_match(part, bindings, tables)) for part in expression.operands]))
        case Either():
            return _any_of([value_in_match(part, bindings, tables) for part in expression.operands])
        case Call():
            return _called(expression, bindings, tables)
        case IsNull() | Not() | Like():
            return _changed(expression, value_in_match(expression.operand, bindings, tables))


def _changed(expression: IsNull | Not | Like, operand: Scalar) -> bool | None:
    match expression:
        case IsNull():
            return operand is None
        case Not():
            return _negated(operand)
        case Like():
            if not isinstance(operand, str):
                return None
            return like_test(expression.pattern)(operand)


def _called(call: Call, bindings: Bound, tables: Tables | None) -> Scalar:
    if call.name == "coalesce":
        candidates = (value_in_match(argument, bindings, tables) for argument in call.arguments)
        return next((value for value in candidates if value is not None), None)
    if call.name in LOOKUPS:
        newest_us = max(event.time_us for some in bindings.values() for event in some)
        return looked_up_once(call, tables, lambda key: value_in_match(key, bindings, tables), newest_us)
    if isinstance(call.arguments[-1], Each):
        owner = cast(Attribute, call.arguments[0])
        events = bindings.get(_alias_of(owner), ())
        (value,) = over_lists(call, [read_path(dict(events[-1].data), owner.path) if events else None]).to_list()
        return value
    if call.name in FUNCTIONS:
        return called_once(
            FUNCTIONS[call.name], [value_in_match(argument, bindings, tables) for argument in call.arguments]
        )
    (argument,) = call.arguments
    if call.name in OF_EVENT and isinstance(argument, Attribute):
        events = bindings.get(_alias_of(argument), ())
        return _of_event(call.name, events[-1]) if events else None
    if call.name not in AGGREGATES:
        raise ValueError(f"{call.name} has no meaning in a finished match")
    aliases = {_alias_of(one) for one in attributes_of(argument)}
    if len(aliases) != 1:
        raise ValueError(f"{call.name} runs over the events of one alias")
    (alias,) = aliases
    values = [value_in_match(argument, {alias: (event,)}, tables) for event in bindings.get(alias, ())]
    return _aggregated(call.name, values)


def _aggregated(name: str, values: Sequence[Scalar]) -> Scalar:
    if name in ("first", "last"):
        return values[0 if name == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if name == "count":
        return len(known)
    return _extreme(name, known) if name in ("min", "max") else _summed(name, known)


def _extreme(name: str, known: Sequence[Scalar]) -> Scalar:
    best: Scalar = None
    for index, value in enumerate(known):
        if isinstance(value, bool):
            return None
        is_better = index == 0 or _compared("<" if name == "min" else ">", value, best)
        if is_better is None:
            return None
        best = value if is_better else best
    return best


def _summed(name: str, known: Sequence[Scalar]) -> float | None:
    total = 0.0
    for value in known:
        if not _is_number(value):
            return None
        total += float(value)
    if not known:
        return None
    return _finite(total / len(known) if name == "avg" else total)


def _calculated(expression: Arithmetic | Negative, bindings: Bound, tables: Tables | None) -> float | None:
    if isinstance(expression, Negative):
        operand = value_in_match(expression.operand, bindings, tables)
        return -float(operand) if _is_number(operand) else None
    left, right = value_in_match(expression.left, bindings, tables), value_in_match(expression.right, bindings, tables)
    if not (_is_number(left) and _is_number(right)) or (expression.operator == "/" and right == 0):
        return None
    return _finite(CALCULATE[expression.operator](float(left), float(right)))


def _compared(sign: ComparisonOperator, left: Scalar, right: Scalar) -> bool | None:
    if isinstance(left, bool) and isinstance(right, bool):
        return bool(COMPARE[sign](left, right)) if sign in ("=", "!=") else None
    if isinstance(left, str) and isinstance(right, str):
        return bool(COMPARE[sign](left, right))
    if not (_is_number(left) and _is_number(right)):
        return None
    if isinstance(left, int) and isinstance(right, int):
        return bool(COMPARE[sign](left, right))
    return bool(COMPARE[sign](float(left), float(right)))


def _any_of(operands: Sequence[Scalar]) -> bool | None:
    if any(operand is True for operand in operands):
        return True
    return False if all(operand is False for operand in operands) else None


def _negated(operand: Scalar) -> bool | None:
    return (not operand) if isinstance(operand, bool) else None


def _is_number(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def _normal(item: Any) -> Scalar:
    kind, value = classified(item)
    if kind == NULL:
        return None
    return bool(value) if kind == BOOLEAN else value


def _attribute(event: BoundEvent, path: Path) -> Scalar:
    """Value of an attribute; an empty path, the event as such for ``count``, is true."""
    return _normal(read_path(dict(event.data), path)) if path else True


def _of_event(name: str, event: BoundEvent) -> int | str:
    values: dict[str, int | str] = {"time": event.time_us, "type": event.type, "id": event.id, "key": event.key}
    return values[name]


def _alias_of(attribute: Attribute) -> str:
    if attribute.of is None:
        raise ValueError(f"{'.'.join(attribute.path)} has no alias: there is no current event in a finished match")
    return attribute.of
