import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.blob import pack, seal, unpack
from shards.errors import SavedStateError

FORMAT_1 = bytes.fromhex(
    "465353480100"
    "fe7f344e6583b262c147e4e3c3cacca7222abd85617a68d77c0606ff4bd8d867"
    "25000000"
    "7b2268656164223a7b227368617264223a337d2c2273656374696f6e73223a5b322c305d7d"
    "6162"
)
FORMAT_2 = bytes.fromhex(
    "465353480200"
    "a7d7a222d4f98c7ab0e806ac18b6b942be36f26c816143c4ea7c46092a37ba02"
    "2d000000"
    "7b2268656164223a7b227368617264223a337d2c2273656374696f6e73223a7b2261223a322c2262223a307d7d"
    "6162"
)


def test_bytes_of_format_1_are_read_for_good():
    assert unpack(FORMAT_1) == (1, {"shard": 3}, {"0": b"ab", "1": b""})


def test_bytes_of_format_2_are_read_and_written_for_good():
    assert unpack(FORMAT_2) == (2, {"shard": 3}, {"a": b"ab", "b": b""})
    assert b"".join(seal(pack({"shard": 3}, {"b": b"", "a": b"ab"}))) == FORMAT_2


@given(st.dictionaries(st.text(), st.integers(0, 9)), st.dictionaries(st.text(), st.binary(max_size=50), max_size=4))
def test_unpack_gives_what_was_packed(head, sections):
    assert unpack(b"".join(seal(pack(head, sections)))) == (2, head, sections)


@given(st.data())
def test_a_changed_byte_is_noticed(data):
    packed = bytearray(b"".join(seal(pack({"shard": 3}, {"a": b"some bytes", "b": b""}))))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SavedStateError):
        unpack(bytes(packed))


@given(st.integers(0, 80))
def test_a_cut_is_noticed(size):
    packed = b"".join(seal(pack({"shard": 3}, {"a": b"some bytes"})))
    with pytest.raises(SavedStateError):
        unpack(packed[: min(size, len(packed) - 1)])


def test_another_version_is_refused_by_its_number():
    packed = bytearray(b"".join(seal(pack({}, {}))))
    packed[4] = 3
    with pytest.raises(SavedStateError, match="format 3; this release reads 1 and 2"):
        unpack(bytes(packed))
