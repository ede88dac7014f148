"""Which group key a shard gets in Spark, so that shards spread evenly over state partitions.

Spark places a group by its own hash of the key (Murmur3, 32 bits, seed 42) modulo the number of partitions; the plain
shard numbers 0 to 7 would put five shards in one of two partitions. A *route* is a number whose hash, modulo
``_RESIDUES``, is the shard: then any number of partitions that divides ``_RESIDUES`` gets its even share. Routes depend
on nothing but the shard, so they survive a change of cores.
"""

from __future__ import annotations

_RESIDUES = 3360  # a multiple of 1 to 8, 10, 12, 14, 15, 16, 20, 24, 28, 30, 32
_SEED = 42
_MASK = 0xFFFF_FFFF


def routes(shards: int) -> list[int]:
    """Group key of each shard, all different; ``shards`` is at most ``streams.MAX_SHARDS``."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < shards:
        residue = spark_hash(candidate) % _RESIDUES
        if residue < shards:
            found.setdefault(residue, candidate)
        candidate += 1
    return [found[shard] for shard in range(shards)]


def spark_hash(value: int) -> int:
    """Spark's ``hash`` of a 32-bit integer, as a signed number."""
    block = value * 0xCC9E_2D51 & _MASK
    block = _rotate(block, 15) * 0x1B87_3593 & _MASK
    mixed = (_rotate(_SEED ^ block, 13) * 5 + 0xE654_6B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EB_CA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2_AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
