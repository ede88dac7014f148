"""What a join has said of events that may be retracted, for as long as they may.

An event may be retracted while it is in its window of time; where its input has none, until its key is finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from joins.errors import JoinStateError
from joins.windows import Window

_MOST_GONE = 64  # numbers of events that are forgotten, in the order in which they came


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
        windows: Of each input.
        keeps_all: Whether all combinations of a key are needed until it is finished, for its totals.
    """

    def __init__(self, windows: Sequence[Window], *, keeps_all: bool) -> None:
        self._keeps_all = keeps_all
        self._events: dict[int, Revocable] = {}
        self._by_id: dict[tuple[int, int, str], int] = {}
        self._of_key: dict[int, set[int]] = {}
        self._lives: dict[int, list[Life]] = {}
        self._life_of: dict[int, tuple[int, Life]] = {}  # by number of a combination
        self._next = 0
        self.windows = windows
        self._order: list[deque[int]] = [deque() for _ in windows]

    @property
    def keys(self) -> list[int]:
        """Hashed keys of which something is known."""
        return sorted({*self._lives, *(one.key for one in self._events.values())})

    @property
    def size(self) -> int:
        """About how many events are needed, at most."""
        return len(self._events) + len(self.windows) * len(self._life_of)

    def sequences(self) -> set[int]:
        """Events whose data may still be needed."""
        lives = (life for some in self._lives.values() for life in some)
        members = (one for life in lives for said in life.said.values() for one in said.members)
        return {*self._events, *(one for one in members if one >= 0)}

    def add_event(self, sequence: int, event: Revocable) -> None:
        """An event that may be retracted has come."""
        self._events[sequence] = event
        self._by_id[event.number, event.key, event.identity] = sequence
        self._of_key.setdefault(event.key, set()).add(sequence)
        order = self._order[event.number]
        order.append(sequence)
        if len(order) > 2 * len(self._events) + _MOST_GONE:
            self._order[event.number] = deque(one for one in order if one in self._events)

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
        """A hashed key is finished: its events without a window of time can no longer be retracted.

        Returns:
            Combinations that nothing can take back any more.
        """
        life = self.current(key)
        if life is not None:
            life.is_over = True
        found = []
        for sequence in sorted(self._of_key.get(key, ())):
            if self.windows[self._events[sequence].number].kind != "time":
                found += self._forget(sequence)
        self.tidy(key)
        return found

    def forget_over(self, sequence: int, *, is_over: bool) -> list[Said]:
        """An event without a window of time whose key was finished before it came cannot be retracted.

        Returns:
            Combinations that nothing can take back any more.
        """
        event = self._events.get(sequence)
        if event is None or not is_over or self.windows[event.number].kind == "time":
            return []
        return self._forget(sequence)

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
        for number, order in enumerate(self._order):
            window = self.windows[number]
            while order and order[0] not in self._events:
                order.popleft()
            if window.kind != "time":
                continue
            while order and (order[0] not in self._events or now_us - self._events[order[0]].came_us >= window.size):
                sequence = order.popleft()
                if sequence in self._events:
                    found += self._forget(sequence)
        return found

    def drop(self, keys: set[int]) -> None:
        """Forget some hashed keys."""
        for sequence in [sequence for sequence, one in self._events.items() if one.key in keys]:
            self._remove(sequence)
        for key in keys & self._lives.keys():
            for life in self._lives.pop(key):
                for number in life.said:
                    del self._life_of[number]

    def dump(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "next": self._next,
            "events": [
                [sequence, one.number, one.key, one.identity, one.came_us, sorted(one.said)]
                for sequence, one in sorted(self._events.items())
            ],
            "lives": [
                [
                    key,
                    [
                        [
                            life.key,
                            life.is_over,
                            life.total,
                            [
                                [number, said.members, said.event_id, said.event_type]
                                for number, said in life.said.items()
                            ],
                        ]
                        for life in lives
                    ],
                ]
                for key, lives in sorted(self._lives.items())
            ],
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take what ``dump`` gave.

        Raises:
            JoinStateError: It is damaged.
        """
        try:
            self._next = saved["next"]
            for sequence, number, key, identity, came_us, said in saved["events"]:
                self.add_event(sequence, Revocable(number, key, identity, came_us, set(said)))
            for key, lives in saved["lives"]:
                for text, is_over, total, some in lives:
                    life = Life(text, {}, is_over, None if total is None else (total[0], total[1]))
                    self._lives.setdefault(key, []).append(life)
                    for place, members, event_id, event_type in some:
                        life.said[place] = Said(tuple(members), event_id, event_type)
                        self._life_of[place] = key, life
        except (KeyError, TypeError, ValueError) as error:
            raise JoinStateError(f"what a saved join has said cannot be read: {error}") from error

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


def members_of(said: Iterable[Said]) -> list[int]:
    """The sequence numbers of events that are in some combinations, ascending."""
    return sorted({one for some in said for one in some.members if one >= 0})
