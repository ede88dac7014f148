"""Punctuations made by a buffer: events are held for a short time, described, and released.

Source: section 7.4 (b) of the specification of punctuation-aware joins. A positive finite punctuation precedes each
batch, as its events are known. Where keys rise and are out of order by a known distance at most, a punctuation that
finishes the keys up to the low mark (a heartbeat) follows the batch. An event below an announced low mark is not
released, so no punctuation is broken, whether or not the bound of disorder is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.items import Item, ItemColumns
from literature.punctuations.hints import FinitePunctuation, Scope
from literature.punctuations.patterns import OneOf, Pattern, Range

_LEAST = -(1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferRules:
    """How long events are held, and how punctuations describe them.

    Attributes:
        events: Number of events at which a batch is released; None: no bound.
        us: A batch is released before an item that is later than its first event by this much; None: no bound.
        order: Of the events in a batch. ``arrival``: as they arrived. ``sorted``: by key. ``partitioned``: by key, and
            each key is announced by itself.
        names: Whether ``bounds`` (least and greatest) or ``values`` of the keys are announced.
        disorder: How far a key may be below the greatest key so far; None: unknown.
    """

    events: int | None = None
    us: int | None = None
    order: Literal["arrival", "sorted", "partitioned"] = "arrival"
    names: Literal["bounds", "values"] = "bounds"
    disorder: int | None = None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.events, self.us) if bound is not None]
        if min(bounds, default=0) < 1:
            raise ValueError(f"a buffer holds a number of events or a time, at least 1; got {bounds}")
        if self.disorder is not None and self.disorder < 0:
            raise ValueError(f"disorder is not negative, got {self.disorder}")


class Finished(NamedTuple):
    """A punctuation: no event with a key up to ``to`` comes any more."""

    to: int

    @property
    def pattern(self) -> Range:
        """The finished keys."""
        return Range(high=self.to)


Announcement: TypeAlias = FinitePunctuation | Finished


class HeldEvent(NamedTuple):
    """An event: its sequence number, its key (None: it has no key) and time."""

    sequence: int
    key: int | None
    time_us: int


@dataclass(slots=True)
class Released:
    """The output of a buffer.

    Attributes:
        events: Events, in the order of their release.
        said: Punctuations, each with the place among ``events`` that it precedes.
        late: Events of keys that were already announced as finished; they broke the bound of disorder.
    """

    events: list[HeldEvent] = field(default_factory=list)
    said: list[tuple[int, Announcement]] = field(default_factory=list)
    late: list[HeldEvent] = field(default_factory=list)

    def items(self, number: int) -> tuple[ItemColumns, list[Pattern]]:
        """Events and finished keys as items of an input of a join, and the patterns of its closings."""
        rows: list[tuple[Item, int, int, int]] = []
        patterns: list[Pattern] = []
        finished = [
            (place, announcement.pattern) for place, announcement in self.said if isinstance(announcement, Finished)
        ]
        now = 0
        for place in range(len(self.events) + 1):
            while finished and finished[0][0] == place:
                rows.append((Item.CLOSING, number, len(patterns), now))
                patterns.append(finished.pop(0)[1])
            if place < len(self.events):
                event = self.events[place]
                now = event.time_us
                kind = Item.PLACE if event.key is None else Item.EVENT
                rows.append((kind, number, (event.key or 0) % (1 << 64), now))
        return ItemColumns.of(rows), patterns

    def join(self, later: Released) -> None:
        """Append a later release."""
        self.said += [(len(self.events) + place, announcement) for place, announcement in later.said]
        self.events += later.events
        self.late += later.late


class BufferGenerator:
    """A buffer of the events of one input.

    Events without a key are released at once. The output does not depend on how events are cut into calls.
    """

    def __init__(self, rules: BufferRules) -> None:
        self._rules = rules
        self._held: list[HeldEvent] = []
        self._taken = 0
        self._greatest: int | None = None
        self._finished_to: int | None = None  # the greatest key that was announced as finished

    @property
    def held(self) -> int:
        """Events in the buffer."""
        return len(self._held)

    def push(self, keys: Sequence[int | None] | NDArray[np.int64], times_us: Sequence[int]) -> Released:
        """Take events in order; keys are integers, or None for an event without a key."""
        released = Released()
        for key, time_us in zip(keys, times_us, strict=True):
            self._release_old(time_us, released)
            event = HeldEvent(self._taken, None if key is None else int(key), int(time_us))
            self._taken += 1
            if event.key is None:
                released.events.append(event)
            elif self._finished_to is not None and event.key <= self._finished_to:
                released.late.append(event)
            else:
                self._held.append(event)
                self._greatest = event.key if self._greatest is None else max(self._greatest, event.key)
            if len(self._held) == self._rules.events:
                self._release(released)
        return released

    def advance(self, time_us: int) -> Released:
        """Advance the time, and release a batch that is due."""
        released = Released()
        self._release_old(time_us, released)
        return released

    def finish(self) -> Released:
        """Release the held events, as no more events come."""
        released = Released()
        self._release(released)
        return released

    def dump(self) -> dict[str, Any]:
        """The state as a JSON value."""
        return {
            "held": [list(event) for event in self._held],
            "taken": self._taken,
            "greatest": self._greatest,
            "finished_to": self._finished_to,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Load a state that ``dump`` returned for a buffer with the same rules.

        Raises:
            JoinStateError: A member is missing or has another form.
        """
        try:
            self._held = [HeldEvent(*event) for event in saved["held"]]
            self._taken = int(saved["taken"])
            self._greatest, self._finished_to = saved["greatest"], saved["finished_to"]
        except (KeyError, TypeError, ValueError) as error:
            raise JoinStateError(f"a saved buffer of events cannot be read: {error}") from error

    def _release_old(self, time_us: int, released: Released) -> None:
        if self._held and self._rules.us is not None and time_us - self._held[0].time_us >= self._rules.us:
            self._release(released)

    def _release(self, released: Released) -> None:
        """Release the batch after its announcement; then announce the finished keys."""
        for batch in _batches(self._held, self._rules):
            scope = Scope(events=len(batch))
            announcement = FinitePunctuation(
                pattern=_description([event.key for event in batch], self._rules), scope=scope
            )
            released.said.append((len(released.events), announcement))
            released.events += batch
        self._held = []
        if self._rules.disorder is None or self._greatest is None:
            return
        mark = self._greatest - self._rules.disorder - 1
        if mark >= _LEAST and (self._finished_to is None or mark > self._finished_to):
            self._finished_to = mark
            released.said.append((len(released.events), Finished(mark)))


def _batches(held: list[HeldEvent], rules: BufferRules) -> Iterator[list[HeldEvent]]:
    """The events in the order of their release, grouped by announcement."""
    if rules.order == "arrival":
        yield from [held] if held else []
        return
    ordered = sorted(held, key=itemgetter(1))
    if rules.order == "sorted":
        yield from [ordered] if ordered else []
        return
    for _, events in groupby(ordered, key=itemgetter(1)):
        yield list(events)


def _description(keys: Sequence[int | None], rules: BufferRules) -> Pattern:
    present_keys = [key for key in keys if key is not None]
    if rules.names == "values" or len(set(present_keys)) == 1:
        return OneOf(frozenset(present_keys))
    return Range(low=min(present_keys), high=max(present_keys))
