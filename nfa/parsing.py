"""Pattern text to syntax tree. Every refusal names line, column and what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta

from nfa.errors import PatternRefused
from nfa.scope import check_scope
from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    ComparisonOperator,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Path,
    Pattern,
    Position,
    Sequence,
)

MAX_TEXT = 20_000
MAX_DEPTH = 50

_MAX_DIGITS = 20

_TOKENS = re.compile(r"--[^\n]*|'[^']*'?|`[^`]*`?|\w+|[^\w\s]")
_COMPOSITES: Mapping[str, type[Sequence | Conjunction | Disjunction]] = {
    "SEQ": Sequence,
    "AND": Conjunction,
    "OR": Disjunction,
}
_WORDS = {
    "OPERATOR": "SEQ(, AND( or OR(",
    "COMPARE": "a comparison (=, !=, <, <=, >, >=)",
    "NUMBER": "a number",
    "INT": "a number",
    "STRING": "a text in single quotes",
    "QUOTED": "a name",
    "NAME": "a name",
    "STEP_NAME": "a name",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "DOT": "'.'",
    "MINUS": "'-'",
    "$END": "the end of the text",
}
_FUTURE = {
    "WITHIN": "time windows",
    "SELECT": "selection strategies",
    "RETURN": "projections",
    "LIMIT": "limits",
    "EMIT": "timeouts",
    "NOT": "negated steps",
    "ANY": "gap modes",
    "NEXT": "gap modes",
    "STRICT": "gap modes",
    "?": "optional steps",
    "+": "repetition and arithmetic",
    "*": "repetition and arithmetic",
    "{": "repeated steps",
    "|": "alternative types",
}


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Read one or more patterns.

    Raises:
        PatternRefused: The text cannot be read or is refused; position and advice are in the message.
    """
    if len(text) > MAX_TEXT:
        raise PatternRefused(
            "too-large", f"the text has {len(text)} characters; at most {MAX_TEXT} are read", Position(1, 1)
        )
    _check_depth(text)
    try:
        tree = _parser().parse(text)
        patterns = cast("tuple[Pattern, ...]", _TreeBuilder(text).transform(tree))
    except UnexpectedInput as error:
        _refuse_syntax(error, text)
    except VisitError as error:
        if isinstance(error.orig_exc, PatternRefused):
            raise error.orig_exc from None
        raise
    for pattern in patterns:
        check_scope(pattern)
    return patterns


def parse_pattern(text: str) -> Pattern:
    """Read exactly one pattern.

    Raises:
        PatternRefused: As ``parse_patterns``, and when the text holds more than one pattern.
    """
    patterns = parse_patterns(text)
    if len(patterns) > 1:
        names = ", ".join(pattern.name for pattern in patterns)
        raise PatternRefused("syntax", f"one pattern is expected here, found {names}", Position(1, 1))
    return patterns[0]


@cache
def _parser() -> Lark:
    grammar = files("nfa").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def _check_depth(text: str) -> None:
    """Refuse text that nests too deep before recursive code sees it; quotes and comments may hold what they like."""
    depth = negations = 0
    for token in _TOKENS.findall(text):
        if token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
        negations = negations + 1 if token.upper() == "NOT" else 0
        if depth > MAX_DEPTH or negations > MAX_DEPTH:
            what = "brackets nest" if depth > MAX_DEPTH else "NOT is repeated"
            raise PatternRefused("too-large", f"{what} deeper than {MAX_DEPTH}", Position(1, 1))


def _refuse_syntax(error: UnexpectedInput, text: str) -> NoReturn:
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        lines = text.split("\n")
        position, found = Position(len(lines), len(lines[-1]) + 1), "the text ends"
    else:
        position = Position(error.line, error.column)
        word = _word_at(text, error.pos_in_stream or 0)
        found = f"unexpected {word!r}"
        if later := _FUTURE.get(word.upper()):
            found += f" ({later} are not part of the language yet)"
    wanted = sorted({_WORDS.get(name, name.removeprefix("_")) for name in _acceptable(text)})
    raise PatternRefused("syntax", f"{found}; expected {_alternatives(wanted)}", position) from error


def _word_at(text: str, place: int) -> str:
    match = re.compile(r"\w+|.", re.DOTALL).match(text, place)
    return match.group() if match else ""


