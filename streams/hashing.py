"""Stable hashes of correlation keys; they decide the shard, so they must never change."""

from __future__ import annotations

from hashlib import blake2b
from typing import overload

import numpy as np
from numpy.typing import NDArray

MAX_SHARDS = 1024
_EXACT = 2**53
EVERY_KEY = 0
"""The hash in a row that concerns many keys; every shard then has its own copy of the row."""


def key_of(value: object) -> str | None:
    """A non-empty text or a whole number as a correlation key; None for any other value.

    JSON has one kind of number, so ``1.0`` is the key ``1``. Beyond 53 bits, a number with a decimal point is not a
    key, because rounding may have changed it.
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
    """The shard, 0 to ``shards - 1``, that holds all events of a hashed key; takes one key or a column of keys."""
    return hashed_key % shards
