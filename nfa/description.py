"""Syntax tree back to text: what people read in messages, and a form that parses to the same tree."""

from __future__ import annotations

import re

from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Sequence,
)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset("PATTERN EVENT WHERE OR AND NOT IS NULL IN TRUE FALSE SEQ".split())
_STEP_KEYWORDS = frozenset("ANY NEXT STRICT WITHIN EACH UNTIL GREEDY SELECT LIMIT EMIT RETURN".split())
_OPERATORS: dict[type[Node], str] = {Sequence: "SEQ", Conjunction: "AND", Disjunction: "OR"}


def describe_node(node: Node) -> str:
    """A composite event as pattern text."""
    if isinstance(node, Atom):
        return describe_atom(node)
    return f"{_OPERATORS[type(node)]}({', '.join(describe_node(part) for part in node.parts)})"


def describe_atom(atom: Atom) -> str:
    """A step as pattern text, such as ``GenerateQuote q [totalPrice > 200]``."""
    words = [_dotted(atom.type)]
    if atom.alias != atom.type:
        words.append(_step_name(atom.alias))
    if atom.condition is not None:
        words.append(f"[{describe_expression(atom.condition)}]")
    return " ".join(words)


def describe_expression(expression: Expression) -> str:
    """A condition as pattern text; nested conditions carry brackets."""
    match expression:
        case Literal():
            return _literal(expression)
        case Attribute():
            return ".".join(_name(part) for part in expression.path)
        case Comparison():
            return f"{_bracketed(expression.left)} {expression.operator} {_bracketed(expression.right)}"
        case IsNull():
            return f"{_bracketed(expression.operand)} IS NULL"
        case InList():
            return f"{_bracketed(expression.operand)} IN ({', '.join(_literal(value) for value in expression.values)})"
        case Not():
            return f"NOT {_bracketed(expression.operand)}"
        case Both() | Either():
            word = " AND " if isinstance(expression, Both) else " OR "
            return word.join(_bracketed(operand) for operand in expression.operands)


def _bracketed(expression: Expression) -> str:
    text = describe_expression(expression)
    return text if isinstance(expression, Literal | Attribute) else f"({text})"


def _literal(literal: Literal) -> str:
    match literal.value:
        case None:
            return "NULL"
        case bool():
            return str(literal.value).upper()
        case str():
            return "'" + literal.value.replace("'", "''") + "'"
        case float():
            text = repr(literal.value)
            return text if "." in text or "e" not in text else text.replace("e", ".0e")
        case _:
            return str(literal.value)


def _dotted(event_type: str) -> str:
    parts = event_type.split(".")
    return event_type if all(part == _step_name(part) for part in parts) else f"`{event_type}`"


def _name(name: str) -> str:
    return name if _is_plain(name) else f"`{name}`"


def _step_name(name: str) -> str:
    return f"`{name}`" if name.upper() in _STEP_KEYWORDS else _name(name)


def _is_plain(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and name.upper() not in _KEYWORDS
