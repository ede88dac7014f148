"""Hashes of keys decide shards and are stored: they never change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streams import MAX_SHARDS, key_hash, shard_of
from tests.builders.streams import texts


def test_hashes_are_those_of_the_first_release() -> None:
    assert [key_hash(key) for key in ("", "order-1", "Åse")] == [
        13_020_603_013_274_838_756,
        4_396_106_474_611_317_029,
        7_480_356_276_259_224_916,
    ]


@given(texts(), st.integers(1, 64))
def test_a_key_has_one_shard_within_range(key: str, shards: int) -> None:
    assert 0 <= key_hash(key) < 2**64
    assert 0 <= shard_of(key_hash(key), shards) < shards


@given(st.lists(texts(), min_size=1, max_size=5), st.integers(1, MAX_SHARDS))
def test_a_column_of_keys_has_the_shards_of_its_keys(keys: list[str], shards: int) -> None:
    hashes = [key_hash(key) for key in keys]
    homes = shard_of(np.array(hashes, dtype=np.uint64), shards)
    assert homes.tolist() == [shard_of(hashed, shards) for hashed in hashes]
