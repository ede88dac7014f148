"""Lives of keys as each input of a join observes them, and the mean stay of their events."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from joins.costs.formulas import mean_stay_us, purge_time_us
from joins.items import Item


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The observations of a finished key in one input.

    Attributes:
        life_us: Time from the first event to the closing of the key by this input. Without closing, to the last event.
        lag: Time from the key's first event until the key's events could no longer join, divided by the life.
        stay_us: Mean time that an event of the key remains in the state of the join (Eq. 6.1).
    """

    events: int
    life_us: float
    lag: float
    stay_us: float


@dataclass(slots=True)
class SeenKey:
    """The observations of one unfinished key. Each list has one entry for each input of the join.

    Times are in microseconds. For an input without events, ``first`` is infinite and ``last`` is minus infinite.
    ``closed`` is infinite until the input closes the key.
    """

    first: list[float]
    last: list[float]
    closed: list[float]
    events: list[int]

    @classmethod
    def of(cls, inputs: int) -> SeenKey:
        """Create the observations of a key in a join with this number of inputs, without events or closings."""
        return cls([math.inf] * inputs, [-math.inf] * inputs, [math.inf] * inputs, [0] * inputs)

    def see(self, kind: int, number: int, time_us: int) -> None:
        """Note an item of the key: an event in input ``number``, or the closing of the key by this input.

        Other kinds (``Item``) are ignored.
        """
        if kind == Item.EVENT:
            self.first[number] = min(self.first[number], time_us)
            self.last[number] = time_us
            self.events[number] += 1
        elif kind in (Item.CLOSING, Item.KNOWN):
            self.closed[number] = min(self.closed[number], time_us)

    def records(self, windows: Sequence[float], optional: Collection[int] = ()) -> Iterator[tuple[int, KeyRecord]]:
        """Yield the number and the ``KeyRecord`` of each input that has events of the key.

        ``windows`` are the lengths of the inputs' windows in microseconds, or infinity. Combinations may lack
        ``optional`` inputs. So events become useless when an optional input closes the key, but not when its events
        leave the window.
        """
        inputs = range(len(windows))
        for number in inputs:
            if not self.events[number]:
                continue
            others = [other for other in inputs if other != number]
            useless = purge_time_us(
                [self.closed[other] for other in others],
                [math.inf if other in optional else self.last[other] + windows[other] for other in others],
            )
            yield number, _record(self, number, useless, windows[number])


def _record(seen_key: SeenKey, number: int, useless_us: float, window: float) -> KeyRecord:
    first, closed = seen_key.first[number], seen_key.closed[number]
    life = max((seen_key.last[number] if math.isinf(closed) else closed) - first, 1.0)
    lag = (useless_us - first) / life
    is_unbounded = math.isinf(lag) and lag > 0 and math.isinf(window)
    stay = math.inf if is_unbounded else mean_stay_us(life, lag, window)
    return KeyRecord(seen_key.events[number], life, lag, stay)
