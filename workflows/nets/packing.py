"""Packs markings into few machine words, and fires transitions on many markings at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from workflows.nets.net import Places, WorkflowNet

Words: TypeAlias = NDArray[np.uint64]  # (markings, words)

FIELD_BITS = (2, 4, 8)  # widths of the field of a place; the highest bit of each is a guard


@dataclass(frozen=True, slots=True)
class Packing:
    """A layout of markings: each place has a field of ``bits`` bits, and a word holds several fields.

    The highest bit of a field is a guard, which is 0 in a valid marking. So one subtraction compares all fields of a
    word, and an addition that sets the guard bit shows that a place has more than ``most`` tokens.
    """

    places: int
    bits: int

    @property
    def most(self) -> int:
        """Largest number of tokens of a place that a field can hold."""
        return (1 << (self.bits - 1)) - 1

    @property
    def words(self) -> int:
        """Number of machine words of a marking, at least one."""
        return max(1, -(-self.places * self.bits // 64))

    def fields(self, values: Iterable[tuple[int, int]]) -> Words:
        """Return a marking with the given values in the fields of their places."""
        words = [0] * self.words
        per_word = 64 // self.bits
        for place, value in values:
            words[place // per_word] |= value << (place % per_word) * self.bits
        return np.array(words, np.uint64)

    def pack(self, places: Places) -> Words:
        """Return the marking with one token for each mention of a place, but at most ``most`` tokens on one place."""
        return self.fields((place, min(places.count(place), self.most)) for place in set(places))

    def guards(self) -> Words:
        """The words of a marking in which only the guard bit of each field is set."""
        return self.fields((place, 1 << (self.bits - 1)) for place in range(self.places))

    def mask(self, places: Places) -> Words:
        """Return the words of a marking in which all bits of the fields of the given places are set."""
        return self.fields((place, (1 << self.bits) - 1) for place in set(places))

    def tokens(self, marking: Words) -> dict[int, int]:
        """Return the places of a marking that have tokens, with the number of their tokens."""
        per_word, field = 64 // self.bits, (1 << self.bits) - 1
        words = [int(word) for word in marking]
        counts = (
            (place, words[place // per_word] >> (place % per_word) * self.bits & field) for place in range(self.places)
        )
        return {place: count for place, count in counts if count}


@dataclass(frozen=True, slots=True, eq=False)
class PackedTransitions:
    """The effects of a net's transitions on packed markings, as arrays (transitions, words).

    Attributes:
        guards: (words,), the guard bits of all fields.
        kept: All bits of the fields that a transition does not empty.
        waits: All bits of the fields that must be empty for a transition to fire.
        can_fire: (transitions,), a mask of the transitions whose inputs fit the fields.
    """

    guards: Words
    inputs: Words
    outputs: Words
    kept: Words
    waits: Words
    can_fire: NDArray[np.bool_]

    @classmethod
    def of(cls, net: WorkflowNet, packing: Packing) -> PackedTransitions:
        transitions, shape = net.transitions, (len(net.transitions), packing.words)
        return cls(
            guards=packing.guards(),
            inputs=np.array([packing.pack(each.inputs) for each in transitions], np.uint64).reshape(shape),
            outputs=np.array([packing.pack(each.outputs) for each in transitions], np.uint64).reshape(shape),
            kept=~np.array([packing.mask(each.resets) for each in transitions], np.uint64).reshape(shape),
            waits=np.array([packing.mask(each.waits) for each in transitions], np.uint64).reshape(shape),
            can_fire=np.array([heaviest(each.inputs) <= packing.most for each in transitions], np.bool_),
        )

    def enabled(self, markings: Words) -> NDArray[np.bool_]:
        """Return a mask (markings, transitions) of the transitions that are enabled in each marking."""
        is_enabled = np.broadcast_to(self.can_fire, (len(markings), len(self.can_fire))).copy()
        for word, guard in enumerate(self.guards):
            tokens = markings[:, word]
            takes = np.flatnonzero(self.inputs[:, word])
            if len(takes):
                left = (tokens | guard)[:, None] - self.inputs[takes, word]
                is_enabled[:, takes] &= left & guard == guard
            waiting = np.flatnonzero(self.waits[:, word])
            if len(waiting):
                is_enabled[:, waiting] &= tokens[:, None] & self.waits[waiting, word] == 0
        return is_enabled

    def fire(self, markings: Words, transitions: NDArray[np.integer]) -> Words:
        """Return the marking after each pair of a marking and an enabled transition.

        If a guard bit is set in the result, a place has too many tokens for its field.
        """
        after: Words = ((markings - self.inputs[transitions]) & self.kept[transitions]) + self.outputs[transitions]
        return after


def heaviest(places: Places) -> int:
    """Return the largest number of tokens on one place. A place is listed once for each of its tokens."""
    return max((places.count(place) for place in set(places)), default=0)
