"""Finds conditions that are never true for the first event of a step, because ``prev`` is null for this event.

For each expression, the analysis computes the kinds of values that the expression may have at the first event. ``prev``
is null there, and all other values are arbitrary. The analysis may find too many kinds, but never too few. So a
condition is only refused if it can certainly never be true.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import TypeAlias

from nfa.errors import PatternRefused
from nfa.functions.table import FUNCTIONS
from nfa.syntax import (
    OF_EVENT,
    Arithmetic,
    Attribute,
    Both,
    Call,
    Either,
    Expression,
    IsNull,
    Literal,
    Negative,
    Not,
    calls_of,
    operands_of,
)

Kind: TypeAlias = OneOf["true", "false", "null", "other"]
Kinds: TypeAlias = frozenset[Kind]

_ANY: Kinds = frozenset(["true", "false", "null", "other"])
_NULL: Kinds = frozenset(["null"])
_LOGIC: Kinds = frozenset(["true", "false", "null"])
_NUMBER: Kinds = frozenset(["other", "null"])
_SOME: Kinds = frozenset(["other"])


def check_first_element(condition: Expression) -> None:
    """Refuse a step condition with ``prev`` that cannot be true for the first event of the step."""
    call = next((call for call in calls_of(condition) if call.name == "prev"), None)
    if call is not None and "true" not in _kinds(condition):
        raise PatternRefused(
            "never-true",
            "prev is null for the first event of the step, so the condition can never become true; give a value for "
            "it, as in coalesce(prev(v), 0), or allow it with prev(v) IS NULL OR …",
            call.position,
        )


def _kinds(expression: Expression) -> Kinds:
    match expression:
        case Literal():
            return _of_literal(expression)
        case Attribute():
            return _ANY
        case Call():
            return _of_call(expression)
        case Not():
            return _inverted(_kinds(expression.operand))
        case Both():
            return _joined([_kinds(operand) for operand in expression.operands], "false", "true")
        case Either():
            return _joined([_kinds(operand) for operand in expression.operands], "true", "false")
        case IsNull():
            kinds = _kinds(expression.operand)
            return _filtered("true" if "null" in kinds else None, "false" if kinds - _NULL else None)
        case Arithmetic() | Negative():
            return _unless_null(expression, _NUMBER)
        case _:
            return _unless_null(expression, _LOGIC)


def _of_literal(literal: Literal) -> Kinds:
    match literal.value:
        case None:
            return _NULL
        case bool():
            return _filtered("true" if literal.value else "false")
        case _:
            return _SOME


def _of_call(call: Call) -> Kinds:
    if call.name == "prev":
        return _NULL
    if call.name == "count":
        return _SOME
    if call.name in OF_EVENT:
        return _NUMBER
    if call.name != "coalesce":
        is_strict = call.name in FUNCTIONS and FUNCTIONS[call.name].column is not None
        return _NULL if is_strict and any(_kinds(argument) == _NULL for argument in call.arguments) else _ANY
    result_kinds: Kinds = frozenset()
    for argument in call.arguments:
        kinds = _kinds(argument)
        result_kinds |= kinds - _NULL
        if "null" not in kinds:
            return result_kinds
    return result_kinds | _NULL


def _unless_null(expression: Expression, kinds: Kinds) -> Kinds:
    """Return ``kinds``, or only null if an operand that decides this is always null.

    In arithmetic, or with at most two operands, every operand decides. Otherwise only the first operand does.
    """
    operands = operands_of(expression)
    deciding = operands if isinstance(expression, Arithmetic | Negative) or len(operands) == 2 else operands[:1]
    return _NULL if any(_kinds(operand) == _NULL for operand in deciding) else kinds


def _inverted(kinds: Kinds) -> Kinds:
    return _filtered(
        "true" if "false" in kinds else None,
        "false" if "true" in kinds else None,
        "null" if kinds & {"null", "other"} else None,
    )


def _joined(operands: list[Kinds], strong: Kind, weak: Kind) -> Kinds:
    """Return the kinds of AND or OR. An operand with the value ``strong`` decides alone: false for AND, true for OR."""
    return _filtered(
        strong if any(strong in kinds for kinds in operands) else None,
        weak if all(weak in kinds for kinds in operands) else None,
        "null" if any(kinds & {"null", "other"} for kinds in operands) else None,
    )


def _filtered(*kinds: Kind | None) -> Kinds:
    return frozenset(kind for kind in kinds if kind is not None)
