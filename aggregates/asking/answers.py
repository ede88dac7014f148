"""Answers: the totals of groups, which can be merged over shards, and the rows that a client receives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, isfinite
from typing import Any, TypeAlias

from aggregates.asking.questions import ValueFunction
from aggregates.asking.values import sorted_places
from aggregates.scalars import Scalar, canonical, key_of

Totals: TypeAlias = "list[list[Any]]"
"""Partial results from which the values of all groups are computed: columns of plain JSON, with one entry per group.

``sum`` and ``avg`` have three columns: number of values, sum, rounding error of the sum. Other functions have one
column: ``count`` the number, ``min`` and ``max`` the value or null, ``distinct`` the list of values.
"""

_NOTHING: Mapping[ValueFunction, tuple[Any, ...]] = {
    "count": (0,),
    "sum": (0, 0.0, 0.0),
    "avg": (0, 0.0, 0.0),
    "min": (None,),
    "max": (None,),
    "distinct": ((),),
}
"""The totals of a group without events."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, from the question index of one shard or merged from the indexes of several shards.

    Attributes:
        by: Names of the attributes that form groups.
        functions: The function of each value, by name of the value.
        groups: One tuple of attribute values per group, in any order.
        totals: Partial results of each value, such as count and sum, by name of the value.
        end_us: The end of the window. None before the first event.
        events: Number of events in the window of the question.
        compared: Number of events that were compared with the question's filter.
        visited: Number of partitions of the index that were visited.
    """

    by: tuple[str, ...]
    functions: Mapping[str, ValueFunction]
    groups: list[tuple[Scalar, ...]]
    totals: Mapping[str, Totals]
    end_us: int | None
    events: int
    compared: int
    visited: int

    def rows(self) -> list[dict[str, Scalar]]:
        """Return one row per group: attributes and values by name. Rows are sorted by attributes, nulls first."""
        finished = [_finished(self.functions[name], totals) for name, totals in self.totals.items()]
        names = (*self.by, *self.totals)
        rows = list(zip(*zip(*self.groups, strict=True), *finished, strict=True))
        return [dict(zip(names, rows[place], strict=False)) for place in sorted_places(self.groups)]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON, for the process that merges the answers of shards."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Answer:
        """Read the result of ``to_json``. An infinite sum is null in JSON, so null is read as an infinite sum."""
        groups = [tuple(group) for group in value["groups"]]
        for name, function in value["functions"].items():
            if function in ("sum", "avg") and None in value["totals"][name][1]:
                columns = value["totals"][name]
                columns[1:] = [[inf if number is None else number for number in column] for column in columns[1:]]
        return cls(**{**value, "by": tuple(value["by"]), "groups": groups})


def merged(answers: Sequence[Answer]) -> Answer:
    """Merge the answers of several indexes with disjoint events to the same question."""
    first, *_ = (grouped := [answer for answer in answers if answer.groups]) or answers
    groups, totals = (first.groups, first.totals) if len(grouped) < 2 else _united_groups(grouped)
    return replace(
        first,
        groups=groups,
        totals=totals,
        end_us=max((answer.end_us for answer in answers if answer.end_us is not None), default=None),
        events=sum(answer.events for answer in answers),
        compared=sum(answer.compared for answer in answers),
        visited=sum(answer.visited for answer in answers),
    )


def _united_groups(answers: Sequence[Answer]) -> tuple[list[tuple[Scalar, ...]], dict[str, Totals]]:
    first, *others = answers
    groups, totals = list(first.groups), {name: [*map(list, columns)] for name, columns in first.totals.items()}
    types = {type(value) for answer_of_shard in answers for value in chain.from_iterable(answer_of_shard.groups)}
    keyed = _key_of_group if bool in types else tuple
    known = {keyed(group): place for place, group in enumerate(groups)}
    for answer in others:
        places = [known.setdefault(keyed(group), len(known)) for group in answer.groups]
        groups += [group for place, group in zip(places, answer.groups, strict=True) if place >= len(groups)]
        for name, columns in totals.items():
            _add(first.functions[name], columns, len(groups), zip(places, *answer.totals[name], strict=True))
    return groups, totals


def _key_of_group(group: Sequence[Scalar]) -> tuple[object, ...]:
    return tuple(map(key_of, group))


def _add(function: ValueFunction, columns: Totals, count: int, entries: Iterable[Any]) -> None:
    """Add ``entries`` to the totals in ``columns``. An entry is the index of a group, then the totals to add to it."""
    for column, nothing in zip(columns, _NOTHING[function], strict=True):
        column.extend([nothing] * (count - len(column)))
    if function in ("sum", "avg"):
        _add_sums(columns, entries)
        return
    (column,) = columns
    for place, other in entries:
        column[place] = _added(function, column[place], other)


def _add_sums(columns: Totals, entries: Iterable[tuple[int, int, float, float]]) -> None:
    counts, highs, lows = columns
    for place, number, other, low in entries:
        before = highs[place]
        high = before + other
        part = high - before
        counts[place] += number
        highs[place] = high
        lows[place] += low + ((before - (high - part)) + (other - part))


def _finished(function: ValueFunction, columns: Totals) -> list[Scalar]:
    """Return the value of each group from its totals. A sum, mean, minimum or maximum of no values is null."""
    if function in ("sum", "avg"):
        return [_quotient(function, *entry) for entry in zip(*columns, strict=True)]
    (column,) = columns
    if function == "count":
        return column
    return [len(values) for values in column] if function == "distinct" else [canonical(value) for value in column]


def _quotient(function: ValueFunction, count: int, high: float, low: float) -> Scalar:
    if not count:
        return None
    total = high + low if isfinite(low) else high
    return canonical(total) if function == "sum" else total / count


def _added(function: ValueFunction, augend: Any, addend: Any) -> Any:
    if function == "count":
        return augend + addend
    if function == "distinct":
        return list({key_of(value): value for value in (*augend, *addend)}.values())
    known = [value for value in (augend, addend) if value is not None]
    return (min if function == "min" else max)(known, default=None)
