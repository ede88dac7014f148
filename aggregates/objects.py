"""The values of groups that are objects, because kernels do not compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aggregates.accumulators import (
    Accumulator,
    Deviation,
    Distinct,
    Extreme,
    FoldedDistinct,
    FoldedExtreme,
    FoldedQuantile,
    Order,
    Ordered,
    Quantile,
)
from aggregates.values import AggregateValue

Found: TypeAlias = tuple[Sequence[Any], Sequence[Mapping[str, Any]], Mapping[str, float]]
"""The values of a group, what it shows of its newest events, and the errors of values that are estimated, by name."""


class GroupObjects:
    """The objects of all groups.

    Args:
        values: The values.
        places: Those of them that are objects.
        arguments: The place of each of their arguments among those of an event.
        events: The number of the newest events that are shown.
        leaves: Whether events leave windows; otherwise windows are emptied as a whole.
    """

    def __init__(
        self,
        values: Sequence[AggregateValue],
        places: Sequence[int],
        arguments: Sequence[int],
        events: int,
        *,
        leaves: bool,
    ) -> None:
        self.places = places
        self._values, self._arguments, self._events, self._leaves = values, arguments, events, leaves
        self._of: dict[int, list[Accumulator]] = {}

    def of(self, code: int) -> list[Accumulator]:
        """The objects of a group, new ones if it has none."""
        found = self._of.get(code)
        if found is None:
            found = [accumulator_of(self._values[place], leaves=self._leaves) for place in self.places]
            if self._events:
                found.append(Ordered("events", self._events, leaves=self._leaves))
            self._of[code] = found
        return found

    def add(self, code: int, arguments: Sequence[Any], order: Order) -> None:
        """Add an event; its last argument is what derived events show of it."""
        for one, place in zip(self.of(code), self._arguments, strict=True):
            one.add(arguments[place], order)

    def remove(self, code: int, arguments: Sequence[Any], order: Order) -> None:
        """Remove an event."""
        for one, place in zip(self.of(code), self._arguments, strict=True):
            one.remove(arguments[place], order)

    def values(self, code: int) -> Found:
        """The current values of a group."""
        some = self.of(code)
        values = [one.value() for one in some]
        named = zip(self.places, some, strict=False)
        errors = {self._values[place].name: one.error for place, one in named if one.error is not None}
        return (values[:-1], values[-1], errors) if self._events else (values, (), errors)

    def forget(self, code: int) -> None:
        """Forget the objects of a group without events."""
        self._of.pop(code, None)

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the objects of groups; codes close up."""
        codes = (np.cumsum(is_kept) - 1).tolist()
        self._of = {codes[code]: some for code, some in self._of.items() if is_kept[code]}

    def dump(self) -> list[Any]:
        """The objects whose events never leave, as plain JSON."""
        return [[code, [one.dump() for one in some]] for code, some in self._of.items()]


def accumulator_of(value: AggregateValue, *, leaves: bool) -> Accumulator:
    """A new object of a value."""
    parts, of, is_max = value.share.numerator, value.share.denominator, value.function == "max"
    match value.function:
        case "quantile":
            return Quantile(parts, of) if leaves else FoldedQuantile(parts, of)
        case "distinct":
            return Distinct() if leaves else FoldedDistinct()
        case "stddev":
            return Deviation()
        case "first" | "last":
            return Ordered(value.function, leaves=leaves)
        case _:
            return Extreme(is_max=is_max) if leaves else FoldedExtreme(is_max=is_max)
