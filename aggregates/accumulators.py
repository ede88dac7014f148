"""Values over events that come and go: each is exact, and depends only on the events that are in.

Nulls are as in SQL: they count in ``count()`` only. Values that a function cannot use (a text in a sum) are null. Sums
are kept as whole numbers of 2**-1074, the distance between the smallest floats, so that no order of additions and
removals changes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import sqrt
from typing import Any

from aggregates.rows import Scalar
from aggregates.values import AggregateValue

_BITS = 1074
_MOST_INTEGER = 2**63
_MOST_GONE = 64


class Accumulator(ABC):
    """One value over some arguments."""

    __slots__ = ()

    @abstractmethod
    def add(self, argument: Scalar) -> None:
        """Take an argument in."""

    @abstractmethod
    def remove(self, argument: Scalar) -> None:
        """Take an argument out that is in."""

    @abstractmethod
    def value(self) -> Scalar:
        """The value over the arguments that are in."""


class Foldable(ABC):
    """A value over arguments that never leave, with a small state."""

    __slots__ = ()

    @property
    def error(self) -> float | None:
        """The relative standard error of the value; None: it is exact."""
        return None

    @abstractmethod
    def add(self, argument: Scalar) -> None:
        """Take an argument in."""

    @abstractmethod
    def value(self) -> Scalar:
        """The value over all arguments."""

    @abstractmethod
    def dump(self) -> list[Any]:
        """The state, as plain JSON."""

    @abstractmethod
    def load(self, state: Sequence[Any]) -> None:
        """Restore what ``dump`` returned."""


def accumulator_of(value: AggregateValue) -> Accumulator | None:
    """A new accumulator; None: the value is read from the first or last event itself."""
    match value.function:
        case "first" | "last":
            return None
        case "quantile":
            return Quantile(value.share.numerator, value.share.denominator)
        case "min" | "max":
            return Extreme(is_max=value.function == "max")
        case "count":
            return Count()
        case "count_if":
            return CountTrue()
        case "sum":
            return Sum()
        case "avg":
            return Average()
        case "stddev":
            return Deviation()
        case "distinct":
            return Distinct()


class Count(Accumulator, Foldable):
    """The number of arguments that are not null."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 0

    def add(self, argument: Scalar) -> None:
        self._number += argument is not None

    def remove(self, argument: Scalar) -> None:
        self._number -= argument is not None

    def value(self) -> int:
        return self._number

    def dump(self) -> list[Any]:
        return [self._number]

    def load(self, state: Sequence[Any]) -> None:
        (self._number,) = state


class CountTrue(Count):
    """The number of arguments that are true."""

    __slots__ = ()

    def add(self, argument: Scalar) -> None:
        self._number += argument is True

    def remove(self, argument: Scalar) -> None:
        self._number -= argument is True


class Sum(Accumulator, Foldable):
    """The sum of the numbers; null without any."""

    __slots__ = ("_number", "_parts", "_whole")

    def __init__(self) -> None:
        self._number = self._whole = 0
        self._parts = 0  # in 2**-1074

    def add(self, argument: Scalar) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            self._number += 1
            self._change(argument, 1)

    def remove(self, argument: Scalar) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            self._number -= 1
            self._change(argument, -1)

    def _change(self, number: float, sign: int) -> None:
        if isinstance(number, int):
            self._whole += sign * number
        else:
            self._parts += sign * in_parts(number)

    @property
    def total(self) -> int:
        """The sum, in 2**-1074."""
        return (self._whole << _BITS) + self._parts

    def value(self) -> Scalar:
        if not self._number:
            return None
        if not self._parts:
            return self._whole if -_MOST_INTEGER <= self._whole < _MOST_INTEGER else float(self._whole)
        return divided(self.total, 1 << _BITS)

    def dump(self) -> list[Any]:
        return [self._number, f"{self._whole:x}", f"{self._parts:x}"]

    def load(self, state: Sequence[Any]) -> None:
        self._number, self._whole, self._parts = state[0], int(state[1], 16), int(state[2], 16)


class Average(Sum):
    """The mean of the numbers, as float; null without any."""

    __slots__ = ()

    def value(self) -> Scalar:
        return divided(self.total, self._number << _BITS) if self._number else None


