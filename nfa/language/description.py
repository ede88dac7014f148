"""Writes syntax trees as text, for messages and for parsing back to equal trees.

Only necessary brackets are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nfa.functions.lookups import IN_TABLE, LOOKUP
from nfa.functions.table import word_of
from nfa.language.words import CONDITION_WORDS, STEP_WORDS, is_plain, quoted
from nfa.syntax import (
    After,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    BusinessTime,
    Call,
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
    Node,
    Not,
    Pattern,
    Repeat,
    Sequence,
)
from streams import duration_text, is_element

_STREAM = re.compile(r"[A-Za-z0-9_]+([._-][A-Za-z0-9_]+)*")  # the name of a stream, as in the grammar
_SIGNS: Mapping[tuple[int, int | None], str] = {(0, 1): "?", (1, None): "+", (0, None): "*"}


def describe_pattern(pattern: Pattern) -> str:
    """Write a whole pattern as text, one line per clause. Parsing the text gives an equal pattern."""
    lines = [f"PATTERN {quoted(pattern.name)}", *_rows(pattern.rows), f"EVENT {describe_node(pattern.event)}"]
    conditions = [f"[{', '.join('.'.join(map(quoted, path)) for path in pattern.keys)}]"] if pattern.keys else []
    if pattern.where is not None:
        conditions.append(describe_expression(pattern.where))
    if conditions:
        lines.append(f"WHERE {' AND '.join(conditions)}")
    if pattern.within_us is not None:
        lines.append(f"WITHIN {duration_text(pattern.within_us)}")
    if pattern.within_business is not None:
        lines.append(f"WITHIN {_business(pattern.within_business)}")
    words = [] if pattern.select == "all" else [pattern.select.upper()]
    if words := words + _after(pattern.after):
        lines.append(f"SELECT {' '.join(words)}")
    if pattern.limit is not None:
        lines.append(f"LIMIT {pattern.limit}")
    if pattern.timeouts:
        lines.append("EMIT TIMEOUTS")
    if pattern.returns:
        lines.append(f"RETURN {', '.join(_column(column.expression, column.name) for column in pattern.returns)}")
    if pattern.into is not None:
        lines.append(_into(pattern.into))
    return "\n".join(lines)


def _rows(rows: EachRow | None) -> list[str]:
    return [] if rows is None else [f"FOR EACH ROW OF {_stream(rows.table)} {quoted(rows.alias)}"]


def describe_node(node: Node) -> str:
    """Write a composite event as pattern text."""
    match node:
        case Atom():
            return describe_atom(node)
        case Repeat():
            return _repeat(node)
        case Sequence():
            return f"SEQ({', '.join(map(_item, node.items))}){_span(node.within_us)}"
        case Conjunction() | Disjunction():
            word = "AND" if isinstance(node, Conjunction) else "OR"
            return f"{word}({', '.join(map(describe_node, node.parts))}){_span(node.within_us)}"


def describe_atom(atom: Atom) -> str:
    """Write a step as pattern text, such as ``GenerateQuote q [totalPrice > 200]``."""
    return _step(atom, "")


def _repeat(node: Repeat) -> str:
    quantifier = _quantifier(node.min, node.max)
    if isinstance(node.of, Atom):
        words = [_step(node.of, quantifier)]
    elif isinstance(node.of, Repeat) or node.of.within_us is None:
        words = [f"{describe_node(node.of)}{quantifier}"]
    else:
        words = [describe_node(node.of), quantifier]
    if node.each is not None:
        words.append(f"EACH {_gap(node.each)}")
    if node.until is not None:
        words.append(f"UNTIL {describe_atom(node.until)}")
    if node.greedy:
        words.append("GREEDY")
    return " ".join(words)


def _quantifier(least: int, most: int | None) -> str:
    if sign := _SIGNS.get((least, most)):
        return sign
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _item(item: Item) -> str:
    words = [] if item.gap is None else [_gap(item.gap)]
    if item.negated is not None:
        words += ["NOT", describe_atom(item.negated)]
    if item.of is not None:
        words.append(describe_node(item.of))
    return " ".join(words)


def _gap(gap: Gap) -> str:
    words = [] if gap.within_us is None else ["WITHIN", duration_text(gap.within_us)]
    if gap.mode is not None:
        words.append(gap.mode.upper())
    return " ".join(words)


def _span(within_us: int | None) -> str:
    return "" if within_us is None else f" WITHIN {duration_text(within_us)}"


def _business(business: BusinessTime) -> str:
    number, unit = (str(business.days), "days") if business.us is None else duration_text(business.us).split()
    return f"{number} business {unit} OF {_stream(business.calendar)}"


def _stream(name: str) -> str:
    return name if _STREAM.fullmatch(name) else f"`{name}`"


def _step(atom: Atom, quantifier: str) -> str:
    words = ["_" if atom.is_any_type else "|".join(map(_dotted, atom.types))]
    words[0] += quantifier
    if atom.alias != atom.type:
        words.append(quoted(atom.alias, STEP_WORDS))
    if atom.condition is not None:
        words.append(f"[{describe_expression(atom.condition)}]")
    return " ".join(words)


def _dotted(event_type: str) -> str:
    first, *rest = event_type.split(".")
    is_bare = is_plain(first) and first.upper() not in STEP_WORDS and all(map(is_plain, rest))
    return event_type if is_bare else f"`{event_type}`"


def _after(after: After) -> list[str]:
    if after.rule == "none":
        return []
    words = [after.rule.replace("_", " ").upper()]
    return words if after.alias is None else [*words, quoted(after.alias)]


def _into(into: Into) -> str:
    words = ["INTO", _stream(into.stream)]
    if into.key is not None:
        words += ["KEY", quoted(into.key)]
    if into.event_type is not None:
        words += ["TYPE", into.event_type if all(map(is_plain, into.event_type.split("."))) else f"`{into.event_type}`"]
    return " ".join(words)


def _column(expression: Expression, name: str) -> str:
    text = describe_sum(expression)
    return text if name == describe_expression(expression) else f"{text} AS {quoted(name)}"


_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)
_ADDITIVE = ("+", "-")


def describe_expression(expression: Expression) -> str:
    """Write a condition as pattern text."""
    return _written(expression)[0]


def describe_sum(expression: Expression) -> str:
    """Write an expression as a column of RETURN, with brackets around a condition."""
    return _at_least(_SUM, expression)


def describe_literal(literal: Literal) -> str:
    """Write a constant as pattern text."""
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
    """Return the text of an expression, and the precedence of its outermost operator."""
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
    """Write a negation. Brackets distinguish ``-(5)`` from the constant -5, and two minus signs from a comment."""
    text = _at_least(_PRIMARY, expression.operand)
    is_number = isinstance(expression.operand, Literal) and not text.startswith("(")
    return f"-({text})" if is_number else f"-{text}"


def _table(name: Literal) -> str:
    return ".".join(quoted(part, CONDITION_WORDS) for part in str(name.value).split("."))


def _call(call: Call) -> tuple[str, int]:
    """Return the text of a call, and its precedence.

    The table and the column of a lookup are constants in the tree, but names in text.
    """
    match call:
        case Call(name="key", arguments=(Attribute(path=(), of=str(alias)),)):
            return f"{quoted(alias, CONDITION_WORDS)}.key", _PRIMARY
        case Call(name=IN_TABLE.name, arguments=(Literal() as table, key)):
            return f"{_at_least(_SUM, key)} IN TABLE {_table(table)}", _COMPARISON
        case Call(name=IN_TABLE.name, arguments=(Literal() as table, *keys)):
            return f"{call.name}({', '.join([_table(table), *map(describe_expression, keys)])})", _PRIMARY
        case Call(name=LOOKUP.name, arguments=(Literal() as table, Literal() as column, *keys)):
            arguments = ", ".join([_table(table), *map(describe_expression, keys)])
            return f"{call.name}({arguments}).{quoted(str(column.value))}", _PRIMARY
    return f"{word_of(call.name)}({', '.join(map(describe_expression, call.arguments))})", _PRIMARY


def _reference(attribute: Attribute) -> str:
    """Write an attribute. ``key`` in quotes is an attribute, and without quotes the correlation key."""
    if attribute.path == ("key",):
        return "`key`" if attribute.of is None else f"{quoted(attribute.of, CONDITION_WORDS)}.`key`"
    first, *rest = attribute.path if attribute.of is None else (attribute.of, *attribute.path)
    return quoted(first, CONDITION_WORDS) + "".join(name if is_element(name) else f".{quoted(name)}" for name in rest)


def _at_least(level: int, expression: Expression) -> str:
    text, precedence = _written(expression)
    return text if precedence >= level else f"({text})"
