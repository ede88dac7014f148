"""Hashes of keys decide shards and are stored: they never change."""

from hypothesis import given
from hypothesis import strategies as st

from streams import key_hash, shard_of
from streams.testing import texts


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
