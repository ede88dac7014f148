"""The objects of groups: sketches of values, and events that derived events show.

Sketches are objects, because they are those of a library; events that are shown, because they are JSON documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aggregates.rows import Scalar
from aggregates.sketches import DistinctSketch, QuantileSketch, Sketch
from aggregates.values import AggregateValue

Order: TypeAlias = tuple[int, int]
"""Time of an event, and its number in the order of taking in."""


class Found(NamedTuple):
    """The objects of a group at a time.

    Attributes:
        estimates: Values that are estimated, by their places.
        events: What derived events show of the newest events.
        errors: The errors of estimates, by the names of the values.
    """

    estimates: Mapping[int, Scalar] = {}
    events: Sequence[Mapping[str, Any]] = ()
    errors: Mapping[str, float] = {}


class GroupObjects:
    """The objects of all groups.

    Args:
        values: The values.
        most: The number of the newest events that are shown.
        leaves: Whether events leave windows; if so, all events are kept.
    """

    def __init__(self, values: Sequence[AggregateValue], most: int, *, leaves: bool) -> None:
        self._values, self._most, self._leaves = values, most, leaves
        self._sketches: dict[int, dict[int, Sketch]] = {}
        self._events: dict[int, list[tuple[Order, Mapping[str, Any]]]] = {}  # in their order

    def add(self, code: int, order: Order, shown: Mapping[str, Any]) -> None:
        """Add an event that is shown."""
        held = self._events.setdefault(code, [])
        place = len(held)
        while place and held[place - 1][0] > order:
            place -= 1
        held.insert(place, (order, shown))
        if not self._leaves:
            del held[: -self._most]

    def remove(self, code: int, order: Order) -> None:
        """Remove an event."""
        held = self._events[code]
        del held[next(place for place, one in enumerate(held) if one[0] == order)]

    def sketch(self, code: int, place: int, argument: Scalar) -> None:
        """Add an argument to the sketch of a value."""
        self._sketch_of(code, place).add(argument)

    def _sketch_of(self, code: int, place: int) -> Sketch:
        value, some = self._values[place], self._sketches.setdefault(code, {})
        if place not in some:
            some[place] = DistinctSketch() if value.function == "distinct" else QuantileSketch(value.share)
        return some[place]

    def values(self, code: int) -> Found:
        """The current objects of a group."""
        some = self._sketches.get(code, {})
        errors = {self._values[place].name: one.error for place, one in some.items() if one.error is not None}
        events = [event for _, event in self._events.get(code, ())[-self._most :]] if self._most else ()
        return Found({place: one.value() for place, one in some.items()}, events, errors)

    def forget(self, code: int) -> None:
        """Forget the objects of a group without events."""
        self._sketches.pop(code, None)
        self._events.pop(code, None)

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the objects of groups; codes close up."""
        codes = (np.cumsum(is_kept) - 1).tolist()
        self._sketches = {codes[code]: some for code, some in self._sketches.items() if is_kept[code]}
        self._events = {codes[code]: some for code, some in self._events.items() if is_kept[code]}

    def dump(self) -> list[Any]:
        """As plain JSON."""
        sketches = [
            [code, [[place, one.dump()] for place, one in some.items()]] for code, some in self._sketches.items()
        ]
        return [sketches, [*self._events.items()]]

    def load(self, saved: Sequence[Any]) -> None:
        """Restore what ``dump`` returned."""
        for code, some in saved[0]:
            for place, state in some:
                self._sketch_of(code, place).load(state)
        self._events = {code: [(tuple(order), event) for order, event in some] for code, some in saved[1]}
