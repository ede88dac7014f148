"""Patterns as JSON documents in the form of ``pattern.schema.json``. ``json_reading`` reads these documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Any, TypeAlias, cast

from nfa.syntax import (
    After,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    BusinessTime,
    Call,
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Each,
    EachRow,
    Either,
    Expression,
    Gap,
    InList,
    Into,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Not,
    Pattern,
    Repeat,
    Sequence,
)

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]

_UNARY: Mapping[type[Expression], str] = {Not: "not", Negative: "neg", IsNull: "is_null"}


class Form:
    """The JSON form of a syntax class: its ``op``, and the document's member for each field.

    ``names`` has an entry for each field, separated by spaces. The entry is ``field``, or ``field:member`` if the
    member has another name.
    """

    def __init__(self, kind: Any, names: str, op: str = "") -> None:
        self.op = op
        self._kind = kind
        pairs = (name.partition(":") for name in names.split())
        self.members: Mapping[str, str] = {field: member or field for field, _, member in pairs}

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The default of each field that has a default."""
        return {field.name: field.default for field in fields(self._kind) if field.default is not MISSING}

    def written(self, value: object) -> JsonObject:
        """Return the document of a value. Members that equal the default of their field are left out."""
        contents = {member: getattr(value, field) for field, member in self.members.items()}
        defaults = {self.members[field]: default for field, default in self.defaults.items() if field in self.members}
        explicit = {name: part for name, part in contents.items() if name not in defaults or part != defaults[name]}
        return {**({"op": self.op} if self.op else {}), **{name: _written(part) for name, part in explicit.items()}}


_PATTERN = "name event keys where within_us within_business select after limit timeouts returns:return into rows"
FORMS: Mapping[type, Form] = {
    Pattern: Form(Pattern, _PATTERN),
    Atom: Form(Atom, "types alias condition:if", "atom"),
    Repeat: Form(Repeat, "of min max each until greedy", "repeat"),
    Sequence: Form(Sequence, "items within_us", "seq"),
    Conjunction: Form(Conjunction, "parts:items within_us", "and"),
    Disjunction: Form(Disjunction, "parts:items within_us", "or"),
    Item: Form(Item, "of negated:not gap"),
    Gap: Form(Gap, "mode within_us"),
    BusinessTime: Form(BusinessTime, "calendar days us"),
    After: Form(After, "rule alias"),
    Column: Form(Column, "expression:expr name:as"),
    Into: Form(Into, "stream key event_type:type"),
    EachRow: Form(EachRow, "table alias"),
}
"""The JSON form of each part of a pattern, except expressions."""


def pattern_to_json(pattern: Pattern) -> JsonObject:
    """Return the document of a pattern, without optional fields that have their default."""
    return FORMS[Pattern].written(pattern)


def _written(value: Any) -> Json:
    if isinstance(value, tuple):
        return [_written(element) for element in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    form = FORMS.get(type(value))
    return expression_to_json(cast(Expression, value)) if form is None else form.written(value)


def expression_to_json(expression: Expression) -> JsonObject:
    """Return the document of an expression."""
    match expression:
        case Each():
            return {"each": expression_to_json(expression.inner)}
        case Literal():
            return {"lit": expression.value}
        case Attribute():
            return {"attr": list(expression.path), "of": expression.of}
        case Call():
            arguments: list[Json] = [expression_to_json(argument) for argument in expression.arguments]
            return {"op": "call", "name": expression.name, "args": arguments}
        case Comparison() | Arithmetic():
            return _operation(expression.operator, expression.left, expression.right)
        case Both() | Either():
            return _operation("and" if isinstance(expression, Both) else "or", *expression.operands)
        case InList():
            return _operation("in", expression.operand, *expression.values)
        case Like():
            return _operation("like", expression.operand, Literal(expression.pattern))
        case Not() | Negative() | IsNull():
            return _operation(_UNARY[type(expression)], expression.operand)


def _operation(name: str, *operands: Expression) -> JsonObject:
    return {"op": name, "args": [expression_to_json(operand) for operand in operands]}
