"""The meaning of expressions (section 6): values, three-valued logic, aggregates. One event or group at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import add, mul, sub, truediv
from typing import TypeAlias

from nfa.conditions.calls import called
from nfa.conditions.values import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, classified
from nfa.functions.table import FUNCTIONS
from nfa.syntax import (
    OF_EVENT,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Each,
    Either,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Scalar,
    operands_of,
)
from streams import Event

Events: TypeAlias = tuple[Event, ...]

_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {"+": add, "-": sub, "*": mul, "/": truediv}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataScope:
    """The data that an expression can read; ``own`` is the alias of the current event, None in WHERE and RETURN.

    By alias, ``plain`` is the event that ``a.x`` reads, and ``groups`` are all events bound so far, in order, without
    the current one.
    """

    own: str | None = None
    current: Event | None = None
    plain: Mapping[str, Event] = field(default_factory=dict)
    groups: Mapping[str, Events] = field(default_factory=dict)

    def event_of(self, alias: str | None) -> Event | None:
        """The event that a plain reference reads."""
        return self.current if alias is None or alias == self.own else self.plain.get(alias)

    def events_of(self, alias: str | None) -> Events:
        """The events of an aggregate; for the own alias the current event is the last."""
        owner = self.own if alias is None else alias
        bound = self.groups.get(owner, ()) if owner is not None else ()
        return (*bound, self.current) if owner == self.own and self.current is not None else bound


def takes(atom: Atom, event: Event) -> bool:
    """Whether a step whose condition reads no other event can take an event."""
    return is_taken(atom, DataScope(own=atom.alias, current=event))


def is_taken(atom: Atom, scope: DataScope) -> bool:
    """The predicate ``takes`` of section 4.3: the current event has the step's type, and the condition is true."""
    assert scope.current is not None
    if not atom.is_any_type and scope.current.type not in atom.types:
        return False
    return atom.condition is None or value_of(atom.condition, scope) is True


def value_in_match(expression: Expression, bindings: Mapping[str, Sequence[Event]]) -> Scalar:
    """Value of an expression over the events of a finished match, by alias; a plain reference reads the last one."""
    groups = {alias: tuple(events) for alias, events in bindings.items()}
    return value_of(
        expression, DataScope(plain={name: some[-1] for name, some in groups.items() if some}, groups=groups)
    )


def value_of(expression: Expression, scope: DataScope) -> Scalar:
    """Value of an expression: True, False, a number, a text, or None for null."""
    match expression:
        case Literal():
            return normal(expression.value)
        case Attribute():
            return _attribute(expression, scope)
        case Arithmetic():
            return _arithmetic(expression.operator, value_of(expression.left, scope), value_of(expression.right, scope))
        case Negative():
            return _arithmetic("-", 0.0, value_of(expression.operand, scope))
        case Call():
            return _called(expression, scope)
        case _:
            return _truth(expression, scope)


def _truth(expression: Comparison | IsNull | InList | Like | Not | Both | Either, scope: DataScope) -> bool | None:
    match expression:
        case Comparison():
            return compared(expression.operator, value_of(expression.left, scope), value_of(expression.right, scope))
        case IsNull():
            return value_of(expression.operand, scope) is None
        case InList():
            left = value_of(expression.operand, scope)
            return _any_true([compared("=", left, normal(value.value)) for value in expression.values])
        case Like():
            return _like(value_of(expression.operand, scope), expression.pattern)
        case Not():
            truth = value_of(expression.operand, scope)
            return (not truth) if isinstance(truth, bool) else None
        case Both():
            return _all_true([value_of(operand, scope) for operand in expression.operands])
        case Either():
            return _any_true([value_of(operand, scope) for operand in expression.operands])


def normal(item: object) -> Scalar:
    """A plain JSON value as a value of the language."""
    kind, value = classified(item)
    return bool(value) if kind == BOOLEAN else value


def compared(sign: str, left: Scalar, right: Scalar) -> bool | None:
    """A comparison; null unless both are numbers, texts, or booleans (``=`` and ``!=`` only)."""
    kinds = {classified(left)[0], classified(right)[0]}
    if NULL in kinds or not (len(kinds) == 1 or kinds == {INTEGER, FLOAT}):
        return None
    if kinds == {BOOLEAN} and sign not in ("=", "!="):
        return None
    if kinds == {INTEGER, FLOAT}:
        left, right = float(left), float(right)  # type: ignore[arg-type]
    relation = (left > right) - (left < right)  # type: ignore[operator]
    return {
        "=": relation == 0,
        "!=": relation != 0,
        "<": relation < 0,
        "<=": relation <= 0,
        ">": relation > 0,
        ">=": relation >= 0,
    }[sign]


def aliases_in(expression: Expression) -> Iterator[str | None]:
    """The aliases that an expression refers to; None is the current event."""
    if isinstance(expression, Attribute):
        yield expression.of
    for operand in operands_of(expression):
        yield from aliases_in(operand)


def _attribute(attribute: Attribute, scope: DataScope) -> Scalar:
    return normal(_raw(attribute, scope))


