import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.blob import pack, unpack
from pipeline.errors import SavedStateError

FORMAT_1 = bytes.fromhex(
    "465353480100"
    "fe7f344e6583b262c147e4e3c3cacca7222abd85617a68d77c0606ff4bd8d867"
    "25000000"
    "7b2268656164223a7b227368617264223a337d2c2273656374696f6e73223a5b322c305d7d"
    "6162"
)


def test_bytes_of_format_1_are_read_and_written_for_good():
    assert unpack(FORMAT_1) == ({"shard": 3}, [b"ab", b""])
    assert pack({"shard": 3}, [b"ab", b""]) == FORMAT_1


@given(st.dictionaries(st.text(), st.integers(0, 9)), st.lists(st.binary(max_size=50), max_size=4))
def test_unpack_gives_what_was_packed(head, sections):
    assert unpack(pack(head, sections)) == (head, sections)


@given(st.data())
def test_a_changed_byte_is_noticed(data):
    packed = bytearray(pack({"shard": 3}, [b"some bytes", b""]))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SavedStateError):
        unpack(bytes(packed))


@given(st.integers(0, 80))
def test_a_cut_is_noticed(size):
    packed = pack({"shard": 3}, [b"some bytes"])
    with pytest.raises(SavedStateError):
        unpack(packed[: min(size, len(packed) - 1)])


def test_another_version_is_refused_by_its_number():
    packed = bytearray(pack({}, []))
    packed[4] = 2
    with pytest.raises(SavedStateError, match="format 2; this release reads 1"):
        unpack(bytes(packed))
