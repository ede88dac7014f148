"""The executable meaning of MATCH_RECOGNIZE: rows as dictionaries, one attempt after the other, every order tried.

It shares the parser and the resolution of names with the product, and no evaluation, search or output.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cmp_to_key
from typing import Any

from nfa.sql.parsing import parse_query
from nfa.sql.resolving import resolve_clause
from nfa.sql.syntax import (
    Aggregate,
    Alternation,
    Anchor,
    At,
    Clause,
    Column,
    Concatenation,
    Constant,
    Exclusion,
    Expression,
    Labelled,
    LabelOfRow,
    MatchNumber,
    Node,
    Operation,
    Place,
    Repetition,
)

Row = dict[str, Any]
Step = tuple[int, bool]  # label, whether the row is excluded from the output


class SkipFails(Exception):
    """AFTER MATCH SKIP has no row to skip to."""


@dataclass(frozen=True)
class Match:
    """A match, perhaps unfinished: the rows from ``start`` on have the labels of ``steps``."""

    clause: Clause
    rows: list[Row]
    start: int
    steps: tuple[Step, ...]
    number: int

    def label_at(self, place: int | None) -> str | None:
        inside = place is not None and self.start <= place < self.start + len(self.steps)
        return self.clause.variables[self.steps[place - self.start][0]] if inside and place is not None else None

    def places(self, labels: frozenset[int] | None, end: int) -> list[int]:
        """The rows before ``end`` with a label of some labels; None: all of them."""
        return [
            self.start + place
            for place, (label, _) in enumerate(self.steps)
            if self.start + place < end and (labels is None or label in labels)
        ]

    def target(self, place: Place, end: int) -> int | None:
        end = self.start + len(self.steps) if place.is_final else end
        found = self.places(place.labels, end)
        if not place.is_first:
            found.reverse()
        if place.offset >= len(found):
            return None
        target = found[place.offset] + place.physical
        return target if 0 <= target < len(self.rows) else None

    def value(self, expression: Expression, end: int) -> Any:
        """The value of an expression when the rows before ``end`` have been seen."""
        match expression:
            case Constant():
                return expression.value
            case MatchNumber():
                return self.number
            case Operation():
                return applied(expression.name, [self.value(one, end) for one in expression.operands])
            case At():
                return self.of_row(expression.content, self.target(expression.place, end))
            case Aggregate():
                return self.aggregate(expression, end)
        raise AssertionError(expression)

    def of_row(self, expression: Expression, place: int | None) -> Any:
        match expression:
            case Constant():
                return expression.value
            case Column():
                return None if place is None else self.rows[place][expression.name]
            case LabelOfRow():
                return self.label_at(place)
            case MatchNumber():
                return self.number
            case Operation():
                return applied(expression.name, [self.of_row(one, place) for one in expression.operands])
        raise AssertionError(expression)

    def aggregate(self, aggregate: Aggregate, end: int) -> Any:
        end = self.start + len(self.steps) if aggregate.is_final else end
        places = self.places(aggregate.labels, end)
        if not aggregate.operands:
            return len(places)
        values = [self.of_row(aggregate.operands[0], place) for place in places]
        if aggregate.name == "array_agg":
            return values or None
        if aggregate.name in ("max_by", "min_by"):
            keys = [self.of_row(aggregate.operands[1], place) for place in places]
            pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
            choose = max if aggregate.name == "max_by" else min
            return choose(pairs, key=operator.itemgetter(0))[1] if pairs else None
        known = [value for value in values if value is not None]
        if aggregate.is_distinct:
            known = list(dict.fromkeys(known))
        if aggregate.name == "count":
            return len(known)
        return folded(aggregate.name, known) if known else None


def folded(name: str, known: list[Any]) -> Any:
    match name:
        case "min":
            return min(known)
        case "max":
            return max(known)
        case "arbitrary":
            return known[0]
    total = known[0]
    for value in known[1:]:
        total = total + value
    return total / len(known) if name == "avg" else total


def both(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Any, right: Any) -> Any:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def divided(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def remainder(left: Any, right: Any) -> Any:
    quotient = divided(left, right)
    if quotient is None:
        return None
    return left - (int(quotient) if isinstance(quotient, float) else quotient) * right


STRICT: dict[str, Any] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divided,
    "%": remainder,
    "||": operator.add,
    "not": operator.not_,
    "negative": operator.neg,
    "abs": abs,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "least": min,
    "greatest": max,
}


def joined(name: str, values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = both(result, value) if name == "and" else either(result, value)
    return result


def chosen(values: list[Any]) -> Any:
    """The value of CASE: condition, value, condition, value, …, and perhaps the value otherwise."""
    while len(values) > 1:
        if values[0] is True:
            return values[1]
        values = values[2:]
    return values[0] if values else None


def applied(name: str, values: list[Any]) -> Any:
    """The value of an operation."""
    match name:
        case "and" | "or":
            return joined(name, values)
        case "is_null":
            return values[0] is None
        case "is_distinct":
            return values[0] != values[1]
        case "coalesce":
            return next((value for value in values if value is not None), None)
        case "in":
            return joined("or", [False, *(applied("=", [values[0], value]) for value in values[1:])])
        case "case" | "if":
            return chosen(values)
    return None if None in values else STRICT[name](*values)


def attempts(match: Match, node: Node, is_excluded: bool = False) -> Iterator[Match]:
    """All ways to continue with a pattern, the preferred one first."""
    match node:
        case Labelled():
            yield from labelled(match, node.label, is_excluded)
        case Anchor():
            if match.start + len(match.steps) == (0 if node.is_start else len(match.rows)):
                yield match
        case Concatenation():
            yield from in_order(match, node.parts, is_excluded)
        case Alternation():
            for part in node.parts:
                yield from attempts(match, part, is_excluded)
        case Exclusion():
            yield from attempts(match, node.part, True)
        case Repetition():
            yield from repeated(match, node, node.least, node.most, is_excluded)


def in_order(match: Match, parts: tuple[Node, ...], is_excluded: bool) -> Iterator[Match]:
    if not parts:
        yield match
        return
    for longer in attempts(match, parts[0], is_excluded):
        yield from in_order(longer, parts[1:], is_excluded)


def labelled(match: Match, label: int, is_excluded: bool) -> Iterator[Match]:
    longer = replace(match, steps=(*match.steps, (label, is_excluded)))
    if match.start + len(match.steps) < len(match.rows) and is_within(longer) and holds(longer, label):
        yield longer


def repeated(match: Match, node: Repetition, least: int, most: int | None, is_excluded: bool) -> Iterator[Match]:
    if least > 0:
        for longer in attempts(match, node.part, is_excluded):
            yield from repeated(longer, node, least - 1, None if most is None else most - 1, is_excluded)
        return
    if not node.is_greedy:
        yield match
    if most is None or most > 0:
        for longer in attempts(match, node.part, is_excluded):
            if most is None and len(longer.steps) == len(match.steps):
                yield longer  # an iteration without a row ends a loop
            else:
                yield from repeated(longer, node, 0, None if most is None else most - 1, is_excluded)
    if node.is_greedy:
        yield match


def holds(match: Match, label: int) -> bool:
    condition = dict(match.clause.definitions).get(label)
    return condition is None or match.value(condition, match.start + len(match.steps)) is True


def is_within(match: Match) -> bool:
    if match.clause.within is None:
        return True
    assert isinstance(match.clause.within, Constant)
    column = match.clause.order[0].column
    first, last = match.rows[match.start][column], match.rows[match.start + len(match.steps) - 1][column]
    length: Any = match.clause.within.value
    distance = last - first
    return bool(abs(distance) < length) if isinstance(length, int | timedelta) else False


def next_start(match: Match) -> int:
    """The row at which the search continues."""
    skip = match.clause.skip
    if skip.rule == "past_last_row":
        return match.start + len(match.steps)
    if skip.rule == "to_next_row":
        return match.start + 1
    places = match.places(skip.labels, len(match.rows))
    if not places or (target := places[0 if skip.rule == "to_first" else -1]) == match.start:
        raise SkipFails
    return target


def partitions(clause: Clause, rows: list[Row]) -> list[list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[sort.column] for sort in clause.partition), []).append(row)

    def compared(left: Row, right: Row) -> int:
        for sort in clause.order:
            a, b = left[sort.column], right[sort.column]
            if a is None or b is None:
                order = (a is None) - (b is None)
                order = -order if sort.are_nulls_first else order
            else:
                order = (a > b) - (a < b)
                order = -order if sort.is_descending else order
            if order:
                return order
        return 0

    return [sorted(part, key=cmp_to_key(compared)) for part in found.values()]


def matches_of(clause: Clause, rows: list[Row]) -> Iterator[Match | int]:
    """The matches in a partition, and unmatched rows by number."""
    start, number, last_matched = 0, 1, -1
    while start < len(rows):
        found = next(attempts(Match(clause, rows, start, (), number), clause.pattern), None)
        if found is None:
            if start > last_matched:
                yield start
            start += 1
            continue
        yield found
        number += 1
        last_matched = max(last_matched, start + len(found.steps) - 1)
        start = next_start(found) if found.steps else start + 1


def lines_of(found: Match | int, rows: list[Row]) -> Iterator[tuple[Row, list[Any]]]:
    """The rows that are output for a match or an unmatched row: the row of the table, and the measures."""
    if isinstance(found, int):
        yield rows[found], []
        return
    clause = found.clause

    def measures(end: int) -> list[Any]:
        return [found.value(measure.expression, end) for measure in clause.measures]

    if clause.rows == "one" or not found.steps:
        if found.steps or clause.rows != "omit_empty":
            yield rows[found.start], measures(found.start + len(found.steps))
        return
    for place, (_, is_excluded) in enumerate(found.steps):
        if not is_excluded:
            yield rows[found.start + place], measures(found.start + place + 1)


def run_clause(text: str, rows: list[Row], columns: list[str]) -> list[list[Any]]:
    """The output of a query's clause."""
    clause = resolve_clause(parse_query(text).clause, columns)
    result: list[list[Any]] = []
    for part in partitions(clause, rows):
        for found in matches_of(clause, part):
            if isinstance(found, int) and clause.rows != "unmatched":
                continue
            result.extend(output(clause, row, values, columns) for row, values in lines_of(found, part))
    return result


def output(clause: Clause, row: Row, values: list[Any], columns: list[str]) -> list[Any]:
    """An output row: columns of the partition, with ALL ROWS those of the order, measures and the other columns."""
    shown = [row[sort.column] for sort in clause.partition]
    measures = values or [None] * len(clause.measures)
    if clause.rows == "one":
        return shown + measures
    keys = {sort.column for sort in (*clause.partition, *clause.order)}
    of_order = [row[sort.column] for sort in clause.order]
    return shown + of_order + measures + [row[name] for name in columns if name not in keys]