def _acceptable(text: str) -> set[str]:
    """Terminals that could stand where parsing stopped."""
    interactive = _parser().parse_interactive(text)
    with suppress(UnexpectedInput):
        interactive.exhaust_lexer()
    return cast("set[str]", interactive.accepts())  # type: ignore[no-untyped-call]


def _alternatives(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words) or "something else"
    return f"{', '.join(words[:-1])} or {words[-1]}"


class _TreeBuilder(Transformer[Token, Any]):
    """Lark tree to frozen values. Method names are the grammar's rules."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def start(self, patterns: list[Pattern]) -> tuple[Pattern, ...]:
        return tuple(patterns)

    @v_args(meta=True)
    def pattern(self, meta: Meta, parts: list[Any]) -> Pattern:
        name, event, *keys = parts
        text = self._text[meta.start_pos : meta.end_pos]
        return Pattern(name=str(name), event=event, keys=keys[0] if keys else (), text=text)

    def where(self, paths: list[tuple[Path, Position]]) -> tuple[Path, ...]:
        return tuple(path for path, _ in paths)

    def composite(self, parts: list[Any]) -> Node:
        operator, *nodes = parts
        if len(nodes) == 1:
            return cast(Node, nodes[0])
        return _COMPOSITES[operator.upper()](tuple(nodes))

    def atom(self, parts: list[Any]) -> Atom:
        path, position = parts[0]
        alias = next((str(part) for part in parts[1:] if isinstance(part, Token)), ".".join(path))
        condition = next((part for part in parts[1:] if not isinstance(part, Token)), None)
        return Atom(type=".".join(path), alias=alias, condition=condition, position=position)

    def condition(self, parts: list[Expression]) -> Expression:
        return parts[0]

    def either(self, parts: list[Expression]) -> Expression:
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def both(self, parts: list[Expression]) -> Expression:
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def negation(self, parts: list[Expression]) -> Not:
        return Not(parts[0])

    @v_args(inline=True)
    def compare(self, left: Expression, operator: Token, right: Expression) -> Comparison:
        return Comparison(cast(ComparisonOperator, str(operator)), left, right)

    def is_null(self, parts: list[Expression]) -> IsNull:
        return IsNull(parts[0])

    def is_not_null(self, parts: list[Expression]) -> Not:
        return Not(IsNull(parts[0]))

    def in_list(self, parts: list[Any]) -> InList:
        return InList(parts[0], tuple(parts[1:]))

    def not_in_list(self, parts: list[Any]) -> Not:
        return Not(InList(parts[0], tuple(parts[1:])))

    def reference(self, parts: list[tuple[Path, Position]]) -> Attribute:
        path, position = parts[0]
        return Attribute(path, position)

    @v_args(inline=True)
    def number(self, token: Token) -> Literal:
        return Literal(_finite(token))

    @v_args(inline=True)
    def integer(self, token: Token) -> Literal:
        return Literal(_integer(token, 1))

    @v_args(inline=True)
    def negative_number(self, token: Token) -> Literal:
        return Literal(-_finite(token))

    @v_args(inline=True)
    def negative_integer(self, token: Token) -> Literal:
        return Literal(_integer(token, -1))

    @v_args(inline=True)
    def string(self, token: Token) -> Literal:
        return Literal(token[1:-1].replace("''", "'"))

    def true(self, _: list[Any]) -> Literal:
        return Literal(True)

    def false(self, _: list[Any]) -> Literal:
        return Literal(False)

    def null(self, _: list[Any]) -> Literal:
        return Literal(None)

    def path(self, names: list[Token]) -> tuple[Path, Position]:
        return tuple(str(name) for name in names), _position(names[0])

    @v_args(inline=True)
    def name(self, token: Token) -> Token:
        return token if token.type != "QUOTED" else token.update(value=token[1:-1])


def _position(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


def _integer(token: Token, sign: int) -> int | float:
    """An integer of 64 bits, a float where it is larger."""
    if len(token) > _MAX_DIGITS:
        return sign * _finite(token)
    value = sign * int(token)
    return value if -(2**63) <= value < 2**63 else sign * _finite(token)


def _finite(token: Token) -> float:
    value = float(token)
    if value == float("inf"):
        raise PatternRefused("syntax", f"the number {token} is larger than a float64 can hold", _position(token))
    return value
