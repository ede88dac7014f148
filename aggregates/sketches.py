"""Estimates of distinct values and quantiles in windows that end as a whole and hold many values.

HyperLogLog and t-digest give equal results for equal events. KLL, which draws at random, does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from bisect import insort
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import orjson
from datasketches import hll_sketch, tdigest_double, tgt_hll_type

from aggregates.rows import Scalar, normal_value

EXACT = 4_096
"""Up to this many different values, or numbers of a quantile, a result is exact, and no sketch is made."""

_HLL_BITS = 12
_DIGEST_SIZE = 200
_MOST_INTEGER = 2.0**63


class Sketch(ABC):
    """An estimate over some arguments.

    Attributes:
        error: The relative standard error of the value; None: it has no bound.
    """

    __slots__ = ()
    error: float | None = None

    @abstractmethod
    def add(self, argument: Scalar) -> None:
        """Take an argument in."""

    @abstractmethod
    def value(self) -> Scalar:
        """The estimate."""

    @abstractmethod
    def dump(self) -> list[Any]:
        """The state as plain JSON."""

    @abstractmethod
    def load(self, state: Sequence[Any]) -> None:
        """Restore what ``dump`` returned."""


class DistinctSketch(Sketch):
    """The number of different values."""

    __slots__ = ("_sketch",)
    error = -hll_sketch.get_rel_err(True, False, _HLL_BITS, 1)

    def __init__(self) -> None:
        self._sketch = hll_sketch(_HLL_BITS, tgt_hll_type.HLL_8)

    def add(self, argument: Scalar) -> None:
        if isinstance(argument, float) and argument.is_integer() and abs(argument) < _MOST_INTEGER:
            argument = int(argument)
        self._sketch.update(orjson.dumps(argument).decode())

    def value(self) -> int:
        return round(float(self._sketch.get_estimate()))

    def dump(self) -> list[Any]:
        return [b64encode(self._sketch.serialize_updatable()).decode()]

    def load(self, state: Sequence[Any]) -> None:
        self._sketch = hll_sketch.deserialize(b64decode(state[0]))


class QuantileSketch(Sketch):
    """The least number that a share of the numbers does not exceed."""

    __slots__ = ("_digest", "_share", "_sorted")

    def __init__(self, share: Fraction) -> None:
        self._share = float(share)
        self._sorted: list[float] = []  # those that the digest does not have yet
        self._digest = tdigest_double(_DIGEST_SIZE)

    def add(self, argument: Any) -> None:
        insort(self._sorted, argument)
        if len(self._sorted) > EXACT:
            self._digest = self._with_all()
            self._sorted.clear()

    def _with_all(self) -> tdigest_double:
        """A digest of all numbers."""
        found = tdigest_double.deserialize(self._digest.serialize())
        for number in self._sorted:
            found.update(float(number))
        found.compress()  # a saved digest is compressed, so this one is, too
        return found

    def value(self) -> Scalar:
        digest = self._with_all()
        found = digest.get_quantile(self._share)
        return normal_value(min(max(found, digest.get_min_value()), digest.get_max_value()))

    def dump(self) -> list[Any]:
        return [self._sorted, b64encode(self._digest.serialize()).decode()]

    def load(self, state: Sequence[Any]) -> None:
        self._sorted, self._digest = list(state[0]), tdigest_double.deserialize(b64decode(state[1]))
