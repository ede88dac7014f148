"""The kinds of expressions' values, as far as they follow from the text, and refusals of arguments of a wrong kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from nfa.conditions.lookups import of_each_event
from nfa.conditions.residuals import event_of, without_alias
from nfa.errors import PatternRefused
from nfa.functions.function import Function, Kind
from nfa.functions.table import FUNCTIONS, word_of
from nfa.language.description import describe_expression
from nfa.syntax import (
    Arithmetic,
    Attribute,
    Both,
    Call,
    Comparison,
    Each,
    Either,
    Expression,
    InList,
    Like,
    Literal,
    Negative,
    Not,
    Position,
    calls_of,
    operands_of,
    subexpressions,
)

_WORDS: Mapping[Kind, str] = {
    "text": "a text",
    "number": "a number",
    "boolean": "a condition",
    "time": "a time (microseconds such as time(a), or a text with a date)",
}
_FITTING: Mapping[Kind, frozenset[Kind]] = {
    "time": frozenset(["any", "time", "number", "text"]),
    "any": frozenset(_WORDS) | {"any"},
}
_OF_CALLS: Mapping[str, Kind] = {
    "time": "number",
    "count": "number",
    "sum": "number",
    "avg": "number",
    "type": "text",
    "id": "text",
    "key": "text",
}
_NONE: Mapping[str, Kind] = {}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def kind_of(expression: Expression, of_names: Mapping[str, Kind] = _NONE) -> Kind:
    """Return the kind of an expression's values that are not null, or ``any`` if the kind depends on the events.

    ``of_names`` has the kinds of attributes that callers know, under paths such as ``item.price``.
    """
    match expression:
        case Each():
            return kind_of(expression.inner)
        case Literal():
            return _of_constant(expression)
        case Attribute():
            return of_names.get(".".join(expression.path), "any")
        case Arithmetic() | Negative():
            return "number"
        case Call():
            return _of_call(expression, of_names)
        case _:
            return "boolean"


def check_kinds(expression: Expression) -> None:
    """Refuse calls and operators with an operand that can never have the required kind.

    Operands of operators are checked only if they are calls of functions.
    """
    match expression:
        case Call() if expression.name in FUNCTIONS:
            _check_arguments(expression, FUNCTIONS[expression.name])
            if isinstance(expression.arguments[-1], Each) and not isinstance(expression.arguments[0], Attribute):
                word = word_of(expression.name)
                _refuse(f"{word} takes the path of a list first, as in {word}(items, price)", expression.position)
            if expression.name == "between":
                _check_comparison(expression.arguments)
        case Comparison():
            _check_comparison([expression.left, expression.right])
        case InList():
            _check_comparison([expression.operand, *expression.values])
        case Arithmetic() | Negative() | Both() | Either() | Not() | Like():
            kind: Kind = "text" if isinstance(expression, Like) else kind_of(expression)
            for operand in operands_of(expression):
                if isinstance(operand, Call) and operand.name in FUNCTIONS and kind_of(operand) not in ("any", kind):
                    _refuse(
                        f"{describe_expression(expression)} needs {_WORDS[kind]}, and {describe_expression(operand)} "
                        f"is {_WORDS[kind_of(operand)]}",
                        operand.position,
                    )
        case _:
            pass


def null_comparisons(expression: Expression, of_names: Mapping[str, Kind] = _NONE) -> Iterator[tuple[str, Position]]:
    """Yield a sentence for each comparison that is always null, because its sides have different known kinds.

    If a side is a call of a function, ``check_kinds`` refuses the comparison. Otherwise the comparison is accepted with
    this warning, because stored definitions may contain such comparisons. ``of_names`` is as in ``kind_of``.
    """
    for part in subexpressions(expression):
        match part:
            case Comparison():
                sides: Sequence[Expression] = (part.left, part.right)
            case InList():
                sides = (part.operand, *part.values)
            case Call(name="between"):
                sides = part.arguments
            case _:
                continue
        first, position = sides[0], _position_of(part)
        if isinstance(first, Literal):
            first, sides = sides[-1], sides[::-1]
        kinds = [kind_of(side, of_names) for side in sides]
        other = next((side for side, kind in zip(sides, kinds, strict=True) if kind not in ("any", kinds[0])), None)
        if kinds[0] != "any" and other is not None and position is not None:
            yield _null_sentence(first, other, kinds[0], kind_of(other, of_names)), position


def _null_sentence(first: Expression, other: Expression, kind: Kind, other_kind: Kind) -> str:
    text, advice = describe_expression(other), "compare values of one kind"
    if kind == "text" and isinstance(other, Literal):
        advice = f"write '{str(other.value).lower()}'"
    elif kind == "number" and isinstance(other, Literal) and _NUMBER.fullmatch(str(other.value)):
        advice = f"write {other.value} without quotes"
    return (
        f"{describe_expression(first)} is {_WORDS[kind]}, and {text} {_WORDS[other_kind]}: comparing them is always "
        f"null; {advice}"
    )


def check_events(condition: Expression, alias: str | None) -> None:
    """Refuse a condition between steps if a call in it has arguments of several events.

    Functions with ``spans_events`` may have such arguments.
    """
    calls = calls_of(condition if alias is None else without_alias(condition, alias))
    for call in (inner for outer in calls for inner in calls_of(of_each_event(outer))):
        if call.name in FUNCTIONS and not FUNCTIONS[call.name].spans_events and event_of(call) is None:
            _refuse(
                f"the arguments of {describe_expression(call)} are of several events; between steps, compare what "
                "functions of each event give, or return the value in RETURN",
                call.position,
            )


def _check_arguments(call: Call, function: Function) -> None:
    parameters = function.parameters_of(len(call.arguments))
    if parameters is None:
        _refuse(
            f"{word_of(call.name)} has {len(call.arguments)} arguments here; write {function.signature}", call.position
        )
    for parameter, argument in zip(parameters, call.arguments, strict=True):
        position, kind = _position_of(argument) or call.position, kind_of(argument)
        if parameter.fault is not None and not isinstance(argument, Literal):
            _refuse(
                f"{parameter.name} of {function.signature} is a constant, and {describe_expression(argument)} is not; "
                "write its value",
                position,
            )
        if kind not in _FITTING.get(parameter.kind, ("any", parameter.kind)):
            _refuse(
                f"{parameter.name} of {function.signature} is {_WORDS[parameter.kind]}, and "
                f"{describe_expression(argument)} is {_WORDS[kind]}; write {_WORDS[parameter.kind]}, or an attribute "
                "that has one",
                position,
            )
        if parameter.fault is not None and isinstance(argument, Literal):
            fault = f"write {_WORDS[parameter.kind]}" if argument.value is None else parameter.fault(argument.value)
            if fault is not None:
                _refuse(f"{parameter.name} of {function.word} is {describe_expression(argument)}: {fault}", position)


def _check_comparison(sides: Sequence[Expression]) -> None:
    first = next((side for side in sides if isinstance(side, Call) and side.name in (*FUNCTIONS, "time")), None)
    if first is None or kind_of(first) == "any":
        return
    for side in sides:
        if kind_of(side) not in ("any", kind_of(first)):
            is_moment = first.name == "time" and isinstance(side, Literal) and kind_of(side) == "text"
            advice = f"write timestamp({describe_expression(side)})" if is_moment else "compare values of one kind"
            _refuse(
                f"{describe_expression(first)} is {_WORDS[kind_of(first)]}, and {describe_expression(side)} "
                f"{_WORDS[kind_of(side)]}: comparing them is always null; {advice}",
                first.position,
            )


def _of_call(call: Call, of_names: Mapping[str, Kind]) -> Kind:
    if call.name in ("if", "coalesce"):
        values = [argument for argument in call.arguments[call.name == "if" :] if argument != Literal(None)]
        kinds = {kind_of(value, of_names) for value in values}
        return kinds.pop() if len(kinds) == 1 else "any"
    return FUNCTIONS[call.name].result if call.name in FUNCTIONS else _OF_CALLS.get(call.name, "any")


def _of_constant(literal: Literal) -> Kind:
    match literal.value:
        case None:
            return "any"
        case bool():
            return "boolean"
        case str():
            return "text"
        case _:
            return "number"


def _position_of(expression: Expression) -> Position | None:
    return next((part.position for part in subexpressions(expression) if isinstance(part, Attribute | Call)), None)


def _refuse(message: str, position: Position) -> NoReturn:
    raise PatternRefused("function", message, position)
