"""Conditions over events that were combined elsewhere, such as by a join."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.predicates import Leaf, Source, evaluate, source_of
from nfa.conditions.values import Values
from nfa.errors import PatternRefused
from nfa.functions.lookups import NAMES as LOOKUPS
from nfa.language.expression_building import build_expression, trees_of
from nfa.language.parsing import parse_tree
from nfa.language.references import NameScope, attributes_of, check_references, resolve
from nfa.syntax import (
    AGGREGATES,
    Arithmetic,
    Attribute,
    Both,
    Call,
    Comparison,
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
    calls_of,
)

_NONE: frozenset[str] = frozenset()
_OF_EVENT = "#"  # no alias begins with it
_IN_FRONT = "["


@dataclass(frozen=True, slots=True)
class CombinedCondition:
    """A condition over one event of each of some aliases.

    It ``reads`` values without duplicates: the alias, and the path of an attribute, ``#time``, ``#type`` or ``#id``.
    """

    reads: tuple[tuple[str, Source], ...]
    _expression: Expression

    def holds(self, values: Sequence[tuple[Sequence[Any], NDArray[np.intp]]], size: int) -> NDArray[np.bool_]:
        """The combinations for which the condition is true, and neither false nor null.

        ``values`` has, for each of ``reads``, distinct values as plain JSON, and for each combination the index of its
        value among these; times are integers in microseconds. ``size`` is the number of combinations.
        """
        columns: dict[Leaf, Values] = {
            _path_of(alias, leaf): Values.of(some).take(places)
            for (alias, leaf), (some, places) in zip(self.reads, values, strict=True)
        }
        return evaluate(self._expression, columns, size).is_true


def parse_condition(text: str, aliases: Collection[str]) -> CombinedCondition:
    """Read a condition in which every reference begins with an alias, as in WHERE of a pattern.

    Raises:
        PatternRefused: The text cannot be read or is refused; position and advice are in the message.
    """
    try:
        (tree,) = trees_of(parse_tree(f"{_IN_FRONT}{text}\n]", "condition"))
        known = frozenset(aliases)
        scope = NameScope(
            own=None, known=known, hidden=_NONE, bound=known, listed=known, groups=_NONE, has_previous=False
        )
        expression = resolve(build_expression(tree), scope)
        check_references(expression, scope)
        _check_calls(expression)
    except PatternRefused as error:
        raise _moved(error, text) from error
    reads: dict[tuple[str, Source], None] = {}
    flat = _flat(expression, reads)
    return CombinedCondition(tuple(reads), flat)


def _check_calls(expression: Expression) -> None:
    for call in calls_of(expression):
        if call.name in AGGREGATES:
            raise PatternRefused(
                "aggregate",
                f"{call.name} reads several events, and a combination has one of each alias; compare its attributes",
                call.position,
            )
        if call.name in LOOKUPS:
            raise PatternRefused(
                "function",
                "a join reads no tables; look the value up in a pattern, and join the events that it derives",
                call.position,
            )
        if isinstance(call.arguments[-1], Each):
            raise PatternRefused(
                "function",
                f"{call.name} reads a list, and a combination has single values; compare elements, as in items[0]",
                call.position,
            )
        if call.name == "key":
            alias = next(attributes_of(call)).of
            raise PatternRefused(
                "constant-key",
                "the events of a combination have the same key, so it need not be compared; an attribute with the name "
                f"key is {alias}.`key`",
                call.position,
            )


def _moved(error: PatternRefused, text: str) -> PatternRefused:
    """A refusal with its position in the caller's text."""
    (_, _, what), place, lines = error.message.partition(": "), error.position, text.split("\n")
    if place.line > len(lines):  # at the bracket after the text
        what, place = what.replace("unexpected ']'", "the text ends"), Position(len(lines), len(lines[-1]) + 1)
    elif place.line == 1:
        place = Position(1, max(1, place.column - len(_IN_FRONT)))
    return PatternRefused(error.reason, what, place)


def _path_of(alias: str, leaf: Source) -> Path:
    """The path under which the flattened condition reads an alias' value."""
    return (_OF_EVENT, alias, leaf) if isinstance(leaf, str) else (alias, *leaf)


def _flat(expression: Expression, reads: dict[tuple[str, Source], None]) -> Expression:
    """The expression over a single event that has the values of all events of a combination."""
    again = partial(_flat, reads=reads)
    leaf = source_of(expression)
    if leaf is not None:
        alias = next(attributes_of(expression)).of or ""
        reads[alias, leaf] = None
        return Attribute(_path_of(alias, leaf))
    match expression:
        case Comparison() | Arithmetic():
            return replace(expression, left=again(expression.left), right=again(expression.right))
        case IsNull() | InList() | Like() | Not() | Negative():
            return replace(expression, operand=again(expression.operand))
        case Both() | Either():
            return replace(expression, operands=tuple(map(again, expression.operands)))
        case Call():
            return replace(expression, arguments=tuple(map(again, expression.arguments)))
        case Literal() | Attribute():
            return expression
