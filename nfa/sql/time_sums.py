"""Refuses conditions between rows whose sums and differences of times may be too large for a kernel."""

from __future__ import annotations

from typing import TypeAlias

from nfa.errors import PatternRefused
from nfa.kernels.row_patterns import tables
from nfa.sql.conditions import Conditions
from nfa.syntax import Position

_Bounds: TypeAlias = tuple[int, int, Position]
_HULLS = (tables.LEAST, tables.GREATEST, tables.KNOWN_ONE)
_UNARY = (tables.TO_FLOAT, tables.NOT, tables.IS_NULL)
_SIGNS = (tables.NEGATE, tables.ABSOLUTE)
_EXTREMES = (tables.MINIMUM, tables.MAXIMUM, tables.ANY_VALUE)


def refuse_large_sums(conditions: Conditions) -> None:
    """Refuse conditions that add or subtract times or intervals too large for int64.

    Raises:
        PatternRefused: A sum or difference may be outside the range of int64.
    """
    stack: list[_Bounds | None] = []
    for sign, place in conditions.code if conditions.times.added else ():
        if sign in _UNARY:
            stack[-1] = None
        elif sign in _SIGNS:
            stack[-1] = _mirrored(stack[-1])
        elif sign < tables.TO_FLOAT:
            stack.append(_of_value(conditions, sign, place))
        elif sign == tables.CHOOSE:
            stack[-3:] = [_hull(stack[-2], stack[-1])]
        else:
            stack[-2:] = [_combined(sign, stack[-2], stack[-1])]


def _of_value(conditions: Conditions, sign: int, place: int) -> _Bounds | None:
    is_sum = sign == tables.AGGREGATE and conditions.aggregates[place][tables.FUNCTION] not in _EXTREMES
    bounds: _Bounds | None = None
    for index in () if is_sum else conditions.times_in([(sign, place)]):
        numbers = conditions.times.numbers[index]
        position = conditions.times.positions[index]
        own = (int(numbers.min()), int(numbers.max()), position)
        bounds = own if bounds is None else _hull(bounds, own)
    return bounds


def _hull(first: _Bounds | None, second: _Bounds | None) -> _Bounds | None:
    if first is None or second is None:
        return None
    return min(first[0], second[0]), max(first[1], second[1]), first[2]


def _mirrored(bounds: _Bounds | None) -> _Bounds | None:
    return None if bounds is None else _hull(bounds, (-bounds[1], -bounds[0], bounds[2]))


def _combined(sign: int, first: _Bounds | None, second: _Bounds | None) -> _Bounds | None:
    if sign in _HULLS:
        return _hull(first, second)
    if first is None or second is None or sign not in (tables.ADD, tables.SUBTRACT):
        return None
    least, most = second[:2] if sign == tables.ADD else (-second[1], -second[0])
    least, most = first[0] + least, first[1] + most
    if max(-least, most) < 2**63:
        return least, most, first[2]
    problem = (
        "a sum or difference of times in a condition between rows may be too large: with the least and the largest "
        "values of its columns, it is beyond 292 years in nanoseconds"
    )
    raise PatternRefused("overflow", problem, first[2])
