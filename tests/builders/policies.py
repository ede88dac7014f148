"""Test helpers: policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from shards.entries import Entry
from shards.policy import Key


class AnyFirst:
    """Any shard or place, at random."""

    name: ClassVar[str] = "any-first"

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def choose(self, waiting: Mapping[Key, Sequence[Entry]]) -> Key:
        """One of them."""
        return self._chance.choice(list(waiting))
