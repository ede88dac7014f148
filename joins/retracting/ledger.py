"""What a join has said of events that may be retracted, for as long as they may.

An event may be retracted for a time that its input says, or until its key is finished.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from joins.errors import JoinStateError

_MOST_GONE = 64  # events that are forgotten and still in the queue, besides as many as there are
FOREVER_US = (1 << 63) - 1


@dataclass(slots=True)
class Said:
    """A combination that was found, an absence too.

    Attributes:
        members: Of each input the sequence number of its event; -1: none.
        event_id: Of the event that it became; empty where only totals are emitted.
        event_type: Of that event.
    """

    members: tuple[int, ...]
    event_id: str = ""
    event_type: str = ""


@dataclass(slots=True)
class Life:
    """A key from its first event until it is finished.

    Attributes:
        key: As text.
        said: Its combinations by number.
        is_over: Whether it is finished.
        total: Id and type of the event with its totals; None: there is none.
    """

    key: str
    said: dict[int, Said] = field(default_factory=dict)
    is_over: bool = False
    total: tuple[str, str] | None = None


@dataclass(slots=True)
class Revocable:
    """An event that may be retracted.

    Attributes:
        number: Of its input.
        key: Its hashed key.
        identity: Its id in its stream.
        came_us: When it came.
        said: Numbers of the combinations that it is in.
    """

    number: int
    key: int
    identity: str
    came_us: int
    said: set[int] = field(default_factory=set)


class Ledger:
    """Events of a join that may be retracted, and what was said of them.

    Args:
        spans_us: Of each input for how long its events may be retracted; None: until their key is finished.
        keeps_all: Whether all combinations of a key are needed until it is finished, for its totals.
    """

    def __init__(self, spans_us: Sequence[int | None], *, keeps_all: bool) -> None:
        self._keeps_all = keeps_all
        self._spans_us = spans_us
        self._events: dict[int, Revocable] = {}
        self._by_id: dict[tuple[int, int, str], int] = {}
        self._of_key: dict[int, set[int]] = {}
        self._lives: dict[int, list[Life]] = {}
        self._life_of: dict[int, tuple[int, Life]] = {}  # by number of a combination
        self._next = 0
        self._leaving: list[tuple[int, int]] = []  # until when, and which event: a heap

    @property
    def keys(self) -> list[int]:
        """Hashed keys of which something is known."""
        return sorted({*self._lives, *self._of_key})

    @property
    def size(self) -> int:
        """About how many events are needed, at most."""
        return len(self._events) + len(self._spans_us) * len(self._life_of)

    def counts(self) -> dict[str, int]:
        """How many events may be retracted, and how many combinations are remembered for it."""
        return {"revocable": len(self._events), "remembered": len(self._life_of)}

    def change(self, spans_us: Sequence[int | None]) -> None:
        """Events may be retracted for other times from here on; what is forgotten stays so."""
        self._spans_us = spans_us
        self._leaving = []
        for sequence, event in self._events.items():
            self._enter(sequence, event)

    def sequences(self) -> set[int]:
        """Events whose data may still be needed."""
        return {one for key in self.keys for one in self.sequences_of(key)}

    def sequences_of(self, key: int) -> set[int]:
        """Those of a hashed key."""
        members = (one for life in self._lives.get(key, ()) for said in life.said.values() for one in said.members)
        return {*self._of_key.get(key, ()), *(one for one in members if one >= 0)}

    def until_us(self, key: int) -> int:
        """Until when something of a hashed key may be taken back, as far as time alone tells."""
        if self.current(key) is not None and self._keeps_all:
            return FOREVER_US
        return max((self._due_us(self._events[one]) for one in self._of_key.get(key, ())), default=0)

    def add_event(self, sequence: int, event: Revocable) -> None:
        """An event that may be retracted has come."""
        self._events[sequence] = event
        self._by_id[event.number, event.key, event.identity] = sequence
        self._of_key.setdefault(event.key, set()).add(sequence)
        self._enter(sequence, event)

    def add_said(self, key: tuple[int, str], said: Said) -> bool:
        """Note a combination of a key (hashed, and as text); returns whether it is kept."""
        if not self._keeps_all and not self._is_revocable(said):
            return False
        lives = self._lives.setdefault(key[0], [])
        if not lives or lives[-1].is_over:
            lives.append(Life(key[1]))
        self.append(lives[-1], key[0], said)
        return True

    def append(self, life: Life, key: int, said: Said) -> None:
        """Note one more combination of a life of a hashed key."""
        number, self._next = self._next, self._next + 1
        life.said[number] = said
        self._life_of[number] = key, life
        for one in said.members:
            if one in self._events:
                self._events[one].said.add(number)

    def current(self, key: int) -> Life | None:
        """The life of a hashed key that is not over."""
        lives = self._lives.get(key)
        return lives[-1] if lives and not lives[-1].is_over else None

    def finish(self, key: int) -> list[Said]:
        """A hashed key is finished: events that may be retracted until then can no longer be.

        Returns:
            Combinations that nothing can take back any more.
        """
        life = self.current(key)
        if life is not None:
            life.is_over = True
        found = []
        for sequence in sorted(self._of_key.get(key, ())):
            found += self.forget_over(sequence)
        self.tidy(key)
        return found

    def forget_over(self, sequence: int) -> list[Said]:
        """An event whose key is finished cannot be retracted, if its input says no time.

        Returns:
            Combinations that nothing can take back any more.
        """
        event = self._events.get(sequence)
        return [] if event is None or self._spans_us[event.number] is not None else self._forget(sequence)

    def find(self, number: int, key: int, identity: str) -> int | None:
        """The sequence number of an event that may be retracted; None: there is none, or not any more."""
        return self._by_id.get((number, key, identity))

    def take_back(self, sequence: int) -> list[tuple[Life, Said]]:
        """An event is retracted; returns the combinations that it is in, which are no longer known."""
        event = self._events[sequence]
        found = []
        for number in sorted(event.said):
            _, life = self._life_of.pop(number)
            found.append((life, life.said.pop(number)))
        gone = set(event.said)
        for _, said in found:
            for one in said.members:
                if one in self._events:
                    self._events[one].said -= gone
        self._remove(sequence)
        return found

    def others(self, key: int) -> set[int]:
        """The events of a hashed key that are in some combination that is known."""
        return {one for life in self._lives.get(key, ()) for said in life.said.values() for one in said.members}

    def pass_time(self, now_us: int) -> list[Said]:
        """Time has come so far; returns the combinations that nothing can take back any more."""
        found: list[Said] = []
        while self._leaving and self._leaving[0][0] <= now_us:
            _, sequence = heapq.heappop(self._leaving)
            if sequence in self._events:
                found += self._forget(sequence)
        if len(self._leaving) > 2 * len(self._events) + _MOST_GONE:
            self._leaving = [one for one in self._leaving if one[1] in self._events]
            heapq.heapify(self._leaving)
        return found

    def drop(self, keys: Iterable[int]) -> None:
        """Forget some hashed keys."""
        for key in keys:
            for sequence in list(self._of_key.get(key, ())):
                self._remove(sequence)
            for life in self._lives.pop(key, ()):
                for number in life.said:
                    del self._life_of[number]

    def part_of(self, key: int) -> dict[str, Any] | None:
        """What is known of a hashed key, as plain JSON; None: nothing."""
        sequences = sorted(self._of_key.get(key, ()))
        lives = self._lives.get(key, ())
        if not sequences and not lives:
            return None
        events = [(sequence, self._events[sequence]) for sequence in sequences]
        return {
            "events": [[number, one.number, one.identity, one.came_us, sorted(one.said)] for number, one in events],
            "lives": [
                [
                    life.key,
                    life.is_over,
                    life.total,
                    [[number, said.members, said.event_id, said.event_type] for number, said in life.said.items()],
                ]
                for life in lives
            ],
        }

    def add_part(self, key: int, saved: Mapping[str, Any]) -> None:
        """Take what ``part_of`` gave of a hashed key of which nothing is known.

        Raises:
            JoinStateError: It is damaged.
        """
        try:
            for sequence, number, identity, came_us, said in saved["events"]:
                self.add_event(sequence, Revocable(number, key, identity, came_us, set(said)))
            for text, is_over, total, some in saved["lives"]:
                life = Life(text, {}, is_over, None if total is None else (total[0], total[1]))
                self._lives.setdefault(key, []).append(life)
                for place, members, event_id, event_type in some:
                    life.said[place] = Said(tuple(members), event_id, event_type)
                    self._life_of[place] = key, life
        except (KeyError, TypeError, ValueError) as error:
            raise JoinStateError(f"what a saved join has said cannot be read: {error}") from error

    def dump(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"next": self._next, "keys": [[key, self.part_of(key)] for key in self.keys]}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take what ``dump`` gave.

        Raises:
            JoinStateError: It is damaged.
        """
        self._next = saved["next"]
        for key, part in saved["keys"]:
            self.add_part(key, part)

    def tidy(self, key: int) -> None:
        """Forget lives of a key of which nothing can be taken back, with what is known of them."""
        kept = []
        for life in self._lives.get(key, ()):
            if life.is_over and not any(map(self._is_revocable, life.said.values())):
                for number in life.said:
                    del self._life_of[number]
            elif life.said or life.is_over:
                kept.append(life)
        if kept:
            self._lives[key] = kept
        else:
            self._lives.pop(key, None)

    def _enter(self, sequence: int, event: Revocable) -> None:
        if self._spans_us[event.number] is not None:
            heapq.heappush(self._leaving, (self._due_us(event), sequence))

    def _due_us(self, event: Revocable) -> int:
        """Until when an event may be retracted."""
        span_us = self._spans_us[event.number]
        return FOREVER_US if span_us is None else event.came_us + span_us

    def _forget(self, sequence: int) -> list[Said]:
        """An event cannot be retracted any more; returns the combinations that are no longer known."""
        event, found = self._events[sequence], []
        self._remove(sequence)
        for number in sorted(event.said):
            _, life = self._life_of[number]
            said = life.said[number]
            if not self._keeps_all and not self._is_revocable(said):
                del life.said[number], self._life_of[number]
                found.append(said)
        self.tidy(event.key)
        return found

    def _is_revocable(self, said: Said) -> bool:
        return any(one in self._events for one in said.members)

    def _remove(self, sequence: int) -> None:
        event = self._events.pop(sequence)
        if self._by_id.get((event.number, event.key, event.identity)) == sequence:
            del self._by_id[event.number, event.key, event.identity]
        self._of_key[event.key].discard(sequence)
        if not self._of_key[event.key]:
            del self._of_key[event.key]


def members_of(said: Iterable[Said]) -> list[int]:
    """The sequence numbers of events that are in some combinations, ascending."""
    return sorted({one for some in said for one in some.members if one >= 0})
