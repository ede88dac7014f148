"""Conditions as text, with only the brackets that parsing needs."""

from __future__ import annotations

from nfa.functions.lookups import IN_TABLE, LOOKUP
from nfa.functions.table import word_of
from nfa.language.words import CONDITION_WORDS, quoted
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
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
)
from streams import is_element

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)
_ADDITIVE = ("+", "-")


def describe_expression(expression: Expression) -> str:
    """A condition as pattern text."""
    return _written(expression)[0]


def describe_sum(expression: Expression) -> str:
    """An expression as a column of RETURN, with brackets around a condition."""
    return _at_least(_SUM, expression)


def describe_literal(literal: Literal) -> str:
    """A constant as pattern text."""
    match literal.value:
        case None:
            return "NULL"
        case bool():
            return str(literal.value).upper()
        case str():
            return "'" + literal.value.replace("'", "''") + "'"
        case _:
            return repr(literal.value)


def _written(expression: Expression) -> tuple[str, int]:
    """The text of an expression, and the precedence of its outermost operator."""
    match expression:
        case Literal():
            return _literal(expression)
        case Attribute():
            return _reference(expression), _PRIMARY
        case Call() if expression.name != "between":
            return _call(expression)
        case Negative():
            return _negative(expression), _UNARY
        case Arithmetic():
            level = _SUM if expression.operator in _ADDITIVE else _PRODUCT
            left, right = _at_least(level, expression.left), _at_least(level + 1, expression.right)
            return f"{left} {expression.operator} {right}", level
        case Not():
            return _inverse(expression)
        case Both():
            return " AND ".join(_at_least(_NOT, operand) for operand in expression.operands), _AND
        case Either():
            return " OR ".join(_at_least(_AND, operand) for operand in expression.operands), _OR
        case _:
            return _tested(expression, ""), _COMPARISON


def _literal(expression: Literal) -> tuple[str, int]:
    if isinstance(expression, Each):
        return _written(expression.inner)
    text = describe_literal(expression)
    return text, _UNARY if text.startswith("-") else _PRIMARY


def _tested(expression: Comparison | IsNull | InList | Like | Call, negation: str) -> str:
    match expression:
        case Comparison():
            left, right = _at_least(_SUM, expression.left), _at_least(_SUM, expression.right)
            return f"{left} {expression.operator} {right}"
        case IsNull():
            return f"{_at_least(_SUM, expression.operand)} IS {negation}NULL"
        case InList():
            values = ", ".join(map(describe_literal, expression.values))
            return f"{_at_least(_SUM, expression.operand)} {negation}IN ({values})"
        case Call():
            value, low, high = (_at_least(_SUM, argument) for argument in expression.arguments)
            return f"{value} {negation}BETWEEN {low} AND {high}"
        case Like():
            pattern = describe_literal(Literal(expression.pattern))
            return f"{_at_least(_SUM, expression.operand)} {negation}LIKE {pattern}"


def _inverse(expression: Not) -> tuple[str, int]:
    operand = expression.operand
    if isinstance(operand, IsNull | InList | Like) or (isinstance(operand, Call) and operand.name == "between"):
        return _tested(operand, "NOT "), _COMPARISON
    return f"NOT {_at_least(_NOT, operand)}", _NOT


def _negative(expression: Negative) -> str:
    """Negation as text; brackets distinguish ``-(5)`` from the constant -5, and two signs from a comment."""
    text = _at_least(_PRIMARY, expression.operand)
    is_number = isinstance(expression.operand, Literal) and not text.startswith("(")
    return f"-({text})" if is_number else f"-{text}"


def _table(name: Literal) -> str:
    return ".".join(quoted(part, CONDITION_WORDS) for part in str(name.value).split("."))


def _call(call: Call) -> tuple[str, int]:
    """A call as text; the first argument of a lookup is the name of a table, the second that of a column."""
    match call:
        case Call(name="key", arguments=(Attribute(path=(), of=str(alias)),)):
            return f"{quoted(alias, CONDITION_WORDS)}.key", _PRIMARY
        case Call(name=IN_TABLE.name, arguments=(Literal() as table, key)):
            return f"{_at_least(_SUM, key)} IN TABLE {_table(table)}", _COMPARISON
        case Call(name=IN_TABLE.name, arguments=(Literal() as table, *keys)):
            return f"{call.name}({', '.join([_table(table), *map(describe_expression, keys)])})", _PRIMARY
        case Call(name=LOOKUP.name, arguments=(Literal() as table, Literal() as column, *keys)):
            listed = ", ".join([_table(table), *map(describe_expression, keys)])
            return f"{call.name}({listed}).{quoted(str(column.value))}", _PRIMARY
    return f"{word_of(call.name)}({', '.join(map(describe_expression, call.arguments))})", _PRIMARY


def _reference(attribute: Attribute) -> str:
    """A reference as text: in quotes, ``key`` is an attribute; without, it is the correlation key."""
    if attribute.path == ("key",):
        return "`key`" if attribute.of is None else f"{quoted(attribute.of, CONDITION_WORDS)}.`key`"
    first, *rest = attribute.path if attribute.of is None else (attribute.of, *attribute.path)
    return quoted(first, CONDITION_WORDS) + "".join(one if is_element(one) else f".{quoted(one)}" for one in rest)


def _at_least(level: int, expression: Expression) -> str:
    text, own = _written(expression)
    return text if own >= level else f"({text})"
