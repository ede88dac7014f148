"""Values that kernels do not compute, as objects: each depends only on the events in the window.

Nulls are as in SQL. Values that a function cannot use (a text in a deviation) are null. Squares are kept as whole
numbers of 2**-2148, the square of the distance between the smallest floats, so that no order of additions and removals
changes them.

Windows that end as a whole lose no event, so their values keep a small state (``Folded...``). Distinct values and
quantiles are exact up to a number of values there, and estimated by sketches from there on: HyperLogLog and t-digest,
which give equal results for equal events. KLL, which draws at random, does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import sqrt
from typing import Any, TypeAlias

import orjson
from datasketches import hll_sketch, tdigest_double, tgt_hll_type

from aggregates.rows import Scalar

Order: TypeAlias = tuple[int, int]
"""Time of an event, and its number in the order of taking in."""

EXACT = 4_096
"""Up to this many different values, or numbers of a quantile, a result is exact."""

_HLL_BITS = 12
_DIGEST_SIZE = 200
_BITS = 1074
_MOST_GONE = 64


class Accumulator(ABC):
    """One value over some arguments."""

    __slots__ = ()

    @property
    def error(self) -> float | None:
        """The relative standard error of the value; None: it is exact."""
        return None

    @abstractmethod
    def add(self, argument: Any, order: Order) -> None:
        """Take an argument in."""

    def remove(self, argument: Any, order: Order) -> None:
        """Remove an argument; values whose events never leave do not support it."""
        raise NotImplementedError

    @abstractmethod
    def value(self) -> Any:
        """The value over the current arguments."""

    def dump(self) -> list[Any]:
        """The state as plain JSON, of values whose events never leave."""
        raise NotImplementedError

    def load(self, state: Sequence[Any]) -> None:
        """Restore what ``dump`` returned."""
        raise NotImplementedError


class Deviation(Accumulator):
    """The standard deviation of a sample; null for fewer than two numbers."""

    __slots__ = ("_number", "_squares", "_total")

    def __init__(self) -> None:
        self._number = self._total = self._squares = 0  # in 2**-1074, and 2**-2148

    def add(self, argument: Any, order: Order) -> None:
        self._change(argument, 1)

    def remove(self, argument: Any, order: Order) -> None:
        self._change(argument, -1)

    def _change(self, argument: Any, sign: int) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            parts = argument << _BITS if isinstance(argument, int) else in_parts(argument)
            self._number += sign
            self._total += sign * parts
            self._squares += sign * parts * parts

    def value(self) -> Scalar:
        number = self._number
        if number < 2:
            return None
        squares = number * self._squares - self._total * self._total
        variance = divided(squares, number * (number - 1) << 2 * _BITS)
        return None if variance is None else sqrt(variance)

    def dump(self) -> list[Any]:
        return [self._number, f"{self._total:x}", f"{self._squares:x}"]

    def load(self, state: Sequence[Any]) -> None:
        self._number, self._total, self._squares = state[0], int(state[1], 16), int(state[2], 16)


class Ordered(Accumulator):
    """Arguments in the order of time: the first, the last, or those of the newest events.

    Args:
        function: ``first``, ``last`` or ``events``.
        most: The number of the newest events.
        leaves: Whether events may leave; if so, all arguments are kept.
    """

    __slots__ = ("_function", "_held", "_leaves", "_most")

    def __init__(self, function: str, most: int = 1, *, leaves: bool) -> None:
        self._function, self._most, self._leaves = function, most, leaves
        self._held: deque[tuple[Order, Any]] = deque()

    def add(self, argument: Any, order: Order) -> None:
        held, place = self._held, len(self._held)
        while place and held[place - 1][0] > order:
            place -= 1
        held.insert(place, (order, argument))
        if not self._leaves and len(held) > self._most:
            held.pop() if self._function == "first" else held.popleft()

    def remove(self, argument: Any, order: Order) -> None:
        if self._held[0][0] == order:
            self._held.popleft()
        else:
            del self._held[next(place for place, one in enumerate(self._held) if one[0] == order)]

    def value(self) -> Any:
        held = self._held
        if self._function == "events":
            return [held[place][1] for place in range(max(0, len(held) - self._most), len(held))]
        return held[0 if self._function == "first" else -1][1] if held else None

    def dump(self) -> list[Any]:
        return [list(self._held)]

    def load(self, state: Sequence[Any]) -> None:
        self._held = deque((tuple(order), argument) for order, argument in state[0])


class Extreme(Accumulator):
    """The least or greatest number or text; numbers are less than texts; null without any."""

    __slots__ = ("_counts", "_gone", "_heap", "_is_max")

    def __init__(self, *, is_max: bool) -> None:
        self._is_max = is_max
        self._counts: dict[Any, int] = {}
        self._heap: list[Any] = []  # every counted value, and some that left
        self._gone = 0  # values in the heap that left

    def add(self, argument: Any, order: Order) -> None:
        if argument is None or isinstance(argument, bool):
            return
        known = self._counts.get(argument)
        self._counts[argument] = (known or 0) + 1
        if known is None:
            heappush(self._heap, self._placed(argument))
        elif known == 0:
            self._gone -= 1

    def remove(self, argument: Any, order: Order) -> None:
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

    def add(self, argument: Any, order: Order) -> None:
        if argument is not None:
            value = apart(argument)
            self._counts[value] = self._counts.get(value, 0) + 1

    def remove(self, argument: Any, order: Order) -> None:
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

    def add(self, argument: Any, order: Order) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            insort(self._sorted, argument)

    def remove(self, argument: Any, order: Order) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            del self._sorted[bisect_left(self._sorted, argument)]

    def value(self) -> Scalar:
        if not self._sorted:
            return None
        return plain(self._sorted[-(-self._parts * len(self._sorted) // self._of) - 1])


class FoldedExtreme(Accumulator):
    """The least or greatest number or text; numbers are less than texts."""

    __slots__ = ("_best", "_is_max")

    def __init__(self, *, is_max: bool) -> None:
        self._is_max = is_max
        self._best: int | float | str | None = None

    def add(self, argument: Any, order: Order) -> None:
        if argument is None or isinstance(argument, bool):
            return
        if self._best is None or (_order(argument) > _order(self._best)) == self._is_max:
            self._best = argument

    def value(self) -> Scalar:
        return plain(self._best)

    def dump(self) -> list[Any]:
        return [self._best]

    def load(self, state: Sequence[Any]) -> None:
        (self._best,) = state


class FoldedDistinct(Accumulator):
    """The number of different values that are not null: counted up to ``EXACT``, estimated beyond."""

    __slots__ = ("_sketch", "_values")

    def __init__(self) -> None:
        self._values: dict[Any, Scalar] = {}
        self._sketch: hll_sketch | None = None

    @property
    def error(self) -> float | None:
        """The relative standard error of an estimate; None: the number is exact."""
        return None if self._sketch is None else hll_sketch.get_rel_err(True, False, _HLL_BITS, 1) * -1

    def add(self, argument: Any, order: Order) -> None:
        if argument is None:
            return
        if self._sketch is not None:
            self._sketch.update(_text(argument))
            return
        self._values.setdefault(apart(argument), argument)
        if len(self._values) > EXACT:
            self._sketch = hll_sketch(_HLL_BITS, tgt_hll_type.HLL_8)
            for value in self._values.values():
                self._sketch.update(_text(value))
            self._values.clear()

    def value(self) -> int:
        return len(self._values) if self._sketch is None else round(self._sketch.get_estimate())

    def dump(self) -> list[Any]:
        sketch = None if self._sketch is None else b64encode(self._sketch.serialize_updatable()).decode()
        return [list(self._values.values()), sketch]

    def load(self, state: Sequence[Any]) -> None:
        values, sketch = state
        self._values = {apart(value): value for value in values}
        self._sketch = None if sketch is None else hll_sketch.deserialize(b64decode(sketch))


class FoldedQuantile(Accumulator):
    """The least number that a share of the numbers does not exceed: exact up to ``EXACT`` numbers, estimated beyond."""

    __slots__ = ("_digest", "_of", "_parts", "_sorted")

    def __init__(self, parts: int, of: int) -> None:
        self._parts, self._of = parts, of
        self._sorted: list[float] = []  # those that the digest does not have yet
        self._digest: tdigest_double | None = None

    def add(self, argument: Any, order: Order) -> None:
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            insort(self._sorted, argument)
            if len(self._sorted) > EXACT:
                self._digest = self._with_all()
                self._sorted.clear()

    def _with_all(self) -> tdigest_double:
        """A digest of all numbers."""
        found = tdigest_double(_DIGEST_SIZE)
        if self._digest is not None:
            found = tdigest_double.deserialize(self._digest.serialize())
        for number in self._sorted:
            found.update(float(number))
        found.compress()  # a saved digest is compressed, so this one is, too
        return found

    def value(self) -> Scalar:
        if self._digest is not None:
            digest = self._with_all()
            found = digest.get_quantile(self._parts / self._of)
            return plain(min(max(found, digest.get_min_value()), digest.get_max_value()))
        if not self._sorted:
            return None
        return plain(self._sorted[-(-self._parts * len(self._sorted) // self._of) - 1])

    def dump(self) -> list[Any]:
        digest = None if self._digest is None else b64encode(self._digest.serialize()).decode()
        return [self._sorted, digest]

    def load(self, state: Sequence[Any]) -> None:
        numbers, digest = state
        self._sorted = list(numbers)
        self._digest = None if digest is None else tdigest_double.deserialize(b64decode(digest))


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


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _text(value: Scalar) -> str:
    return orjson.dumps(plain(value)).decode()