class Deviation(Average):
    """The standard deviation of a sample; null for fewer than two numbers."""

    __slots__ = ("_squares",)

    def __init__(self) -> None:
        super().__init__()
        self._squares = 0  # in 2**-2148

    def _change(self, number: float, sign: int) -> None:
        super()._change(number, sign)
        parts = number << _BITS if isinstance(number, int) else in_parts(number)
        self._squares += sign * parts * parts

    def value(self) -> Scalar:
        number = self._number
        if number < 2:
            return None
        squares = number * self._squares - self.total * self.total
        variance = divided(squares, number * (number - 1) << 2 * _BITS)
        return None if variance is None else sqrt(variance)

    def dump(self) -> list[Any]:
        return [*super().dump(), f"{self._squares:x}"]

    def load(self, state: Sequence[Any]) -> None:
        super().load(state)
        self._squares = int(state[3], 16)


class Extreme(Accumulator):
    """The least or greatest number or text; numbers are less than texts; null without any."""

    __slots__ = ("_counts", "_gone", "_heap", "_is_max")

    def __init__(self, *, is_max: bool) -> None:
        self._is_max = is_max
        self._counts: dict[Any, int] = {}
        self._heap: list[Any] = []  # every counted value, and some that left
        self._gone = 0  # values in the heap that left

    def add(self, argument: Scalar) -> None:
        if argument is None or isinstance(argument, bool):
            return
        known = self._counts.get(argument)
        self._counts[argument] = (known or 0) + 1
        if known is None:
            heappush(self._heap, self._placed(argument))
        elif known == 0:
            self._gone -= 1

    def remove(self, argument: Scalar) -> None:
        if argument is None or isinstance(argument, bool):
            return
        self._counts[argument] -= 1
        if not self._counts[argument]:
            self._gone += 1
            if self._gone > _MOST_GONE and 2 * self._gone > len(self._heap):
                self._counts = {value: number for value, number in self._counts.items() if number}
                self._heap = [self._placed(value) for value in self._counts]
                heapify(self._heap)
                self._gone = 0

    def value(self) -> Scalar:
        while self._heap and not self._counts[self._heap[0].value]:
            del self._counts[heappop(self._heap).value]
            self._gone -= 1
        return plain(self._heap[0].value) if self._heap else None

    def _placed(self, value: Any) -> _Least:
        return _Greatest(value) if self._is_max else _Least(value)


class _Least:
    """A number or text in a heap."""

    __slots__ = ("order", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.order = (isinstance(value, str), value)

    def __lt__(self, other: _Least) -> bool:
        return self.order < other.order


class _Greatest(_Least):
    __slots__ = ()

    def __lt__(self, other: _Least) -> bool:
        return self.order > other.order


class Distinct(Accumulator):
    """The number of different values that are not null."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}

    def add(self, argument: Scalar) -> None:
        if argument is not None:
            value = apart(argument)
            self._counts[value] = self._counts.get(value, 0) + 1

    def remove(self, argument: Scalar) -> None:
        if argument is not None:
            value = apart(argument)
            self._counts[value] -= 1
            if not self._counts[value]:
                del self._counts[value]

    def value(self) -> int:
        return len(self._counts)


class Quantile(Accumulator):
    """The least number that a share of the numbers does not exceed (``percentile_disc`` of SQL); null without any."""

    __slots__ = ("_of", "_parts", "_sorted")

    def __init__(self, parts: int, of: int) -> None:
        self._parts, self._of = parts, of
        self._sorted: list[float] = []

    def add(self, argument: Scalar) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            insort(self._sorted, argument)

    def remove(self, argument: Scalar) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            del self._sorted[bisect_left(self._sorted, argument)]

    def value(self) -> Scalar:
        if not self._sorted:
            return None
        return plain(self._sorted[-(-self._parts * len(self._sorted) // self._of) - 1])


def in_parts(number: float) -> int:
    """A float as a whole number of 2**-1074."""
    numerator, denominator = number.as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())


def divided(numerator: int, denominator: int) -> float | None:
    """The nearest float; None beyond the range of floats."""
    try:
        return numerator / denominator
    except OverflowError:
        return None


def plain(value: Any) -> Scalar:
    """A value as it is emitted: whole numbers without a decimal point, as 1 and 1.0 are equal."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def apart(argument: Scalar) -> Any:
    """A value that differs from values of other kinds: true is not 1."""
    return (argument,) if isinstance(argument, bool) else argument
