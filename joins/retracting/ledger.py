"""The ledger of a join, which has the reported results whose events may still be retracted.

An event may be retracted for the time that its input declares, by default until its key is finished.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joins.errors import JoinStateError

_MOST_GONE = 64  # most forgotten events in the queue, in addition to the number of events
FOREVER_US = (1 << 63) - 1


@dataclass(slots=True)
class ReportedCombination:
    """A combination that the join has reported, or the report of an unjoined event.

    Attributes:
        members: The sequence number of each input's event. Negative if the input has none.
        event_id: Id of the derived event. Empty if only totals are emitted.
    """

    members: tuple[int, ...]
    event_id: str = ""
    event_type: str = ""


@dataclass(slots=True)
class Life:
    """A period of a key: from its first event until the key is finished. Later events begin the next life.

    Attributes:
        key: The text of the key.
        reported: The combinations that were reported in this life, by their numbers in the ledger.
        is_over: Whether the key is finished.
        total: Id and type of the derived event with the key's totals, if one was emitted.
    """

    key: str
    reported: dict[int, ReportedCombination] = field(default_factory=dict)
    is_over: bool = False
    total: tuple[str, str] | None = None


@dataclass(slots=True)
class Revocable:
    """An event that may be retracted.

    Attributes:
        number: Its input.
        key: The hash of its key.
        identity: Its id.
        came_us: The time of the join when the event arrived.
        reported: The numbers of the combinations that contain the event.
    """

    number: int
    key: int
    identity: str
    came_us: int
    reported: set[int] = field(default_factory=set)


class Ledger:
    """Remembers the events of a join that may be retracted, and the reported combinations that contain them.

    ``spans_us`` has the time for which events of each input may be retracted. None means until their key is finished.
    If ``keeps_all`` is true, all combinations of a key are remembered until it is finished, because totals need them.
    """

    def __init__(self, spans_us: Sequence[int | None], *, keeps_all: bool) -> None:
        self._keeps_all = keeps_all
        self._spans_us = spans_us
        self._events: dict[int, Revocable] = {}
        self._by_id: dict[tuple[int, int, str], int] = {}
        self._of_key: dict[int, set[int]] = {}
        self._lives: dict[int, list[Life]] = {}
        self._life_of: dict[int, tuple[int, Life]] = {}  # by number of the combination
        self._next = 0
        self._leaving: list[tuple[int, int]] = []  # heap of (time until which an event may be retracted, event)

    @property
    def keys(self) -> list[int]:
        """The hashes of keys with a retractable event or a remembered combination."""
        return sorted({*self._lives, *self._of_key})

    @property
    def size(self) -> int:
        """An upper bound of the number of events whose data retractions need."""
        return len(self._events) + len(self._spans_us) * len(self._life_of)

    def counts(self) -> dict[str, int]:
        """Return the number of retractable events (``revocable``) and of remembered combinations (``remembered``)."""
        return {"revocable": len(self._events), "remembered": len(self._life_of)}

    def change(self, spans_us: Sequence[int | None]) -> None:
        """Change how long events of each input may be retracted. Events that were forgotten stay forgotten."""
        self._spans_us = spans_us
        self._leaving = []
        for sequence, event in self._events.items():
            self._enter(sequence, event)

    def sequences(self) -> set[int]:
        """Return the sequence numbers of all events whose data retractions may need."""
        return {sequence for key in self.keys for sequence in self.sequences_of(key)}

    def sequences_of(self, key: int) -> set[int]:
        """Return the sequence numbers of a key's retractable events and of the events in its remembered combinations.

        All of these events are needed in memory while the key is.
        """
        return {*self._of_key.get(key, ()), *(sequence for sequence in self.members_of_key(key) if sequence >= 0)}

    def until_us(self, key: int) -> int:
        """Return the time until which events of a hashed key may be retracted, or 0 if none may."""
        if self.current(key) is not None and self._keeps_all:
            return FOREVER_US
        return max((self._due_us(self._events[sequence]) for sequence in self._of_key.get(key, ())), default=0)

    def add_event(self, sequence: int, event: Revocable) -> None:
        self._events[sequence] = event
        self._by_id[event.number, event.key, event.identity] = sequence
        self._of_key.setdefault(event.key, set()).add(sequence)
        self._enter(sequence, event)

    def add_reported(self, key: tuple[int, str], combination: ReportedCombination) -> bool:
        """Remember a combination in the current life of a key, and return True. ``key`` is the key's hash and text.

        If the combination can never be retracted and totals do not need it, remember nothing and return False.
        """
        if not self._keeps_all and not self._is_revocable(combination):
            return False
        lives = self._lives.setdefault(key[0], [])
        if not lives or lives[-1].is_over:
            lives.append(Life(key[1]))
        self.append(lives[-1], key[0], combination)
        return True

    def append(self, life: Life, key: int, combination: ReportedCombination) -> None:
        """Remember a combination in the given life of a key (hashed)."""
        number, self._next = self._next, self._next + 1
        life.reported[number] = combination
        self._life_of[number] = key, life
        for member in combination.members:
            if member in self._events:
                self._events[member].reported.add(number)

    def current(self, key: int) -> Life | None:
        """Return the unfinished life of a hashed key, or None if the key has none."""
        lives = self._lives.get(key)
        return lives[-1] if lives and not lives[-1].is_over else None

    def finish(self, key: int) -> list[ReportedCombination]:
        """End the current life of a hashed key.

        Its events can no longer be retracted, unless their input declares a time. Return the combinations that are
        forgotten because they can no longer be retracted.
        """
        life = self.current(key)
        if life is not None:
            life.is_over = True
        removed = []
        for sequence in sorted(self._of_key.get(key, ())):
            removed += self.forget_over(sequence)
        self.tidy(key)
        return removed

    def forget_over(self, sequence: int) -> list[ReportedCombination]:
        """Forget an event of a finished key, unless its input declares a time for which events can be retracted.

        Return the combinations that are forgotten with it.
        """
        event = self._events.get(sequence)
        return [] if event is None or self._spans_us[event.number] is not None else self._forget(sequence)

    def find(self, number: int, key: int, identity: str) -> int | None:
        """Return the sequence number of an event, given by input, hashed key and id. None if it cannot be retracted."""
        return self._by_id.get((number, key, identity))

    def take_back(self, sequence: int) -> list[tuple[Life, ReportedCombination]]:
        """Remove a retracted event and all combinations that contain it. Return these combinations with their lives."""
        event = self._events[sequence]
        removed = []
        for number in sorted(event.reported):
            _, life = self._life_of.pop(number)
            removed.append((life, life.reported.pop(number)))
        removed_numbers = set(event.reported)
        for _, combination in removed:
            for member in combination.members:
                if member in self._events:
                    self._events[member].reported -= removed_numbers
        self._remove(sequence)
        return removed

    def members_of_key(self, key: int) -> set[int]:
        """Return the sequence numbers of all events in a key's remembered combinations.

        Negative numbers are included if combinations have absent inputs.
        """
        return {
            member
            for life in self._lives.get(key, ())
            for combination in life.reported.values()
            for member in combination.members
        }

    def pass_time(self, now_us: int) -> list[ReportedCombination]:
        """Forget the events that can no longer be retracted at ``now_us``, with the combinations in which they are.

        Return these combinations.
        """
        removed: list[ReportedCombination] = []
        while self._leaving and self._leaving[0][0] <= now_us:
            _, sequence = heapq.heappop(self._leaving)
            if sequence in self._events:
                removed += self._forget(sequence)
        if len(self._leaving) > 2 * len(self._events) + _MOST_GONE:
            self._leaving = [entry for entry in self._leaving if entry[1] in self._events]
            heapq.heapify(self._leaving)
        return removed

    def drop(self, keys: Iterable[int]) -> None:
        """Forget all events, lives and combinations of the hashed ``keys``."""
        for key in keys:
            for sequence in list(self._of_key.get(key, ())):
                self._remove(sequence)
            for life in self._lives.pop(key, ()):
                for number in life.reported:
                    del self._life_of[number]

    def part_of(self, key: int) -> dict[str, Any] | None:
        """Return the events, lives and combinations of a hashed key as plain JSON, or None if there are none."""
        sequences = sorted(self._of_key.get(key, ()))
        lives = self._lives.get(key, ())
        if not sequences and not lives:
            return None
        events = [(sequence, self._events[sequence]) for sequence in sequences]
        return {
            "events": [
                [number, event.number, event.identity, event.came_us, sorted(event.reported)]
                for number, event in events
            ],
            "lives": [
                [
                    life.key,
                    life.is_over,
                    life.total,
                    [
                        [number, combination.members, combination.event_id, combination.event_type]
                        for number, combination in life.reported.items()
                    ],
                ]
                for life in lives
            ],
        }

    def add_part(self, key: int, saved: Mapping[str, Any]) -> None:
        """Add the result of ``part_of`` for a key that the ledger lacks. Raise ``JoinStateError`` if it is damaged."""
        try:
            for sequence, number, identity, came_us, numbers in saved["events"]:
                self.add_event(sequence, Revocable(number, key, identity, came_us, set(numbers)))
            for text, is_over, total, combinations in saved["lives"]:
                life = Life(text, {}, is_over, None if total is None else (total[0], total[1]))
                self._lives.setdefault(key, []).append(life)
                for place, members, event_id, event_type in combinations:
                    life.reported[place] = ReportedCombination(tuple(members), event_id, event_type)
                    self._life_of[place] = key, life
        except (KeyError, TypeError, ValueError) as error:
            raise JoinStateError(f"the reported combinations of a saved join cannot be read: {error}") from error

    def dump(self) -> dict[str, Any]:
        return {"next": self._next, "keys": [[key, self.part_of(key)] for key in self.keys]}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore the ledger that ``dump`` saved. Raise ``JoinStateError`` if it is damaged."""
        self._next = saved["next"]
        for key, part in saved["keys"]:
            self.add_part(key, part)

    def tidy(self, key: int) -> None:
        """Forget the finished lives of a hashed key once none of their combinations can be retracted."""
        remaining = []
        for life in self._lives.get(key, ()):
            if life.is_over and not any(map(self._is_revocable, life.reported.values())):
                for number in life.reported:
                    del self._life_of[number]
            elif life.reported or life.is_over:
                remaining.append(life)
        if remaining:
            self._lives[key] = remaining
        else:
            self._lives.pop(key, None)

    def _enter(self, sequence: int, event: Revocable) -> None:
        if self._spans_us[event.number] is not None:
            heapq.heappush(self._leaving, (self._due_us(event), sequence))

    def _due_us(self, event: Revocable) -> int:
        span_us = self._spans_us[event.number]
        return FOREVER_US if span_us is None else event.came_us + span_us

    def _forget(self, sequence: int) -> list[ReportedCombination]:
        """Forget an event that can no longer be retracted. Return the combinations that are forgotten with it."""
        event, removed = self._events[sequence], []
        self._remove(sequence)
        for number in sorted(event.reported):
            _, life = self._life_of[number]
            combination = life.reported[number]
            if not self._keeps_all and not self._is_revocable(combination):
                del life.reported[number], self._life_of[number]
                removed.append(combination)
        self.tidy(event.key)
        return removed

    def _is_revocable(self, combination: ReportedCombination) -> bool:
        return any(member in self._events for member in combination.members)

    def _remove(self, sequence: int) -> None:
        event = self._events.pop(sequence)
        if self._by_id.get((event.number, event.key, event.identity)) == sequence:
            del self._by_id[event.number, event.key, event.identity]
        self._of_key[event.key].discard(sequence)
        if not self._of_key[event.key]:
            del self._of_key[event.key]


def members_of(combinations: Iterable[ReportedCombination]) -> list[int]:
    """Return the sequence numbers of events that are in the given combinations, ascending."""
    return sorted({member for combination in combinations for member in combination.members if member >= 0})
