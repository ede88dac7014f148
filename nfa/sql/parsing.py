"""Parsing of queries with ``MATCH_RECOGNIZE``. Every refusal names line, column and a correction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NoReturn, cast

from lark import Lark
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from nfa.errors import PatternRefused
from nfa.language.expression_building import Branch
from nfa.language.kept_parser import kept_parser
from nfa.language.limits import check_text, position_at
from nfa.language.words import TERMINALS, listed
from nfa.sql.building import build_named, build_sql
from nfa.sql.syntax import Clause, SqlQuery
from nfa.syntax import Position

_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "start": ["start", "named"],
        "parser": "lalr",
        "lexer": "contextual",
        "propagate_positions": True,
        "maybe_placeholders": False,
    }
)
_CALLED = {
    **TERMINALS,
    "COMPARE": "a comparison",
    "EQUAL": "'='",
    "SIGN": "a quantifier",
    "BACK_QUOTED": "a name",
    "DOLLAR": "'$'",
    "CIRCUMFLEX": "'^'",
    "SEMICOLON": "';'",
    "PERCENT": "'%'",
    "RELUCTANT": "'?'",
    "__ANON_0": "'{-'",
    "__ANON_1": "'-}'",
    "__ANON_2": "'||'",
}
_HINTS: Mapping[str, str] = {
    "GROUP": "GROUP BY is not supported here: aggregate the result with DataFrame tools",
    "HAVING": "HAVING is not supported here: aggregate the result with DataFrame tools",
    "JOIN": "joins are not supported here: join before or after, with DataFrame tools",
    "WITH": "WITH is not supported: pass the table by its name",
    "INITIAL": "INITIAL is not supported: begin the pattern with ^",
    "SEEK": "SEEK is the rule of MATCH_RECOGNIZE; leave the word out",
    "WINDOW": "row patterns in windows are not supported: write MATCH_RECOGNIZE",
    "OVER": "window functions are not supported here",
    "EXISTS": "subqueries are not supported",
    "SELECT": "subqueries are not supported: pass the table by its name",
    "[": "arrays are not supported",
    "==": "equal is one =",
    "&&": "write AND",
}
_WORD = re.compile(r"==|&&|\w+|.", re.DOTALL)


def parse_query(text: str) -> SqlQuery:
    """Read one query."""
    return build_sql(_tree(text, "start"))


def parse_named(text: str) -> tuple[str, Clause]:
    """Read a clause with a name, ``PATTERN name MATCH_RECOGNIZE (…)``."""
    return build_named(_tree(text, "named"))


def _tree(text: str, start: str) -> Branch:
    check_text(text)
    try:
        return _parser().parse(text, start=start)
    except UnexpectedInput as error:
        _refuse_syntax(error, text, start)


@cache
def _parser() -> Lark:
    return kept_parser(files("nfa.sql").joinpath("grammar.lark").read_text(encoding="utf-8"), _OPTIONS)


def _refuse_syntax(error: UnexpectedInput, text: str, start: str) -> NoReturn:
    called = {_CALLED.get(name, name.removeprefix("_")) for name in _acceptable(text, start)}
    advice = f"expected {listed(sorted(called))}"
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        position, found = position_at(text, len(text)), "the text ends"
    else:
        place = error.pos_in_stream or 0
        back = int(text[max(0, place - 1) : place + 1] == "==")  # the first half was accepted
        match = _WORD.match(text, place - back)
        word = match.group() if match else ""
        position, found = Position(error.line, error.column - back), f"unexpected {word!r}"
        advice = _HINTS.get(word.upper(), advice)
    raise PatternRefused("syntax", f"{found}; {advice}", position) from error


def _acceptable(text: str, start: str) -> set[str]:
    """Terminals that would be accepted where parsing stopped."""
    interactive = _parser().parse_interactive(text, start=start)
    with suppress(UnexpectedInput):
        interactive.exhaust_lexer()
    return cast("set[str]", interactive.accepts())  # type: ignore[no-untyped-call]
