"""Stable hashes of correlation keys. They decide the shard of an event, so they must never change."""

from __future__ import annotations

from hashlib import blake2b
from typing import overload

import numpy as np
from numpy.typing import NDArray

MAX_SHARDS = 1024
_EXACT = 2**53
EVERY_KEY = 0
"""The key hash of a row that concerns many keys. Every shard has its own copy of such a row."""


def key_of(value: object) -> str | None:
    """Convert a non-empty text or a whole number to a correlation key. Return None for any other value.

    JSON has one type of number, so ``1.0`` is the key ``1``. A number with a decimal point and more than 53 bits is not
    a key, because rounding may have changed it.
    """
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) < _EXACT else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def key_hash(key: str) -> int:
    """Hash a correlation key to 64 bits, with the same result on every machine and in every release."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


@overload
def shard_of(hashed_key: int, shards: int) -> int: ...


@overload
def shard_of(hashed_key: NDArray[np.uint64], shards: int) -> NDArray[np.uint64]: ...


def shard_of(hashed_key: int | NDArray[np.uint64], shards: int) -> int | NDArray[np.uint64]:
    """Return the shard of a hashed key, or of each key in a column. Shards count from 0 to ``shards - 1``."""
    return hashed_key % shards
