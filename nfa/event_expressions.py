"""Expressions over a single event, or over a row of named values, in the condition language of patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.lookups import lookup_of, lookups_of
from nfa.conditions.predicates import BatchColumns, Leaf, evaluate, evaluate_with_tables, leaves_of, sources_of
from nfa.conditions.residuals import rewritten, without_alias
from nfa.conditions.values import Values
from nfa.errors import PatternRefused
from nfa.functions.function import Kind
from nfa.language.expression_building import build_expression, trees_of
from nfa.language.kinds import null_comparisons
from nfa.language.parsing import moved, parse_condition_tree
from nfa.language.references import NameScope, check_references, resolve
from nfa.syntax import (
    AGGREGATES,
    OF_EVENT,
    Attribute,
    Both,
    Call,
    Comparison,
    Expression,
    InList,
    Literal,
    Path,
    Scalar,
    attributes_of,
    calls_of,
    subexpressions,
)
from streams import EventBatch
from streams.tables import Lookup, Tables

_OWN = "event"
_ALIASES = frozenset([_OWN])
_TYPE = ("type",)
_EVENT_ITSELF, _OF_OWN = Attribute(()), Attribute((), _OWN)  # the event, without and with its alias
_MOST_EXACT = 2**53  # of integers as floats


@dataclass(frozen=True, slots=True)
class EventExpression:
    """An expression over one event. Its names are attributes of the event.

    Other members of the event are written ``type``, ``key`` and ``time(event)``.
    """

    _expression: Expression

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of the attributes that the expression reads, without duplicates."""
        return tuple({attribute.path: None for attribute in attributes_of(self._expression) if attribute.path})

    @property
    def names(self) -> frozenset[str]:
        """The paths of the attributes that the expression reads, as text with dots between the names."""
        return frozenset(map(".".join, self.paths))

    @property
    def types(self) -> tuple[str, ...]:
        """The event types with which the expression compares ``type``, without duplicates."""
        compared: list[Expression] = []
        for part in subexpressions(self._expression):
            match part:
                case Comparison(left=Call("type"), right=other) | Comparison(left=other, right=Call("type")):
                    compared.append(other)
                case InList(operand=Call("type"), values=values):
                    compared += values
        values_of = (part.value for part in compared if isinstance(part, Literal))
        return tuple(dict.fromkeys(value for value in values_of if isinstance(value, str)))

    @property
    def lookups(self) -> frozenset[Lookup]:
        """The lookups in reference tables."""
        return frozenset(map(lookup_of, lookups_of(self._expression)))

    def null_comparisons(self, of_names: Mapping[str, Kind]) -> list[str]:
        """Return a sentence for each comparison that is always null.

        ``of_names`` has the kinds of attributes, as far as they are known.
        """
        named = rewritten(self._expression, lambda part: _OF_OWN if part == _EVENT_ITSELF else None)
        return [sentence for sentence, _ in null_comparisons(named, of_names)]

    def column(self, columns: BatchColumns, rows: NDArray[np.intp]) -> list[Scalar]:
        """Return the value of the expression for each given event of a batch, as plain JSON. Null becomes None."""
        return self._values(columns, rows).to_list()

    def holds(self, columns: BatchColumns, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return a mask of the given events for which the expression is true."""
        return self._values(columns, rows).is_true

    def holds_of(self, columns: Mapping[str, Any], size: int, tables: Tables | None = None) -> NDArray[np.bool_]:
        """Return a mask of ``size`` rows for which the expression is true.

        The names in the expression refer to ``columns``, not to attributes of events. A column is a list of plain JSON
        values, or a tuple (kinds, integers, floats) as in ``Values``. Lookups read ``tables``.
        """
        source_values: dict[Leaf, Values] = {
            leaf: Values.of_columns(columns[".".join(leaf)])
            for leaf in sources_of(self._expression)
            if isinstance(leaf, tuple)
        }
        return evaluate_with_tables(self._expression, source_values, size, tables).is_true

    @property
    def bounds(self) -> Iterator[tuple[str, float, float]]:
        """Yield (name, least, greatest) for attributes whose values must be in a range.

        The expression is not true if such an attribute is outside its range, or is not a number.
        """
        whole = self._expression
        for conjunct in whole.operands if isinstance(whole, Both) else (whole,):
            match conjunct:
                case Comparison(
                    operator=operator, left=Attribute(path=path), right=Literal(value=int() | float() as number)
                ):
                    lowest = float(number) if operator in ("=", ">", ">=") else -inf
                    yield ".".join(path), lowest, float(number) if operator in ("=", "<", "<=") else inf

    @property
    def is_in_bounds(self) -> bool:
        """Whether the bounds are also sufficient: if all attributes are within ``bounds``, the expression is true."""
        whole = self._expression
        for operand in whole.operands if isinstance(whole, Both) else (whole,):
            match operand:
                case Comparison(
                    operator="=" | ">=" | "<=", left=Attribute(), right=Literal(value=int() | float() as n)
                ):
                    if isinstance(n, bool) or abs(n) >= _MOST_EXACT:
                        return False
                case _:
                    return False
        return True

    def numbers(self, columns: BatchColumns, rows: NDArray[np.intp]) -> tuple[NDArray[Any], ...]:
        """Return the values of the expression for the given events as kinds, integers and floats, as in ``Values``."""
        values = self._values(columns, rows)
        return values.kinds, values.integers, values.floats

    def _values(self, columns: BatchColumns, rows: NDArray[np.intp]) -> Values:
        return evaluate(self._expression, columns.read(rows, set(leaves_of(self._expression))), len(rows))


def parse_event_expression(text: str) -> EventExpression:
    """Parse an expression over one event, such as ``price * quantity`` or ``type = 'Paid' AND price > 10``.

    Raises:
        PatternRefused: The text is not valid. The error has its position and advice.
    """
    try:
        expression = _resolved(text)
    except PatternRefused as error:
        raise moved(error, text) from None
    return EventExpression(without_alias(expression, _OWN))


def _resolved(text: str) -> Expression:
    scope = NameScope(own=None, known=_ALIASES, bound=_ALIASES, has_previous=False)
    expression = resolve(_of_event(build_expression(trees_of(parse_condition_tree(text))[0])), scope)
    for call in calls_of(expression):
        if call.name in (*AGGREGATES, "prev"):
            raise PatternRefused(
                "aggregate", f"{call.name} reads several events, but this expression is over one", call.position
            )
    check_references(expression, scope)
    return expression


def columns_of_events(batch: EventBatch) -> BatchColumns:
    """Return a reader of a batch. Expressions that share the reader parse the data of each event only once."""
    return BatchColumns(batch)


def _of_event(expression: Expression) -> Expression:
    """Rewrite the names of an expression: every name gets the event's alias, and ``type`` becomes a call."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Attribute(path=path) if path == _TYPE:
                return Call("type", (replace(part, path=(_OWN,)),), part.position)
            case Attribute():
                return replace(part, path=(_OWN, *part.path))
            case Call(arguments=(Attribute(path=(name,)),)) if part.name in OF_EVENT and name == _OWN:
                return part
            case _:
                return None

    return rewritten(expression, change)
