"""The objects of groups: sketches of values, and the newest events, which derived events list.

The sketches are HyperLogLog and t-digest of a library, because they give equal results for equal events. KLL is not
used, because it is randomised. The listed events are JSON documents.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import insort
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson
from datasketches import hll_sketch, tdigest_double, tgt_hll_type
from numpy.typing import NDArray

from aggregates.scalars import Scalar, canonical
from aggregates.values import AggregateValue

Order: TypeAlias = tuple[int, int]
"""Time of an event, and its number in the order of processing."""

EXACT = 4_096
"""The most distinct values, or numbers of a quantile, for which a result is exact, without a sketch."""

_HLL_BITS = 12
_DIGEST_SIZE = 200
_MOST_INTEGER = 2.0**63


class DistinctSketch:
    """A sketch (HyperLogLog) that estimates the number of distinct arguments of a value.

    Attributes:
        error: The relative standard error of the estimate.
    """

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
        """Return the state as plain JSON."""
        return [b64encode(self._sketch.serialize_updatable()).decode()]

    def load(self, state: Sequence[Any]) -> None:
        self._sketch = hll_sketch.deserialize(b64decode(state[0]))


class QuantileSketch:
    """A sketch (t-digest) that estimates a quantile of the numbers added to it. No bound of its error is known.

    The quantile is the least number that a given share of the numbers does not exceed.
    """

    error = None

    def __init__(self, share: Fraction) -> None:
        self._share = float(share)
        self._sorted: list[float] = []  # numbers that the digest lacks so far
        self._digest = tdigest_double(_DIGEST_SIZE)

    def add(self, argument: Any) -> None:
        insort(self._sorted, argument)
        if len(self._sorted) > EXACT:
            self._digest = self._with_all()
            self._sorted.clear()

    def _with_all(self) -> tdigest_double:
        sketch = tdigest_double.deserialize(self._digest.serialize())
        for number in self._sorted:
            sketch.update(float(number))
        sketch.compress()  # as a saved digest is compressed
        return sketch

    def value(self) -> Scalar:
        digest = self._with_all()
        quantile = digest.get_quantile(self._share)
        return canonical(min(max(quantile, digest.get_min_value()), digest.get_max_value()))

    def dump(self) -> list[Any]:
        """Return the state as plain JSON."""
        return [self._sorted, b64encode(self._digest.serialize()).decode()]

    def load(self, state: Sequence[Any]) -> None:
        self._sorted, self._digest = list(state[0]), tdigest_double.deserialize(b64decode(state[1]))


Sketch: TypeAlias = DistinctSketch | QuantileSketch


class GroupDetails(NamedTuple):
    """What a group has besides its exact values at one time: estimates of sketches, and listed events.

    Attributes:
        estimates: Estimated values, by index of the value in the aggregate.
        events: The newest events, as derived events list them.
        errors: Relative standard errors of estimates, by name of the value.
    """

    estimates: Mapping[int, Scalar] = {}
    events: Sequence[Mapping[str, Any]] = ()
    errors: Mapping[str, float] = {}


class GroupObjects:
    """The sketches and the newest events of all groups, by code of the group.

    Args:
        values: The values of the aggregate.
        most: The number of newest events that derived events list.
        leaves: Whether an event can leave a window before the window ends. If so, all events of a window are kept,
            because an older event may take the place of an event that leaves.
    """

    def __init__(self, values: Sequence[AggregateValue], most: int, *, leaves: bool) -> None:
        self._values, self._most, self._leaves = values, most, leaves
        self._sketches: dict[int, dict[int, Sketch]] = {}
        self._events: dict[int, list[tuple[Order, Mapping[str, Any]]]] = {}  # by group, sorted

    def add(self, code: int, order: Order, members: Mapping[str, Any]) -> None:
        """Add the members of an event that derived events may list. Events of a group are sorted by ``order``."""
        held = self._events.setdefault(code, [])
        place = len(held)
        while place and held[place - 1][0] > order:
            place -= 1
        held.insert(place, (order, members))
        if not self._leaves:
            del held[: -self._most]

    def remove(self, code: int, order: Order) -> None:
        held = self._events[code]
        del held[next(place for place, entry in enumerate(held) if entry[0] == order)]

    def sketch(self, code: int, place: int, argument: Scalar) -> None:
        """Add an argument to a group's sketch of the value with index ``place``."""
        self._sketch_of(code, place).add(argument)

    def _sketch_of(self, code: int, place: int) -> Sketch:
        value, some = self._values[place], self._sketches.setdefault(code, {})
        if place not in some:
            some[place] = DistinctSketch() if value.function == "distinct" else QuantileSketch(value.share)
        return some[place]

    def values(self, code: int) -> GroupDetails:
        """Return the current estimates of a group with their errors, and its newest events."""
        some = self._sketches.get(code, {})
        errors = {self._values[place].name: sketch.error for place, sketch in some.items() if sketch.error is not None}
        events = [event for _, event in self._events.get(code, ())[-self._most :]] if self._most else ()
        return GroupDetails({place: sketch.value() for place, sketch in some.items()}, events, errors)

    def forget(self, code: int) -> None:
        """Forget the sketches and listed events of a group whose window is empty."""
        self._sketches.pop(code, None)
        self._events.pop(code, None)

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the groups outside the mask ``is_kept``, and renumber the other groups without gaps."""
        codes = (np.cumsum(is_kept) - 1).tolist()
        self._sketches = {codes[code]: some for code, some in self._sketches.items() if is_kept[code]}
        self._events = {codes[code]: some for code, some in self._events.items() if is_kept[code]}

    def dump(self) -> list[Any]:
        """Return the sketches and listed events of all groups as plain JSON."""
        sketches = [
            [code, [[place, sketch.dump()] for place, sketch in some.items()]] for code, some in self._sketches.items()
        ]
        return [sketches, [*self._events.items()]]

    def load(self, saved: Sequence[Any]) -> None:
        for code, some in saved[0]:
            for place, state in some:
                self._sketch_of(code, place).load(state)
        self._events = {code: [(tuple(order), event) for order, event in some] for code, some in saved[1]}
