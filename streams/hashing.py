"""Stable hashes of correlation keys: they decide shards, so they must never change."""

from __future__ import annotations

from hashlib import blake2b


def key_hash(key: str) -> int:
    """64-bit hash of a correlation key, the same on every machine and in every release."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


def shard_of(hashed_key: int, shards: int) -> int:
    """The shard, 0 to ``shards - 1``, that holds all events of a key."""
    return hashed_key % shards
