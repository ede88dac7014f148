"""Parsing of queries with ``MATCH_RECOGNIZE``. Every refusal has line, column and a correction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nfa.errors import PatternRefused
from nfa.language.expression_building import Branch, position_of, tokens_of, trees_of
from nfa.language.grammars import Grammar
from nfa.language.words import TERMINALS
from nfa.sql.expression_building import build_expression, check_copies, name_of, words_of
from nfa.sql.patterns import PatternReader, Variables
from nfa.sql.syntax import Clause, Expression, Name, Named, Ordering, Rows, Skip, SkipRule, Sort, SqlQuery
from nfa.syntax import NOWHERE, Position

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
    """Parse one query."""
    return build_sql(_GRAMMAR.tree(text, "start"))


def parse_named(text: str) -> tuple[str, Clause]:
    """Parse a named clause, ``PATTERN name MATCH_RECOGNIZE (…)``."""
    return build_named(_GRAMMAR.tree(text, "named"))


def _advise(text: str, place: int, _: set[str], expected: str) -> tuple[str, int, str]:
    back = int(text[max(0, place - 1) : place + 1] == "==")  # the parser accepted the first character of ==
    match = _WORD.match(text, place - back)
    word = match.group() if match else ""
    return word, back, _HINTS.get(word.upper(), expected)


_GRAMMAR = Grammar(__package__, ("start", "named"), _CALLED, _advise)


_Parts: TypeAlias = Mapping[str, Branch]
_ROWS: Mapping[str, Rows] = {
    "one_row": "one",
    "show_empty": "show_empty",
    "omit_empty": "omit_empty",
    "unmatched": "unmatched",
}
_SKIPS: Mapping[str, SkipRule] = {name: name for name in ("past_last_row", "to_next_row", "to_first", "to_last")}
_MAX_LIMIT = 2**62


def build_sql(tree: Branch) -> SqlQuery:
    """Build the query of a parsed text."""
    check_copies(tree)
    parts = _by_rule(tree)
    table, limit = parts["table"], parts.get("limit")
    return SqlQuery(
        table=".".join(words_of(table)),
        alias=name_of(trees_of(parts["alias"])[0]) if "alias" in parts else None,
        clause=_clause(parts["clause"]),
        outputs=_outputs(parts["selected"]) if "selected" in parts else None,
        where=_only(parts.get("where")),
        ordering=tuple(map(_ordering, trees_of(parts["ordering"]))) if "ordering" in parts else (),
        limit=min(int(tokens_of(limit)[0][:20]), _MAX_LIMIT) if limit is not None else None,
        table_position=position_of(table),
    )


def build_named(tree: Branch) -> tuple[str, Clause]:
    """Return the name and the clause of a parsed pattern."""
    check_copies(tree)
    name, clause = trees_of(tree)
    return name_of(name), _clause(clause)


def _by_rule(tree: Branch) -> _Parts:
    return {str(part.data): part for part in trees_of(tree)}


def _only(tree: Branch | None) -> Expression | None:
    return None if tree is None else build_expression(trees_of(tree)[0])


def _outputs(tree: Branch) -> tuple[Named, ...] | None:
    outputs: list[Named] = []
    for output in trees_of(tree):
        if output.data == "everything_of":
            if len(trees_of(tree)) > 1:
                raise PatternRefused("sql", "write * alone, or name each column", position_of(output))
            return None
        expression, *name = trees_of(output)
        value = build_expression(expression)
        outputs.append(
            Named(name_of(name[0]) if name else _default_name(value, len(outputs)), value, position_of(output))
        )
    _require_distinct(outputs)
    return tuple(outputs)


def _require_distinct(outputs: Sequence[Named]) -> None:
    places: dict[str, int] = {}
    for place, output in enumerate(outputs, start=1):
        if (earlier := places.setdefault(output.name, place)) < place:
            raise PatternRefused(
                "duplicate",
                f"columns {earlier} and {place} of SELECT are both called {output.name}; give one another name with AS",
                output.position,
            )


def _default_name(expression: Expression, place: int) -> str:
    return expression.column if isinstance(expression, Name) else f"_col{place}"


def _ordering(tree: Branch) -> Ordering:
    expression, *flag_trees = trees_of(tree)
    flags = {str(flag.data) for flag in flag_trees}
    return Ordering(build_expression(expression), "descending" in flags, "nulls_first" in flags, position_of(tree))


def _clause(tree: Branch) -> Clause:
    parts = _by_rule(tree)
    variables = Variables()
    pattern = PatternReader(variables).pattern(parts["pattern"])
    subsets = _subsets(parts.get("subsets"), variables)
    rows: Rows = next((_ROWS[name] for name in parts if name in _ROWS), "one")
    if rows == "unmatched" and variables.has_exclusion:
        raise PatternRefused(
            "exclusion",
            "an exclusion {- -} and WITH UNMATCHED ROWS contradict each other",
            position_of(parts["pattern"]),
        )
    if "within" in parts and "order" not in parts:
        raise PatternRefused("within", "WITHIN needs ORDER BY a time or a whole number", position_of(parts["within"]))
    return Clause(
        partition=tuple(map(_sort, trees_of(parts["partition"]))) if "partition" in parts else (),
        order=tuple(map(_sort, trees_of(parts["order"]))) if "order" in parts else (),
        measures=tuple(map(_measure, trees_of(parts["measures"]))) if "measures" in parts else (),
        rows=rows,
        skip=_skip(parts, variables, subsets),
        pattern=pattern,
        within=_only(parts.get("within")),
        variables=tuple(variables.names),
        subsets=tuple(subsets.items()),
        definitions=_definitions(parts.get("definitions"), variables),
        position=position_of(parts["pattern"]),
    )


def _sort(tree: Branch) -> Sort:
    column, *flags = (tree,) if tree.data == "column" else trees_of(tree)
    column_name = build_expression(column)
    assert isinstance(column_name, Name)
    names = {str(flag.data) for flag in flags}
    return Sort(column_name.column, "descending" in names, "nulls_first" in names, column_name.position)


def _measure(tree: Branch) -> Named:
    expression, name = trees_of(tree)
    return Named(name_of(name), build_expression(expression), position_of(tree))


def _subsets(tree: Branch | None, variables: Variables) -> dict[str, frozenset[int]]:
    subsets: dict[str, frozenset[int]] = {}
    for subset in trees_of(tree) if tree is not None else ():
        name, *members = (name_of(part, is_label=True) for part in trees_of(subset))
        if name in subsets or name in variables.names:
            raise PatternRefused("subset", f"{name} has a meaning already; choose another name", position_of(subset))
        labels = (_label(member, variables, position_of(subset)) for member in members)
        subsets[name] = frozenset(labels)
    return subsets


def _label(name: str, variables: Variables, position: Position) -> int:
    if name not in variables.names:
        raise PatternRefused(
            "unknown-variable",
            f"the pattern has no variable {name}; it has {', '.join(variables.names)}",
            position,
        )
    return variables.names.index(name)


def _skip(parts: _Parts, variables: Variables, subsets: Mapping[str, frozenset[int]]) -> Skip:
    rule = next((name for name in parts if name in _SKIPS), None)
    if rule is None:
        return Skip()
    tree = parts[rule]
    position = NOWHERE if tree.meta.empty else position_of(tree)
    names = [name_of(label_tree, is_label=True) for label_tree in trees_of(tree)]
    labels = (subsets.get(name) or frozenset([_label(name, variables, position)]) for name in names)
    return Skip(_SKIPS[rule], frozenset().union(*labels), position)


def _definitions(tree: Branch | None, variables: Variables) -> tuple[tuple[int, Expression], ...]:
    definitions: dict[int, Expression] = {}
    for definition in trees_of(tree) if tree is not None else ():
        name, condition = trees_of(definition)
        label = _label(name_of(name, is_label=True), variables, position_of(definition))
        if label in definitions:
            raise PatternRefused("duplicate", f"{variables.names[label]} is defined twice", position_of(definition))
        definitions[label] = build_expression(condition)
    return tuple(definitions.items())
