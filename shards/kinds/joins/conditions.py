"""Conditions between the inputs of a join and expressions in ``return``, in the condition language of patterns.

The packages of joins and of patterns do not know each other, so the join receives the functions that parse expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from joins import Column, JoinBody, Placed, read_join
from shards.errors import OperatorRefused
from streams import parse_time
from streams.tables import Lookup, Tables

ReadTables: TypeAlias = Callable[[], Tables | None]
"""A function that returns the tables that lookups read."""


@dataclass(frozen=True, slots=True)
class JoinExpression:
    """A parsed expression of a join, for ``where`` or ``return``.

    The expression reads attributes of the joined events, or totals: counts, sums and other values over many events.
    """

    reads: tuple[Column, ...]
    _parsed: Any  # an ``nfa.CombinedExpression``, whose module takes long to import
    _tables: ReadTables

    @property
    def lookups(self) -> Collection[Lookup]:
        return cast("Collection[Lookup]", self._parsed.lookups)

    @property
    def null_comparisons(self) -> Sequence[str]:
        """Sentences about comparisons that are always null, such as text < number."""
        return cast("Sequence[str]", self._parsed.null_comparisons)

    def holds(self, values: Sequence[Placed], size: int) -> NDArray[np.bool_]:
        """Evaluate the expression as a condition on combinations of events, and return a mask of length ``size``.

        ``values`` has an item for each column in ``reads``; see ``joins.Condition``.
        """
        return cast("NDArray[np.bool_]", self._parsed.holds(values, size, self._tables()))

    def column(self, values: Sequence[Placed], size: int) -> list[Any]:
        """Evaluate the expression for each of ``size`` combinations of events; see ``joins.returns.Expression``.

        Totals contain times as texts. These are converted first, because the expression compares times in microseconds.
        """
        placed_values = [
            ([parse_time(moment) if isinstance(moment, str) else moment for moment in column_values], places)
            if column.function == "time"
            else (column_values, places)
            for column, (column_values, places) in zip(self.reads, values, strict=True)
        ]
        return cast("list[Any]", self._parsed.column(placed_values, size, self._tables()))


def body_of(document: Mapping[str, Any], tables: ReadTables = lambda: None) -> JoinBody:
    """Parse the document of a join, with the expressions in ``return``. Their lookups read ``tables``."""

    def expression(text: str, aliases: Sequence[str], *, takes_totals: bool) -> JoinExpression:
        return _parsed(text, aliases, "return", tables, takes_totals=takes_totals)

    return read_join(document, expression)


def condition_of(body: JoinBody, tables: ReadTables = lambda: None) -> JoinExpression | None:
    """Parse the condition ``where`` of a join, whose lookups read ``tables``. Return None if the join has none."""
    aliases = [join_input.alias for join_input in body.inputs]
    return None if body.where is None else _parsed(body.where, aliases, "where", tables)


def lookups_of(body: JoinBody) -> Iterator[Lookup]:
    """Yield the lookups in reference tables that the expressions of a join contain."""
    for expression in (condition_of(body), *(member.expression for member in body.members)):
        yield from expression.lookups if isinstance(expression, JoinExpression) else ()


def _parsed(
    text: str, aliases: Sequence[str], field: str, tables: ReadTables, *, takes_totals: bool = False
) -> JoinExpression:
    from nfa import PatternRefused, parse_combined  # noqa: PLC0415 - takes long

    try:
        parsed = parse_combined(text, aliases, takes_totals=takes_totals)
    except PatternRefused as error:
        where = f", {text!r}" if field == "return" else ""
        raise OperatorRefused(f"'{field}' of a join{where}: {error.message}", field=field) from error
    reads = [
        Column(name="", alias=alias, function=cast("Any", function), path=path)
        for alias, function, path in parsed.reads
    ]
    return JoinExpression(tuple(reads), parsed, tables)
