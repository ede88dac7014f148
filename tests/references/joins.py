"""Reference implementation of a join, slow and obvious: it keeps every event and examines all combinations.

Source: section 6.1 of the specification of punctuation-aware joins (the brute-force oracle), with half-open windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from joins.items import UNKEYED, Item, Why
from joins.windowed import Window


@dataclass(frozen=True, slots=True)
class ReferenceEvent:
    """An event of a reference join; places count from 0."""

    sequence: int
    number: int
    key: int | None
    time_us: int
    place: int  # among all events of its input


@dataclass
class ReferenceJoin:
    """The reference for ``WindowJoin``, which must give the same results.

    Attributes:
        outer: Inputs whose events are reported when they joined nothing and no longer can.
        holds: Whether the condition holds in a combination, by the sequence numbers of its events.
        results: Results reported so far, as (time, sequence numbers).
        retracted: Places of results that were retracted.
    """

    windows: Sequence[Window]
    outer: Sequence[int] = ()
    holds: Callable[[tuple[int, ...]], bool] = lambda _: True
    results: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    whys: list[Why] = field(default_factory=list)
    retracted: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    violations: list[int] = field(default_factory=list)
    _events: list[ReferenceEvent] = field(default_factory=list)
    _taken: list[ReferenceEvent] = field(default_factory=list)
    _closings: set[tuple[int, int]] = field(default_factory=set)
    _reported: set[int] = field(default_factory=set)
    _gone: set[int] = field(default_factory=set)
    _now_us: int = -(2**62)

    def push(self, kind: Item, number: int, key: int, time_us: int) -> None:
        """Take an item in."""
        self._now_us = max(self._now_us, time_us)
        self._settle(Why.BY_WINDOW)
        if kind is Item.CLOSING:
            self._closings.add((number, key))
        elif kind is not Item.TIME:
            self._take(number, key if kind is Item.EVENT else None)
        self._settle(Why.BY_CLOSING if kind is Item.CLOSING else Why.BY_WINDOW, came=kind is Item.EVENT)

    def change(self, windows: Sequence[Window]) -> None:
        """Use other windows from here on; events that could join nothing any more do not come back."""
        self._gone.update(event.sequence for event in self._taken if not self._may_join(event))
        self.windows = windows
        self._settle(Why.BY_WINDOW)

    def take_unkeyed(self, number: int, time_us: int) -> None:
        """Take in an event without a usable key, which joins nothing; report it alone if all others may be absent."""
        self.push(Item.TIME, 0, 0, time_us)
        sequence = len(self._events)
        self._take(number, None)
        if self._may_be_alone(number):
            alone = (sequence if one == number else UNKEYED for one in range(len(self.windows)))
            self.results.append((self._now_us, tuple(alone)))
            self.whys.append(Why.NO_KEY)

    def retract(self, sequence: int) -> None:
        """Retract an event, and the results that contain it.

        An event of an ``outer`` input that was in these results and is in no others counts as unjoined again. An event
        that has left its window does not come back, and a key that the event has closed stays closed.
        """
        event = next(event for event in self._taken if event.sequence == sequence)
        gone = {one.sequence for one in self._taken if not self._may_join(one)}
        self._gone |= gone
        self._taken.remove(event)
        standing = [place for place in range(len(self.results)) if place not in self.retracted]
        self.retracted += [place for place in standing if sequence in self.results[place][1]]
        self._reported = {one for place in standing for one in self.results[place][1] if place not in self.retracted}
        places = len(self.results)
        self._settle(Why.BY_CLOSING)
        for place, (_, members) in enumerate(self.results[places:], places):
            if gone.intersection(members):  # could no longer join anything before
                self.whys[place] = Why.BY_RETRACTION

    def held(self) -> set[int]:
        """Sequence numbers of the events that may still join."""
        return {event.sequence for event in self._taken if self._may_join(event)}

    def _may_be_alone(self, number: int) -> bool:
        """Whether an event of an input may be a combination alone."""
        return number in self.outer

    def _take(self, number: int, key: int | None) -> None:
        mine = [event for event in self._events if event.number == number]
        event = ReferenceEvent(
            sequence=len(self._events),
            number=number,
            key=key,
            time_us=self._now_us,
            place=len(mine),
        )
        self._events.append(event)
        if key is None:
            return
        if (number, key) in self._closings:
            self.violations.append(event.sequence)
            return
        if not self._is_over(key, but=event):
            self._join(event)
        self._taken.append(event)

    def _join(self, event: ReferenceEvent) -> None:
        """Report the combinations that a new event completes."""
        for combination in self._combinations(event):
            self._reported.update(combination)
            self.results.append((self._now_us, combination))
            self.whys.append(Why.LAST_EVENT)

    def _combinations(self, event: ReferenceEvent) -> Iterator[tuple[int, ...]]:
        """The combinations of an event with one event of every other input."""
        others = [
            [event]
            if number == event.number
            else [one for one in self._taken if (one.number, one.key) == (number, event.key) and self._is_inside(one)]
            for number in range(len(self.windows))
        ]
        combinations = (tuple(one.sequence for one in combination) for combination in product(*others))
        yield from filter(self.holds, combinations)

    def _is_inside(self, event: ReferenceEvent) -> bool:
        """Whether an event is in its window, and has not left it before."""
        if event.sequence in self._gone:
            return False
        window, mine = self.windows[event.number], [one for one in self._events if one.number == event.number]
        if window.kind == "time":
            return self._now_us - event.time_us < window.size
        if window.kind == "events":
            return len(mine) - event.place <= window.size
        if window.kind == "events-of-key":
            mine = [one for one in self._taken if (one.number, one.key) == (event.number, event.key)]
            return sum(one.sequence >= event.sequence for one in mine) <= window.size
        return True

    def _has_closed(self, number: int, key: int | None) -> bool:
        return (number, key) in self._closings

    def _is_over(self, key: int | None, but: ReferenceEvent | None = None) -> bool:
        """Whether no combination can contain a key any more: an input closed it and has no event of it in its window.

        The event ``but`` is ignored.
        """
        inputs = range(len(self.windows))
        return all(self._has_closed(number, key) for number in inputs) or any(
            self._has_closed(number, key)
            and not any(
                one.key == key and one is not but and self._is_inside(one)
                for one in self._taken
                if one.number == number
            )
            for number in inputs
        )

    def _may_join(self, event: ReferenceEvent) -> bool:
        """Whether a later event could join an event."""
        return self._is_inside(event) and not self._is_over(event.key) and not self._have_others_closed(event)

    def _have_others_closed(self, event: ReferenceEvent) -> bool:
        others = [number for number in range(len(self.windows)) if number != event.number]
        return all(self._has_closed(number, event.key) for number in others)

    def _settle(self, why: Why, *, came: bool = False) -> None:
        """Report events that can no longer join, and keys that are over; ``why`` is the reason to report.

        ``came``: the newest event has just come; if this event cannot join, its key was closed before.
        """
        for event in self._taken:
            if event.number in self.outer and event.sequence not in self._reported and not self._may_join(event):
                self._reported.add(event.sequence)
                alone = tuple(event.sequence if number == event.number else -1 for number in range(len(self.windows)))
                self.results.append((self._now_us, alone))
                is_closed = self._is_over(event.key, but=event) or self._have_others_closed(event)
                is_new = came and event.sequence == len(self._events) - 1
                self.whys.append(Why.BY_CLOSING if is_new and is_closed else why)
        for key in sorted({key for _, key in self._closings} - set(self.closed)):
            if self._is_over(key) and all(self._has_closed(number, key) for number in self.outer):
                self.closed.append(key)
