"""Waiting punctuations of both inputs, not propagated yet, and their index: the number of events of each.

Source: components 5 and 6 of PJoin (section 3.2 of the specification of punctuation-aware joins), in counted mode: the
first punctuation of an input that names a key counts the resident events of the key, in memory and on disk, without
reading them. A range that contains keys counted by an earlier punctuation waits for that punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.items import Cause
from joins.kernels.tables import NIL
from literature.kernels.buckets import own_keys
from literature.punctuations import ClosedSet, OneOf, Pattern, pattern_form, read_pattern
from literature.spilling.closed_keys import ClosedKeys, hashes_of, keys_of
from literature.spilling.memory import BucketMemory


@dataclass(slots=True)
class Waiting:
    """A punctuation that was not propagated yet.

    Attributes:
        pattern: The keys that it closed.
        owner: Its place among the counts; NIL before it is indexed.
    """

    pattern: Pattern
    owner: int = NIL


class PunctuationSets:
    """Waiting punctuations of two inputs, in the order of their arrival.

    Attributes:
        waiting: Waiting punctuations of each input.
        compared: Number of keys that were compared with punctuations for the index.
    """

    def __init__(self) -> None:
        self.waiting: tuple[list[Waiting], list[Waiting]] = ([], [])
        self.compared = 0
        self._emitted = ClosedSet("integer")
        self._named: Counter[int] = Counter()  # how many waiting punctuations name a key
        self._leaving: set[int] = set()  # keys to forget once no event of them is left

    def add(self, number: int, pattern: Pattern) -> None:
        """Add a punctuation that arrived on an input."""
        self.waiting[number].append(Waiting(pattern))
        self._named.update(_values(pattern))

    def build_index(self, memory: BucketMemory) -> bool:
        """Let the new punctuations count the resident events of their keys; returns whether some count is zero."""
        is_zero = False
        for number, waiting in enumerate(self.waiting):
            for entry in waiting:
                if entry.owner == NIL:
                    entry.owner = memory.new_owner()
                    count = self._count(memory, number, entry)
                    memory.state.counts[entry.owner] = count
                    is_zero = is_zero or count == 0
        return is_zero

    def held_up(self, memory: BucketMemory, closed: ClosedKeys) -> Iterator[Pattern]:
        """Patterns of indexed punctuations whose events a disk join may free, as the other input closed such keys."""
        for number, waiting in enumerate(self.waiting):
            for entry in waiting:
                if entry.owner != NIL and memory.state.counts[entry.owner] > 0:
                    other_keys = closed.sets[1 - number]
                    if not isinstance(entry.pattern, OneOf) or any(map(other_keys.covers, entry.pattern.values)):
                        yield entry.pattern

    def take_ready(self, memory: BucketMemory, closed: ClosedKeys) -> list[tuple[Pattern, Cause]]:
        """Remove and return the indexed punctuations that count no event, without keys that were emitted before.

        The keys stay closed, so they still purge the other input (erratum E11).
        """
        ready: list[tuple[Pattern, Cause]] = []
        for number, waiting in enumerate(self.waiting):
            kept_entries: list[Waiting] = []
            for entry in waiting:
                if entry.owner == NIL or memory.state.counts[entry.owner] > 0 or _overlaps(entry.pattern, kept_entries):
                    kept_entries.append(entry)
                    continue
                memory.state.counts[entry.owner] = NIL
                self._named.subtract(_values(entry.pattern))
                self._leaving.update(_values(entry.pattern))
                pattern = self._unemitted(entry.pattern)
                if pattern is not None:
                    is_regular = closed.sets[1 - number].covers_all(pattern)
                    ready.append((pattern, Cause.REGULAR if is_regular else Cause.IMMEDIATE))
            waiting[:] = kept_entries
        self._forget(memory, closed)
        return ready

    def dump(self) -> dict[str, Any]:
        """The state as a JSON value."""
        return {
            "waiting": [[[pattern_form(entry.pattern), entry.owner] for entry in waiting] for waiting in self.waiting],
            "emitted": [pattern_form(pattern) for pattern in self._emitted.patterns()],
            "leaving": sorted(self._leaving),
            "compared": self.compared,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Load a state that ``dump`` returned."""
        self.__init__()  # type: ignore[misc]
        for number, waiting in enumerate(saved["waiting"]):
            for form, owner in waiting:
                self.add(number, read_pattern(form))
                self.waiting[number][-1].owner = int(owner)
        for form in saved["emitted"]:
            self._emitted.add(read_pattern(form))
        self._leaving = set(saved["leaving"])
        self.compared = int(saved["compared"])

    def _count(self, memory: BucketMemory, number: int, entry: Waiting) -> int:
        if isinstance(entry.pattern, OneOf):
            hashes = hashes_of([int(value) for value in entry.pattern.values])
            self.compared += len(hashes)
        else:
            slots = memory.state.slots
            resident = slots[slots[:, 1] != 0, 0]
            self.compared += len(resident)
            inside = ClosedSet("integer")
            inside.add(entry.pattern)
            is_inside = np.array([inside.covers(key) for key in keys_of(resident).tolist()], np.bool_)
            hashes = resident[is_inside]
        return int(own_keys(memory.state, number, hashes, entry.owner))

    def _unemitted(self, pattern: Pattern) -> Pattern | None:
        if isinstance(pattern, OneOf):
            values = frozenset(value for value in pattern.values if not self._emitted.covers(value))
            if not values:
                return None
            self._emitted.add(OneOf(values))
            return OneOf(values)
        return pattern if self._emitted.add(pattern) else None

    def _forget(self, memory: BucketMemory, closed: ClosedKeys) -> None:
        """Forget keys closed by both inputs, if no waiting punctuation names them and no event of them is resident."""
        for key in sorted(self._leaving):
            if self._named[key] > 0:
                continue
            del self._named[key]
            if not all(closed_set.covers(key) for closed_set in closed.sets):
                self._leaving.discard(key)  # the other input's punctuation will bring it back
            elif not memory.is_resident(key):
                self._leaving.discard(key)
                if closed.forget(key):
                    self._emitted.discard(key)


def _overlaps(pattern: Pattern, earlier: list[Waiting]) -> bool:
    """Whether earlier punctuations may count keys of a range; a list never shares keys with earlier punctuations."""
    if isinstance(pattern, OneOf) or not earlier:
        return False
    inside = ClosedSet("integer")
    inside.add(pattern)
    return any(
        not isinstance(waiting.pattern, OneOf) or any(map(inside.covers, waiting.pattern.values)) for waiting in earlier
    )


def _values(pattern: Pattern) -> list[int]:
    return [int(value) for value in pattern.values] if isinstance(pattern, OneOf) else []
