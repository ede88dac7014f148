"""Converts lark's trees to expressions, whose references ``nfa.language.references`` resolves later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from lark import Token, Tree

from nfa.errors import PatternRefused
from nfa.functions.lookups import IN_TABLE, LOOKUP, OF_CALENDARS
from nfa.language.limits import MAX_DURATION_US
from nfa.syntax import (
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Both,
    Call,
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
    Position,
)
from streams import NAMED_UNITS_US, is_element

Branch: TypeAlias = Tree[Token]

_OF_CALENDARS = frozenset(function.name for function in OF_CALENDARS)
_MAX_DIGITS = 20  # whole numbers with more digits are read as float64
_SIGNS: Mapping[str, ArithmeticOperator] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


def build_expression(tree: Branch) -> Expression:
    """Build the expression of a parse tree.

    References stay unresolved: an attribute has its written path and no step. Numbers beyond float64 are refused. So
    are durations that are not a positive whole number of microseconds.
    """
    if tree.data in _SIGNS:
        left, right = _parts(tree)
        return Arithmetic(_SIGNS[tree.data], left, right)
    return _BUILDERS[tree.data](tree)


def build_duration(tree: Branch) -> int:
    """Return the microseconds of a parsed duration.

    A duration that is not a positive whole number of them is refused.
    """
    number, unit = tokens_of(tree)
    size = NAMED_UNITS_US.get(unit.lower()) or NAMED_UNITS_US[unit.lower().removesuffix("s")]
    text, _, exponent = str(number).lower().partition("e")
    whole, _, fraction = text.partition(".")
    if len(number) <= _MAX_DIGITS and abs(int(exponent or 0)) <= _MAX_DIGITS:
        scale = int(exponent or 0) - len(fraction)
        up, down = int(f"1{'0' * scale}"), int(f"1{'0' * -scale}")
        value, remainder = divmod(int(whole + fraction) * size * up, down)
        if remainder == 0 and 0 < value <= MAX_DURATION_US:
            return value
    raise PatternRefused(
        "duration",
        f"{number} {unit} is not a positive whole number of microseconds (up to 2^62); write for example 5 min",
        position_of(tree),
    )


def build_path(tree: Branch) -> Path:
    """Return the names of a parsed path, such as ``item.prices[0]``."""
    return tuple(build_name(name) if name.data == "name" else _element(name) for name in trees_of(tree))


def build_name(tree: Branch) -> str:
    """Return the text of a parsed name, without its quotes."""
    (token,) = tokens_of(tree)
    return token[1:-1] if token.type == "QUOTED" else str(token)


def _element(tree: Branch) -> str:
    """Return the text of a list element in a path: ``[0]`` or, counted from the end, ``[-1]``."""
    (token,) = tokens_of(tree)
    name = f"[{int(token) * (1 if tree.data == 'element' else -1)}]" if len(token) <= _MAX_DIGITS else ""
    if not is_element(name):
        raise PatternRefused(
            "syntax", f"{shortened(token)} is not a place in a list; write for example [0] or [-1]", position_of(tree)
        )
    return name


def position_of(tree: Branch) -> Position:
    """Return the position at which a tree begins."""
    return Position(tree.meta.line, tree.meta.column)


def trees_of(tree: Branch) -> list[Branch]:
    """Return the children of a tree that are trees themselves."""
    return [child for child in tree.children if isinstance(child, Tree)]


def tokens_of(tree: Branch) -> list[Token]:
    """Return the children of a tree that are tokens."""
    return [child for child in tree.children if isinstance(child, Token)]


def _parts(tree: Branch) -> tuple[Expression, ...]:
    return tuple(build_expression(child) for child in trees_of(tree))


def _only(tree: Branch) -> Expression:
    (part,) = _parts(tree)
    return part


def _compare(tree: Branch) -> Comparison:
    left, right = _parts(tree)
    (sign,) = tokens_of(tree)
    return Comparison(cast(ComparisonOperator, str(sign)), left, right)


def _in_list(tree: Branch) -> InList:
    operand, *values = _parts(tree)
    return InList(operand, tuple(cast("list[Literal]", values)))


def _like(tree: Branch) -> Like:
    return Like(_only(tree), _text(tokens_of(tree)[0]))


def _negative(tree: Branch) -> Expression:
    """Build a number with a minus sign as a constant, and any other negation, such as ``-(5)``, as a negation."""
    (operand,) = trees_of(tree)
    return _number(operand, -1) if operand.data == "number" else Negative(build_expression(operand))


def _number(tree: Branch, sign: int) -> Literal:
    (token,) = tokens_of(tree)
    if token.type == "INT" and len(token) <= _MAX_DIGITS:
        value = sign * int(token)
        if -(2**63) <= value < 2**63:
            return Literal(value)
    number = sign * float(token)
    if abs(number) == float("inf"):
        raise PatternRefused(
            "syntax",
            f"the number {shortened(token)} is larger than a float64 can hold; write a smaller one",
            position_of(tree),
        )
    return Literal(number)


def _reference(tree: Branch) -> Attribute:
    """Build an attribute from its path.

    A last name ``key`` without quotes may be the correlation key, so it is marked.
    """
    (path,) = trees_of(tree)
    (last,) = tokens_of(trees_of(path)[-1])
    return Attribute(build_path(path), position=position_of(tree), ends_in_key=last == "key")


def _call(tree: Branch) -> Call:
    name = tokens_of(tree)[0].lower()
    if name == LOOKUP.name:
        raise PatternRefused(
            "function", "a lookup names the column that it reads; write lookup(table, key).column", position_of(tree)
        )
    if name == IN_TABLE.name:
        return _read_table(name, trees_of(tree), position_of(tree))
    if name in _OF_CALENDARS:
        return _by_calendar(name, trees_of(tree), position_of(tree))
    arguments = _parts(tree)
    if len(arguments) == 2 and name in ("any", "sum", "sum_of"):
        name, arguments = ("any" if name == "any" else "sum_of"), (arguments[0], Each(arguments[1]))
    return Call(name, arguments, position_of(tree))


def _member(tree: Branch) -> Call:
    call, column = trees_of(tree)
    name = tokens_of(call)[0].lower()
    if name != LOOKUP.name:
        raise PatternRefused(
            "function", f"{name} gives a value without members; only a lookup has columns", position_of(tree)
        )
    return _read_table(name, trees_of(call), position_of(tree), Literal(build_name(column)))


def _in_table(tree: Branch) -> Call:
    key, table = trees_of(tree)
    return Call(IN_TABLE.name, (_table_name(table), build_expression(key)), position_of(tree))


def _read_table(name: str, arguments: Sequence[Branch], position: Position, *column: Literal) -> Call:
    table, *keys = arguments
    if table.data not in ("reference", "string") or not keys:
        raise PatternRefused("function", f"{name} needs the name of a table and its key: {name}(table, key)", position)
    table_name = Literal(_text(tokens_of(table)[0])) if table.data == "string" else _table_name(trees_of(table)[0])
    return Call(name, (table_name, *column, *map(build_expression, keys)), position)


def _by_calendar(name: str, arguments: Sequence[Branch], position: Position) -> Call:
    *operands, calendar = arguments
    calendar_name = _table_name(trees_of(calendar)[0]) if calendar.data == "reference" else build_expression(calendar)
    return Call(name, (*map(build_expression, operands), calendar_name), position)


def _table_name(path: Branch) -> Literal:
    return Literal(".".join(build_path(path)))


def _in_range(tree: Branch) -> Call:
    return Call("between", _parts(tree), position_of(tree))


def _case(tree: Branch) -> Expression:
    branches = trees_of(tree)
    whens = [branch for branch in branches if branch.data == "when"]
    result: Expression = Literal(None) if len(whens) == len(branches) else build_expression(branches[-1])
    for when in reversed(whens):
        result = Call("if", (*_parts(when), result), position_of(when))
    return result


def _text(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def shortened(text: str) -> str:
    """Truncate a text to at most 30 characters."""
    return text if len(text) <= 30 else f"{text[:27]}..."


_BUILDERS: Mapping[str, Callable[[Branch], Expression]] = {
    "either": lambda tree: Either(_parts(tree)),
    "both": lambda tree: Both(_parts(tree)),
    "negation": lambda tree: Not(_only(tree)),
    "compare": _compare,
    "is_null": lambda tree: IsNull(_only(tree)),
    "is_not_null": lambda tree: Not(IsNull(_only(tree))),
    "in_list": _in_list,
    "not_in_list": lambda tree: Not(_in_list(tree)),
    "in_range": _in_range,
    "not_in_range": lambda tree: Not(_in_range(tree)),
    "case": _case,
    "like": _like,
    "not_like": lambda tree: Not(_like(tree)),
    "negative": _negative,
    "group": _only,
    "reference": _reference,
    "call": _call,
    "member": _member,
    "in_table": _in_table,
    "not_in_table": lambda tree: Not(_in_table(tree)),
    "number": lambda tree: _number(tree, 1),
    "negative_number": lambda tree: _number(tree, -1),
    "string": lambda tree: Literal(_text(tokens_of(tree)[0])),
    "true": lambda _: Literal(True),
    "false": lambda _: Literal(False),
    "null": lambda _: Literal(None),
    "duration": lambda tree: Literal(build_duration(tree)),
}
