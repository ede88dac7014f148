"""Converts lark's trees to expressions whose names are not resolved yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from lark import Token, Tree

from nfa.errors import PatternRefused
from nfa.language.expression_building import Branch, position_of, shortened, tokens_of, trees_of
from nfa.sql.syntax import Call, Constant, Expression, Name, Operation, Value

_SIGNS: Mapping[str, str] = {
    "either": "or",
    "both": "and",
    "negation": "not",
    "is_null": "is_null",
    "is_distinct": "is_distinct",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "concatenate": "||",
    "in_list": "in",
    "case": "case",
}
_NEGATED: Mapping[str, str] = {
    "is_not_null": "is_null",
    "is_not_distinct": "is_distinct",
    "not_in_list": "in_list",
    "not_like": "like",
    "not_in_range": "in_range",
}
_UNITS: Mapping[str, timedelta] = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("bigint", "integer", "int", "smallint", "tinyint"), "bigint"),
    **dict.fromkeys(("double", "real", "float", "decimal", "numeric"), "double"),
    **dict.fromkeys(("varchar", "char", "string", "text"), "varchar"),
    "boolean": "boolean",
    "timestamp": "timestamp",
    "date": "date",
}
_PARTS = frozenset("year month day hour minute second".split())
_INTERVAL = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_MAX_DIGITS = 20
_MAX_LENGTH = 2**31 - 1
MAX_COPIED = 20_000
"""The largest number of subexpressions that BETWEEN and CASE of one query may copy."""


def build_expression(tree: Branch) -> Expression:
    """Build the expression of a parsed text."""
    name = str(tree.data)
    if name in _SIGNS:
        return Operation(_SIGNS[name], _operands(tree), position_of(tree))
    if name in _NEGATED:
        return Operation("not", (build_expression(Tree(_NEGATED[name], tree.children, tree.meta)),), position_of(tree))
    return _BUILDERS[name](tree)


def check_copies(tree: Branch) -> None:
    """Refuse BETWEEN and CASE if their nesting makes the expression too large.

    BETWEEN copies its operand for each bound. CASE copies its operand for each WHEN. Nesting multiplies the copies.
    """
    parts: dict[int, int] = {}
    copied = 0
    for part in tree.iter_subtrees():  # children come before their parents
        children = trees_of(part)
        copies = _copies_of_operand(part) * parts[id(children[0])] if children else 0
        copied += copies
        if copied > MAX_COPIED:
            raise PatternRefused(
                "too-large",
                "BETWEEN and CASE repeat the operand that they compare; nested as here, they repeat more than "
                f"{MAX_COPIED} parts; nest fewer",
                position_of(part),
            )
        parts[id(part)] = 1 + copies + sum(parts[id(child)] for child in children)


def _copies_of_operand(tree: Branch) -> int:
    if tree.data in ("in_range", "not_in_range"):
        return 1
    return max(0, sum(part.data == "when" for part in trees_of(tree)) - 1) if tree.data == "case_of" else 0


def name_of(tree: Branch, *, is_label: bool = False) -> str:
    """Return an identifier without its quotes. An unquoted label is returned in upper case."""
    (token,) = tokens_of(tree)
    if token.type == "NAME":
        return token.upper() if is_label else str(token)
    return token[1:-1].replace('""', '"')


def words_of(tree: Branch) -> list[str]:
    """Return the identifiers of a name with dots."""
    return [name_of(name) for name in trees_of(tree)]


def text_of(token: Token) -> str:
    """Return the text of a string in quotes."""
    return token[1:-1].replace("''", "'")


def _operands(tree: Branch) -> tuple[Expression, ...]:
    operands: list[Expression] = []
    for child in trees_of(tree):
        if child.data in ("when", "else"):
            operands.extend(_operands(child))
        else:
            operands.append(build_expression(child))
    return tuple(operands)


def _compare(tree: Branch) -> Operation:
    (sign,) = tokens_of(tree)
    return Operation("<>" if sign == "!=" else str(sign), _operands(tree), position_of(tree))


def _in_range(tree: Branch) -> Operation:
    value, low, high = _operands(tree)
    place = position_of(tree)
    return Operation("and", (Operation(">=", (value, low), place), Operation("<=", (value, high), place)), place)


def _like(tree: Branch) -> Operation:
    pattern, *escape = map(text_of, tokens_of(tree))
    if escape and len(escape[0]) > 1:
        raise PatternRefused(
            "literal", f"the escape of LIKE must be one character, not {escape[0]!r}", position_of(tree)
        )
    return Operation("like", (*_operands(tree), *map(Constant, (pattern, *escape))), position_of(tree))


def _case_of(tree: Branch) -> Operation:
    value, *branches = trees_of(tree)
    place, operand = position_of(tree), build_expression(value)
    operands: list[Expression] = []
    for branch in branches:
        values = _operands(branch)
        operands.extend((Operation("=", (operand, values[0]), place), values[1]) if branch.data == "when" else values)
    return Operation("case", tuple(operands), place)


def _negative(tree: Branch) -> Expression:
    (operand,) = _operands(tree)
    if isinstance(operand, Constant) and isinstance(operand.value, int | float) and not isinstance(operand.value, bool):
        return Constant(-operand.value)
    return Operation("negative", (operand,), position_of(tree))


def _number(tree: Branch) -> Constant:
    (token,) = tokens_of(tree)
    if token.type == "INT" and len(token) <= _MAX_DIGITS and int(token) < 2**63:
        return Constant(int(token))
    number = float(token)
    if number == float("inf"):
        raise PatternRefused(
            "literal",
            f"the number {shortened(token)} is larger than a float64 can hold; write a smaller one",
            position_of(tree),
        )
    return Constant(number)


def _time(tree: Branch, reader: Callable[[str], Value], example: str) -> Constant:
    (token,) = tokens_of(tree)
    try:
        return Constant(reader(text_of(token)))
    except ValueError as error:
        raise PatternRefused(
            "literal", f"{token} is not valid; write for example {example}", position_of(tree)
        ) from error


def _interval(tree: Branch) -> Constant:
    text, *unit = tokens_of(tree)
    match = _INTERVAL.fullmatch(text_of(text).strip())
    word = (str(unit[0]) if unit else match[2] if match else "").lower().removesuffix("s")
    if match is None or word not in _UNITS or (unit and match[2]):
        raise PatternRefused(
            "literal",
            f"INTERVAL {text}{f' {unit[0]}' if unit else ''} is not supported; write for example INTERVAL '1' HOUR, "
            f"with {', '.join(_UNITS).upper()}",
            position_of(tree),
        )
    try:
        is_whole = "." not in match[1] and len(match[1]) <= _MAX_DIGITS
        return Constant((int(match[1]) if is_whole else float(match[1])) * _UNITS[word])
    except OverflowError as error:
        raise PatternRefused("literal", f"the interval {shortened(text)} is too long", position_of(tree)) from error


def _call(tree: Branch) -> Call:
    name, *flags = tokens_of(tree)
    return Call(str(name).lower(), _operands(tree), is_distinct=bool(flags), position=position_of(tree))


def _call_of_rows(tree: Branch) -> Call:
    (name,), variables = tokens_of(tree), trees_of(tree)
    rows_of = name_of(variables[0], is_label=True) if variables else None
    return Call(str(name).lower(), (), of_rows=True, rows_of=rows_of, position=position_of(tree))


def _with_semantics(tree: Branch) -> Call:
    (call,) = _operands(tree)
    assert isinstance(call, Call)
    return Call(
        call.name, call.operands, str(tree.data), call.of_rows, call.rows_of, call.is_distinct, position_of(tree)
    )


def _cast(tree: Branch) -> Operation:
    value, kind = trees_of(tree)
    name, *sizes = tokens_of(kind)
    target = _TYPES.get(name.lower())
    if target is None:
        names = ", ".join(sorted(_TYPES)).upper()
        raise PatternRefused("type", f"CAST to {name} is not supported; there are {names}", position_of(tree))
    lengths = sizes[:1] if target == "varchar" else []
    if any(len(length) > _MAX_DIGITS or int(length) > _MAX_LENGTH for length in lengths):
        raise PatternRefused("type", f"the length of VARCHAR is at most {_MAX_LENGTH}", position_of(tree))
    operands = (build_expression(value), *(Constant(int(length)) for length in lengths))
    return Operation(f"cast_{target}", operands, position_of(tree))


def _extract(tree: Branch) -> Operation:
    (part,) = tokens_of(tree)
    if part.lower() not in _PARTS:
        raise PatternRefused("function", f"EXTRACT of {part} is not supported", position_of(tree))
    return Operation(part.lower(), _operands(tree), position_of(tree))


def _column(tree: Branch) -> Name:
    first, *rest = trees_of(tree)
    if not rest:
        return Name(name_of(first), None, position_of(tree))
    return Name(name_of(rest[0]), name_of(first, is_label=True), position_of(tree))


_BUILDERS: Mapping[str, Callable[[Branch], Expression]] = {
    "compare": _compare,
    "in_range": _in_range,
    "like": _like,
    "case_of": _case_of,
    "negative": _negative,
    "number": _number,
    "integer": _number,
    "string": lambda tree: Constant(text_of(tokens_of(tree)[0])),
    "true": lambda _: Constant(True),
    "false": lambda _: Constant(False),
    "null": lambda _: Constant(None),
    "timestamp": lambda tree: _time(tree, datetime.fromisoformat, "TIMESTAMP '2026-01-31 12:30:00'"),
    "date": lambda tree: _time(tree, date.fromisoformat, "DATE '2026-01-31'"),
    "interval": _interval,
    "call": _call,
    "call_of_rows": _call_of_rows,
    "running": _with_semantics,
    "final": _with_semantics,
    "cast": _cast,
    "extract": _extract,
    "column": _column,
}
