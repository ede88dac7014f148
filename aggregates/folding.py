"""Values over windows that end as a whole: no event leaves them, so they keep a small state in place of the events.

Distinct values and quantiles are exact up to a number of values, and estimated by sketches from there on: HyperLogLog
and t-digest, which give equal results for equal events. KLL, which draws at random, does not.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import insort
from collections.abc import Sequence
from typing import Any

import orjson
from datasketches import hll_sketch, tdigest_double, tgt_hll_type

from aggregates.accumulators import Accumulator, Order, apart, plain
from aggregates.rows import Scalar

EXACT = 4_096
"""Up to this many different values, or numbers of a quantile, a result is exact."""

_HLL_BITS = 12
_DIGEST_SIZE = 200


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


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _text(value: Scalar) -> str:
    return orjson.dumps(plain(value)).decode()
