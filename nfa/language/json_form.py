"""Patterns as JSON documents in the form of ``pattern.schema.json``; ``json_reading`` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from nfa.syntax import (
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Comparison,
    Conjunction,
    Each,
    Either,
    Expression,
    Gap,
    InList,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Path,
    Pattern,
    Repeat,
    Sequence,
)

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]

_UNARY: Mapping[type[Expression], str] = {Not: "not", Negative: "neg", IsNull: "is_null"}


def pattern_to_json(pattern: Pattern) -> JsonObject:
    """The document of a pattern, without optional fields that have their default."""
    document: JsonObject = {"name": pattern.name, "event": node_to_json(pattern.event)}
    if pattern.rows is not None:
        document["rows"] = {"table": pattern.rows.table, "alias": pattern.rows.alias}
    if pattern.keys:
        document["keys"] = [_path(path) for path in pattern.keys]
    if pattern.where is not None:
        document["where"] = expression_to_json(pattern.where)
    document |= _window(pattern)
    if pattern.select != "all":
        document["select"] = pattern.select
    if pattern.after.rule != "none":
        document["after"] = _present(rule=pattern.after.rule, alias=pattern.after.alias)
    if pattern.limit is not None:
        document["limit"] = pattern.limit
    if pattern.timeouts:
        document["timeouts"] = True
    if pattern.returns:
        document["return"] = [
            {"expr": expression_to_json(column.expression), "as": column.name} for column in pattern.returns
        ]
    if pattern.into is not None:
        document["into"] = _present(stream=pattern.into.stream, key=pattern.into.key, type=pattern.into.event_type)
    return document


def _window(pattern: Pattern) -> JsonObject:
    business = pattern.within_business
    if business is None:
        return _present(within_us=pattern.within_us)
    return {"within_business": _present(calendar=business.calendar, days=business.days, us=business.us)}


def node_to_json(node: Node) -> JsonObject:
    """The document of a part of the event."""
    document: JsonObject
    match node:
        case Atom():
            document = {"op": "atom", "types": list(node.types), "alias": node.alias}
            if node.condition is not None:
                document["if"] = expression_to_json(node.condition)
            return document
        case Repeat():
            return _repeat(node)
        case Sequence():
            document = {"op": "seq", "items": [_item(item) for item in node.items]}
        case _:
            operator = "and" if isinstance(node, Conjunction) else "or"
            document = {"op": operator, "items": [node_to_json(part) for part in node.parts]}
    if node.within_us is not None:
        document["within_us"] = node.within_us
    return document


def expression_to_json(expression: Expression) -> JsonObject:
    """The document of an expression."""
    match expression:
        case Each():
            return {"each": expression_to_json(expression.inner)}
        case Literal():
            return {"lit": expression.value}
        case Attribute():
            return {"attr": _path(expression.path), "of": expression.of}
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


def _repeat(node: Repeat) -> JsonObject:
    document: JsonObject = {"op": "repeat", "of": node_to_json(node.of), "min": node.min, "max": node.max}
    if node.each is not None:
        document["each"] = _gap(node.each)
    if node.until is not None:
        document["until"] = node_to_json(node.until)
    if node.greedy:
        document["greedy"] = True
    return document


def _item(item: Item) -> JsonObject:
    document: JsonObject = {}
    if item.of is not None:
        document["of"] = node_to_json(item.of)
    if item.negated is not None:
        document["not"] = node_to_json(item.negated)
    if item.gap is not None:
        document["gap"] = _gap(item.gap)
    return document


def _gap(gap: Gap) -> JsonObject:
    return _present(mode=gap.mode, within_us=gap.within_us)


def _path(path: Path) -> list[Json]:
    return list(path)


def _present(**fields: Json) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
