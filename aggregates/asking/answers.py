"""Answers: the totals of groups, which can be merged over shards, and the rows that a client gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, TypeAlias

from aggregates.asking.questions import ValueFunction
from aggregates.asking.values import Scalar, canonical, key_of, sorted_places

_ABSENT = object()

Total: TypeAlias = "int | float | list[Any] | None"
"""What a value of one group is made from, plain JSON.

``count``: the number; ``min`` and ``max``: the value, or null; ``sum`` and ``avg``: the number of values, their sum,
and what rounding has taken from it; ``distinct``: the values.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one index, or of several that have disjoint events.

    Attributes:
        by: Attributes of the groups.
        functions: The function of each value, by name.
        groups: The values of each group's attributes, in any order.
        totals: The totals of each value, by name; one for each group.
        end_us: The end of the window; None before the first event.
        events: Number of events in the window of the question.
        compared: Number of events that were compared to find the answer.
        visited: Number of partitions that were visited.
    """

    by: tuple[str, ...]
    functions: Mapping[str, ValueFunction]
    groups: list[tuple[Scalar, ...]]
    totals: Mapping[str, list[Total]]
    end_us: int | None
    events: int
    compared: int
    visited: int

    def rows(self) -> list[dict[str, Scalar]]:
        """The groups in order of nulls, booleans, numbers and texts, each with its attributes and values by name."""
        finished = [_finished(self.functions[name], totals) for name, totals in self.totals.items()]
        names = (*self.by, *self.totals)
        rows = [
            dict(zip(names, (*group, *values), strict=True))
            for group, *values in zip(self.groups, *finished, strict=True)
        ]
        return [rows[place] for place in sorted_places(self.groups)]

    def to_json(self) -> dict[str, Any]:
        """The answer as plain JSON, for the process that merges it with others."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Answer:
        """The answer that ``to_json`` wrote."""
        groups = [tuple(group) for group in value["groups"]]
        return cls(**{**value, "by": tuple(value["by"]), "groups": groups})


def merged(answers: Sequence[Answer]) -> Answer:
    """The answer to a question over all events of several indexes, from their answers to it."""
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


def _united_groups(answers: Sequence[Answer]) -> tuple[list[tuple[Scalar, ...]], dict[str, list[Total]]]:
    """The groups of several answers, and their totals."""
    known: dict[tuple[object, ...], int] = {}
    groups: list[tuple[Scalar, ...]] = []
    places: list[int] = []  # of each group of each answer
    for group in (group for answer in answers for group in answer.groups):
        place = known.setdefault(tuple(map(key_of, group)), len(groups))
        places.append(place)
        if place == len(groups):
            groups.append(group)
    totals = {
        name: _merged(function, places, [total for answer in answers for total in answer.totals[name]], len(groups))
        for name, function in answers[0].functions.items()
    }
    return groups, totals


def _merged(function: ValueFunction, places: Sequence[int], totals: Sequence[Total], count: int) -> list[Total]:
    """The totals of a value by the places of their groups, added where several have one place."""
    found: list[Any] = [_ABSENT] * count
    for place, total in zip(places, totals, strict=True):
        found[place] = total if found[place] is _ABSENT else _added(function, found[place], total)
    return found


def _finished(function: ValueFunction, totals: Iterable[Any]) -> list[Scalar]:
    """The values that totals lead to; null where there was no value to add or compare."""
    if function == "count":
        return list(totals)
    if function == "distinct":
        return [len(values) for values in totals]
    if function not in ("sum", "avg"):
        return [canonical(total) for total in totals]
    return [_quotient(function, *total) for total in totals]


def _quotient(function: ValueFunction, count: int, high: float, low: float) -> Scalar:
    """A sum, or a mean, from the number of values, their sum, and what rounding has taken from it."""
    if not count:
        return None
    found = high + low if isfinite(low) else high
    return canonical(found) if function == "sum" else found / count


def _added(function: ValueFunction, one: Any, other: Any) -> Total:
    if function == "count":
        return int(one + other)
    if function in ("sum", "avg"):
        return _summed(one, other)
    if function == "distinct":
        return _united(one, other)
    known = [value for value in (one, other) if value is not None]
    if not known:
        return None
    least_or_greatest: float = min(known) if function == "min" else max(known)
    return least_or_greatest


def _summed(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """The total of two sums, with what rounding takes from it."""
    high = one[1] + other[1]
    part = high - one[1]
    return [one[0] + other[0], high, one[2] + other[2] + ((one[1] - (high - part)) + (other[1] - part))]


def _united(one: Iterable[Scalar], other: Iterable[Scalar]) -> list[Any]:
    return list({key_of(value): value for value in (*one, *other)}.values())
