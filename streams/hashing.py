"""Stable hashes of correlation keys: they decide shards, so they must never change."""

from __future__ import annotations

from hashlib import blake2b
from typing import overload

import numpy as np
from numpy.typing import NDArray

MAX_SHARDS = 1024
_EXACT = 2**53
EVERY_KEY = 0
"""In the place of the hash of a key: of a row that is about many keys, so that each shard has one of its own."""


def key_of(value: object) -> str | None:
    """A text that is not empty, or a whole number, as a correlation key; None: it is neither.

    JSON knows one kind of numbers, so ``1.0`` is the key ``1``. Beyond 53 bits a number with a point is no key, as it
    may be another one than was written.
    """
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) < _EXACT else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def key_hash(key: str) -> int:
    """64-bit hash of a correlation key, the same on every machine and in every release."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


@overload
def shard_of(hashed_key: int, shards: int) -> int: ...


@overload
def shard_of(hashed_key: NDArray[np.uint64], shards: int) -> NDArray[np.uint64]: ...


def shard_of(hashed_key: int | NDArray[np.uint64], shards: int) -> int | NDArray[np.uint64]:
    """The shard, 0 to ``shards - 1``, that holds all events of a key; for one hashed key, or for a column of them."""
    return hashed_key % shards
