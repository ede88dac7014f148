"""Expressions over combinations of events, for example the rows of a join."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.lookups import lookup_of, lookups_of
from nfa.conditions.predicates import Elements, Leaf, evaluate_with_tables
from nfa.conditions.residuals import rewritten
from nfa.conditions.values import Values
from nfa.errors import PatternRefused
from nfa.language.expression_building import build_expression, trees_of
from nfa.language.kinds import null_comparisons
from nfa.language.parsing import moved, parse_condition_tree
from nfa.language.references import NameScope, check_references, resolve
from nfa.syntax import AGGREGATES, OF_EVENT, Attribute, Call, Each, Expression, Path, Scalar, attributes_of, calls_of
from streams.tables import Lookup, Tables

_OF_EVENT = "#"  # first name in the path of a function of an event; no alias begins with it
_OF_JOIN = "\0"  # precedes the name of a function that only joins have; no attribute's name begins with it


class Read(NamedTuple):
    """A value that an expression reads from an alias.

    If ``function`` is ``value``, this is the attribute at ``path``. Otherwise it is the result of the function, such as
    ``time`` or ``sum``.
    """

    alias: str
    function: str
    path: Path


Placed: TypeAlias = tuple[Sequence[Any], NDArray[np.intp]]
"""A column: its distinct values as plain JSON, and for each combination the index of its value among these."""


@dataclass(frozen=True, slots=True)
class CombinedExpression:
    """An expression over combinations of events, such as the rows of a join, with one value for each combination.

    For each alias, a combination has either one event, or totals of several events, such as a sum.
    ``null_comparisons`` has a sentence for each comparison that is always null.
    """

    _leaves: Mapping[Path | Elements, Read]
    _expression: Expression
    null_comparisons: tuple[str, ...]

    @property
    def reads(self) -> tuple[Read, ...]:
        """The values that the expression reads, without duplicates."""
        return tuple(self._leaves.values())

    @property
    def lookups(self) -> frozenset[Lookup]:
        return frozenset(map(lookup_of, lookups_of(self._expression)))

    def holds(self, values: Sequence[Placed], size: int, tables: Tables | None = None) -> NDArray[np.bool_]:
        """Return a mask of the combinations for which the expression is true.

        ``values`` has one column for each item of ``reads``, each with ``size`` rows. Times are integers in
        microseconds.
        """
        return self._values(values, size, tables).is_true

    def column(self, values: Sequence[Placed], size: int, tables: Tables | None = None) -> list[Scalar]:
        """Return the expression's value for each combination, as plain JSON. The arguments are as in ``holds``."""
        return self._values(values, size, tables).to_list()

    def _values(self, values: Sequence[Placed], size: int, tables: Tables | None) -> Values:
        columns: dict[Leaf, Values] = {
            leaf: (Values.of_lists(column) if isinstance(leaf, Elements) else Values.of(column)).take(places)
            for leaf, (column, places) in zip(self._leaves, values, strict=True)
        }
        return evaluate_with_tables(self._expression, columns, size, tables)


def parse_combined(text: str, aliases: Collection[str], *, takes_totals: bool = False) -> CombinedExpression:
    """Parse an expression over combinations of events. Every reference must begin with an alias.

    With ``takes_totals``, an alias has several events, and the expression may use aggregates of these events.

    Raises:
        PatternRefused: The text is not valid. The error has its position and advice.
    """
    try:
        (tree,) = trees_of(parse_condition_tree(text))
        names = frozenset(aliases)
        scope = NameScope(own=None, known=names, bound=names, listed=names, has_previous=False)
        expression = resolve(_with_reads(build_expression(tree), takes_totals=takes_totals), scope)
        check_references(expression, scope)
        _check_calls(expression, takes_totals=takes_totals)
    except PatternRefused as error:
        raise moved(error, text) from None
    leaves: dict[Path | Elements, Read] = {}
    flat = _flat(expression, leaves)
    return CombinedExpression(leaves, flat, tuple(sentence for sentence, _ in null_comparisons(expression)))


def _with_reads(expression: Expression, *, takes_totals: bool) -> Expression:
    """Replace calls of ``distinct`` or ``decided_by`` by attributes with special names, which ``_leaf`` reads.

    Calls of ``distinct`` are replaced if ``takes_totals``, and calls of ``decided_by`` otherwise.
    """
    function = "distinct" if takes_totals else "decided_by"

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Call) or part.name != function:
            return None
        argument = part.arguments[0]
        if len(part.arguments) != 1 or not isinstance(argument, Attribute) or (len(argument.path) > 1) != takes_totals:
            example = "distinct(a.price)" if takes_totals else "decided_by(a)"
            raise PatternRefused("function", f"write {function} as in {example}", part.position)
        alias, *path = argument.path
        return replace(argument, path=(alias, _OF_JOIN + function, *path), ends_in_key=False)

    return rewritten(expression, change)


def _check_calls(expression: Expression, *, takes_totals: bool) -> None:
    for call in calls_of(expression):
        if call.name in AGGREGATES and takes_totals:
            if not isinstance(call.arguments[0], Attribute):
                raise PatternRefused(
                    "aggregate", f"{call.name} takes an attribute here, as in {call.name}(a.price)", call.position
                )
        elif call.name in AGGREGATES:
            raise PatternRefused(
                "aggregate",
                f"{call.name} reads several events, and a combination has one of each alias; compare its attributes",
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


def _flat(expression: Expression, leaves: dict[Path | Elements, Read]) -> Expression:
    """Replace each value of an alias by an attribute.

    ``leaves`` receives the path of the attribute and the value's ``Read``.
    """

    def change(part: Expression) -> Expression | None:
        match part:
            case Attribute():
                return _leaf(part, "value", leaves)
            case Call(arguments=(Attribute() as argument,)) if part.name in (*OF_EVENT, *AGGREGATES):
                return _leaf(argument, part.name, leaves)
            case Call(arguments=(Attribute() as argument, Each() as each)):
                leaf = _leaf(argument, "value", {})
                leaves[Elements(leaf.path)] = Read(argument.of or "", "value", argument.path)
                return replace(part, arguments=(leaf, each))
            case _:
                return None

    return rewritten(expression, change)


def _leaf(attribute: Attribute, function: str, leaves: dict[Path | Elements, Read]) -> Attribute:
    first, inner_path = "".join(attribute.path[:1]), attribute.path[1:]
    join_function = first.removeprefix(_OF_JOIN) if first.startswith(_OF_JOIN) else None
    read = Read(attribute.of or "", join_function or function, inner_path if join_function else attribute.path)
    function = read.function
    path = (read.alias, *read.path) if function == "value" else (_OF_EVENT, read.alias, function, *read.path)
    leaves[path] = read
    return Attribute(path)