def _raw(attribute: Attribute, scope: DataScope) -> object:
    event = scope.event_of(attribute.of)
    found: object = None if event is None else event.data
    for name in attribute.path:
        if isinstance(found, list) and re.fullmatch(r"\[-?[0-9]+\]", name):
            found = found[int(name[1:-1])] if -len(found) <= int(name[1:-1]) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _any_true(truths: list[Scalar]) -> bool | None:
    if any(truth is True for truth in truths):
        return True
    return False if all(truth is False for truth in truths) else None


def _all_true(truths: list[Scalar]) -> bool | None:
    if any(truth is False for truth in truths):
        return False
    return True if all(truth is True for truth in truths) else None


def _like(value: Scalar, pattern: str) -> bool | None:
    if not isinstance(value, str):
        return None
    tokens = re.findall(r"\\.|.", pattern, flags=re.DOTALL)
    reached = _past_wildcards({0}, tokens)  # the numbers of tokens that may be used up so far
    for character in value:
        taken = {
            place + 1
            for place in reached
            if place < len(tokens) and tokens[place] != "%" and tokens[place] in ("_", character)
        }
        taken |= {place + 1 for place in reached if tokens[place : place + 1] == ["\\" + character]}
        taken |= {place for place in reached if tokens[place : place + 1] == ["%"]}
        reached = _past_wildcards(taken, tokens)
    return len(tokens) in reached


def _past_wildcards(reached: set[int], tokens: list[str]) -> set[int]:
    """The places, with the next place for each at a ``%``, which may match nothing."""
    found = set(reached)
    for place, token in enumerate(tokens):
        if token == "%" and place in found:
            found.add(place + 1)
    return found


def _arithmetic(sign: str, left: Scalar, right: Scalar) -> float | None:
    if not (_is_number(left) and _is_number(right)):
        return None
    try:
        result = _ARITHMETIC[sign](float(left), float(right))  # type: ignore[arg-type]
    except ZeroDivisionError:
        return None
    return result if isfinite(result) else None


def _is_number(value: Scalar) -> bool:
    return classified(value)[0] in (INTEGER, FLOAT)


def _called(call: Call, scope: DataScope) -> Scalar:
    if call.name == "coalesce":
        values = (value_of(argument, scope) for argument in call.arguments)
        return next((value for value in values if value is not None), None)
    if isinstance(call.arguments[-1], Each):
        return _over_list(call, scope)
    if call.name in FUNCTIONS:
        (value,) = called(FUNCTIONS[call.name], [value_of(argument, scope) for argument in call.arguments], 1).to_list()
        return value
    (argument,) = call.arguments
    if call.name in OF_EVENT:
        return _of_event(call.name, argument, scope)
    if call.name == "prev":
        bound = scope.groups.get(scope.own, ()) if scope.own is not None else ()
        return value_of(argument, DataScope(own=scope.own, current=bound[-1])) if bound else None
    alias = next(aliases_in(argument), None)
    owner = scope.own if alias is None else alias
    events = scope.events_of(alias)
    if call.name == "count" and isinstance(argument, Attribute) and not argument.path:
        return len(events)
    return _aggregated(call.name, [value_of(argument, DataScope(own=owner, current=event)) for event in events])


def _over_list(call: Call, scope: DataScope) -> Scalar:
    """A function of the elements of a list, one element at a time."""
    owner, each = call.arguments
    assert isinstance(owner, Attribute)
    assert isinstance(each, Each)
    found: object = _raw(owner, scope)
    if not isinstance(found, list):
        return None
    members = [one if isinstance(one, Mapping) else {"value": one} for one in found]
    items = [Event(id="e", type="E", time_us=0, key="k", data=dict(one)) for one in members]
    results = [value_of(each.inner, DataScope(current=item)) for item in items]
    return _any_true(results) if call.name == "any" else _aggregated("sum", results)


def _of_event(name: str, argument: Expression, scope: DataScope) -> Scalar:
    assert isinstance(argument, Attribute)
    event = scope.event_of(argument.of)
    if event is None:
        return None
    values: dict[str, Scalar] = {"time": event.time_us, "type": event.type, "id": event.id, "key": event.key}
    return values[name]


def _aggregated(name: str, values: list[Scalar]) -> Scalar:
    if name in ("first", "last"):
        return values[0 if name == "first" else -1] if values else None
    present: list[Scalar] = [value for value in values if value is not None]
    if name == "count":
        return len(present)
    if name in ("min", "max"):
        return _extreme("<" if name == "min" else ">", present)
    if not present or not all(_is_number(value) for value in present):
        return None
    total = 0.0
    for value in present:
        total += float(value)  # type: ignore[arg-type]
    if not isfinite(total):
        return None
    return total if name == "sum" else total / len(present)


def _extreme(sign: str, present: list[Scalar]) -> Scalar:
    if not present or not (
        all(_is_number(value) for value in present) or all(classified(value)[0] == TEXT for value in present)
    ):
        return None
    best = present[0]
    for value in present[1:]:
        best = value if compared(sign, value, best) else best
    return best
