"""Parsing of queries with ``MATCH_RECOGNIZE``. Every refusal names line, column and a correction."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nfa.language.grammars import Grammar
from nfa.language.words import TERMINALS
from nfa.sql.building import build_named, build_sql
from nfa.sql.syntax import Clause, SqlQuery

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
    return build_sql(_GRAMMAR.tree(text, "start"))


def parse_named(text: str) -> tuple[str, Clause]:
    """Read a clause with a name, ``PATTERN name MATCH_RECOGNIZE (…)``."""
    return build_named(_GRAMMAR.tree(text, "named"))


def _advise(text: str, place: int, _: set[str], expected: str) -> tuple[str, int, str]:
    """The word that cannot be read, its distance to the place, and what would be right."""
    back = int(text[max(0, place - 1) : place + 1] == "==")  # the first half was accepted
    match = _WORD.match(text, place - back)
    word = match.group() if match else ""
    return word, back, _HINTS.get(word.upper(), expected)


_GRAMMAR = Grammar(__package__, ("start", "named"), _CALLED, _advise)
