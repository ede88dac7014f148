"""Converts lark's trees to patterns, and refuses constructs that the syntax tree cannot represent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from nfa.errors import PatternRefused
from nfa.language.expression_building import (
    Branch,
    build_duration,
    build_expression,
    build_name,
    build_path,
    position_of,
    tokens_of,
    trees_of,
)
from nfa.language.limits import MAX_BUSINESS_DAYS, MAX_LIMIT, MAX_REPETITIONS, check_repetitions
from nfa.syntax import (
    ANY_TYPE,
    After,
    AfterRule,
    Atom,
    BusinessTime,
    Column,
    Conjunction,
    Disjunction,
    EachRow,
    Gap,
    Into,
    Item,
    Mode,
    Node,
    Pattern,
    Position,
    Repeat,
    Selection,
    Sequence,
)
from streams import NAMED_UNITS_US

_QUANTIFIERS = frozenset(["optional", "one_or_more", "any_number", "exactly", "between", "at_least"])
_SIGNS: Mapping[str, tuple[int, int | None]] = {"optional": (0, 1), "one_or_more": (1, None), "any_number": (0, None)}
_SELECTIONS: Mapping[str, Selection] = {"all_matches": "all", "next_match": "next", "strict_match": "strict"}
_CLAUSES: Mapping[str, str] = {
    "where": "WHERE",
    "within": "WITHIN",
    "select": "SELECT",
    "limit": "LIMIT",
    "timeouts": "EMIT TIMEOUTS",
    "returns": "RETURN",
    "into": "INTO",
}


@dataclass(frozen=True, slots=True)
class UnresolvedPattern:
    """A pattern as written. Its references are not resolved yet.

    A column without a name has an empty text as name. ``clauses`` has the position of each clause. The key of a clause
    is its first word in lower case, such as ``where``. The key of FOR EACH ROW is ``rows``.
    """

    pattern: Pattern
    clauses: Mapping[str, Position] = field(default_factory=dict)


def build_drafts(tree: Branch, text: str) -> tuple[UnresolvedPattern, ...]:
    """Build the patterns of a parsed text."""
    return tuple(_draft(part, text) for part in trees_of(tree))


def build_step(tree: Branch) -> Atom:
    """Build the step of a parsed text that is a single step. Its references are unresolved."""
    if repetition := _repetition(tree):
        raise PatternRefused(
            "syntax",
            "a step alone has no quantifier, EACH, UNTIL or GREEDY; write its type and a condition in brackets",
            position_of(repetition[0]),
        )
    return _atom(tree)


def _draft(tree: Branch, text: str) -> UnresolvedPattern:
    name, *rows, event = (part for part in trees_of(tree) if part.data not in _CLAUSES)
    clauses = [part for part in trees_of(tree) if part.data in _CLAUSES]
    pattern = Pattern(name=build_name(name), event=_node(event), text=text[tree.meta.start_pos : tree.meta.end_pos])
    places: dict[str, Position] = {}
    for row_clause in rows:
        table, alias = map(build_name, trees_of(row_clause))
        pattern, places["rows"] = replace(pattern, rows=EachRow(table=table, alias=alias)), position_of(row_clause)
    for clause in clauses:
        kind = str(clause.data)
        if kind in places:
            first = places[kind]
            raise PatternRefused(
                "duplicate-clause",
                f"{_CLAUSES[kind]} is given a second time (first in line {first.line}, column {first.column}); "
                "join the two into one",
                position_of(clause),
            )
        places[kind] = position_of(clause)
        pattern = _with_clause(pattern, clause)
    return UnresolvedPattern(pattern, places)


def _with_clause(pattern: Pattern, clause: Branch) -> Pattern:
    match clause.data:
        case "where":
            keys = [build_path(path) for part in trees_of(clause) if part.data == "keys" for path in trees_of(part)]
            conditions = [build_expression(part) for part in trees_of(clause) if part.data != "keys"]
            return replace(pattern, keys=tuple(keys), where=conditions[0] if conditions else None)
        case "within":
            (span,) = trees_of(clause)
            if span.data == "business":
                return replace(pattern, within_business=_business(span))
            return replace(pattern, within_us=build_duration(span))
        case "select":
            return _select(pattern, clause)
        case "limit":
            return replace(pattern, limit=_limit(clause))
        case "timeouts":
            return replace(pattern, timeouts=True)
        case "into":
            return replace(pattern, into=_into(clause))
        case _:
            return replace(pattern, returns=tuple(map(_column, trees_of(clause))))


def _select(pattern: Pattern, clause: Branch) -> Pattern:
    for part in trees_of(clause):
        if part.data in _SELECTIONS:
            pattern = replace(pattern, select=_SELECTIONS[part.data])
        else:
            alias = next(map(build_name, trees_of(part)), None)
            pattern = replace(pattern, after=After(cast(AfterRule, str(part.data)), alias))
    return pattern


def _limit(clause: Branch) -> int:
    (token,) = tokens_of(clause)
    limit = _bounded(token, MAX_LIMIT)
    if not 1 <= limit <= MAX_LIMIT:
        reason = "too-large" if limit else "syntax"
        raise PatternRefused(reason, f"LIMIT needs a number from 1 to {MAX_LIMIT}", position_of(clause))
    return limit


def _into(clause: Branch) -> Into:
    parts = {str(part.data): part for part in trees_of(clause)}
    key, event_type = parts.get("into_key"), parts.get("into_type")
    return Into(
        stream=build_name(parts["into_stream"]),
        key=None if key is None else build_name(trees_of(key)[0]),
        event_type=None if event_type is None else ".".join(build_path(trees_of(event_type)[0])),
    )


def _column(tree: Branch) -> Column:
    expression, *names = trees_of(tree)
    return Column(build_expression(expression), next(map(build_name, names), ""))


def _node(tree: Branch) -> Node:
    if tree.data == "composite":
        return _repeated(_composite(tree), tree, "SEQ(…)")
    atom = _atom(tree)
    return _repeated(atom, tree, atom.type)


def _composite(tree: Branch) -> Sequence | Conjunction | Disjunction:
    operator = tokens_of(tree)[0].upper()
    entries = [part for part in trees_of(tree) if part.data in ("item", "negated")]
    within_us = next((_within(part) for part in trees_of(tree) if part.data == "within"), None)
    if operator == "SEQ":
        return Sequence(tuple(map(_item, entries)), within_us)
    parts = tuple(_branch(entry, operator) for entry in entries)
    return Conjunction(parts, within_us) if operator == "AND" else Disjunction(parts, within_us)


def _item(entry: Branch) -> Item:
    gap = next((_gap(part) for part in trees_of(entry) if part.data == "gap"), None)
    part = trees_of(entry)[-1]
    if entry.data == "item":
        return Item(of=_node(part), gap=gap, position=position_of(entry))
    return Item(negated=_negated(part), gap=gap, position=position_of(entry))


def _negated(tree: Branch) -> Atom:
    if tree.data == "composite":
        raise PatternRefused(
            "not-operand",
            "NOT applies to a single step, not to a group; write one NOT per step",
            position_of(tree),
        )
    if repetition := _repetition(tree):
        raise PatternRefused(
            "not-operand",
            "a step after NOT has no quantifier, EACH, UNTIL or GREEDY; NOT alone means that none occurs",
            position_of(repetition[0]),
        )
    return _atom(tree)


def _branch(entry: Branch, operator: str) -> Node:
    """Build a part of AND or OR. NOT and gap prefixes are refused, because these parts have no gaps between them."""
    if entry.data == "negated":
        raise PatternRefused(
            "not-placement",
            f"NOT must be between the steps of a SEQ, not directly in {operator}; put it into a SEQ, before or after "
            f"the {operator} or around steps of one part",
            position_of(entry),
        )
    first, *rest = trees_of(entry)
    if first.data == "gap":
        raise PatternRefused(
            "gap-placement",
            f"the parts of {operator} have no gap before them; write ANY, NEXT, STRICT or WITHIN before the {operator}",
            position_of(first),
        )
    return _node(rest[0] if rest else first)


def _atom(tree: Branch) -> Atom:
    first, *rest = trees_of(tree)
    types = _types(first)
    alias, condition = "|".join(types), None
    for part in rest:
        if part.data == "name":
            alias = build_name(part)
        elif part.data == "condition":
            condition = build_expression(trees_of(part)[0])
    return Atom(types, alias, condition, position_of(first))


def _types(tree: Branch) -> tuple[str, ...]:
    if tokens_of(tree):
        return (ANY_TYPE,)
    names = tuple(".".join(build_path(path)) for path in trees_of(tree))
    if ANY_TYPE in names:
        raise PatternRefused(
            "syntax",
            "_ means any type; it cannot be in quotes or combined with other types",
            position_of(tree),
        )
    return names


def _repetition(tree: Branch) -> list[Branch]:
    return [part for part in trees_of(tree) if part.data in _QUANTIFIERS or part.data in ("each", "until", "greedy")]


def _repeated(body: Atom | Sequence | Conjunction | Disjunction, tree: Branch, name: str) -> Node:
    parts = {str(part.data): part for part in _repetition(tree)}
    quantifier = next((part for kind, part in parts.items() if kind in _QUANTIFIERS), None)
    if quantifier is None:
        if not parts:
            return body
        kind, part = next(iter(parts.items()))
        raise PatternRefused(
            "needs-quantifier",
            f"{kind.upper()} applies to a repetition; write a quantifier before it, such as {name}+",
            position_of(part),
        )
    least, most = _bounds(quantifier)
    return Repeat(
        of=body,
        min=least,
        max=most,
        each=_gap(trees_of(parts["each"])[0]) if "each" in parts else None,
        until=_atom(parts["until"]) if "until" in parts else None,
        greedy="greedy" in parts,
        position=position_of(quantifier),
    )


def _bounds(tree: Branch) -> tuple[int, int | None]:
    if tree.data in _SIGNS:
        return _SIGNS[tree.data]
    numbers = [_bounded(token, MAX_REPETITIONS) for token in tokens_of(tree)]
    least, most = numbers[0], None if tree.data == "at_least" else numbers[-1]
    check_repetitions(least, most, position_of(tree))
    return least, most


def _bounded(digits: str, most: int) -> int:
    """Return a whole number from its digits, or ``most`` + 1 if the number is larger than ``most``."""
    return min(int(digits), most + 1) if len(digits) < 20 else most + 1


def _gap(tree: Branch) -> Gap:
    mode = next((cast(Mode, str(token).lower()) for token in tokens_of(tree)), None)
    return Gap(mode, next(map(_within, trees_of(tree)), None))


def _within(tree: Branch) -> int:
    (span,) = trees_of(tree)
    if span.data == "business":
        raise PatternRefused(
            "gap-placement",
            "business time belongs in the clause WITHIN, after the event; between steps, compare times, as in "
            "time(b) < add_business_days(time(a), 2, calendar)",
            position_of(span),
        )
    return build_duration(span)


def _business(tree: Branch) -> BusinessTime:
    number, unit = tokens_of(tree)
    (name,) = trees_of(tree)
    size_us = NAMED_UNITS_US.get(unit.lower()) or NAMED_UNITS_US[unit.lower().removesuffix("s")]
    if size_us < NAMED_UNITS_US["d"]:
        return BusinessTime(calendar=build_name(name), us=build_duration(tree))
    days = _bounded(number, MAX_BUSINESS_DAYS) if number.type == "INT" else 0
    if size_us > NAMED_UNITS_US["d"] or not 1 <= days <= MAX_BUSINESS_DAYS:
        raise PatternRefused(
            "duration",
            f"{number} business {unit} is not a whole number of business days from 1 to {MAX_BUSINESS_DAYS}, or of "
            "business hours; write for example 2 business days, or 90 business min",
            position_of(tree),
        )
    return BusinessTime(calendar=build_name(name), days=days)
