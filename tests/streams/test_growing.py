"""Growing columns contain the values that were added, and copy at most a constant per row."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import GrowingNumbers, GrowingTexts, pieces_of, texts_of


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=8))
def test_numbers_are_those_that_were_added(parts):
    grown = GrowingNumbers(np.zeros(0, np.int64))
    for part in parts:
        grown.add(np.array(part, np.int64))
    assert grown.values.tolist() == [number for part in parts for number in part]
    assert len(grown) == sum(map(len, parts))


@given(st.lists(st.lists(st.text(max_size=4), max_size=5), min_size=1, max_size=8), st.data())
def test_texts_are_those_that_were_added(parts, data):
    grown = GrowingTexts(texts_of(parts[0]))
    for part in parts[1:]:
        padded = texts_of(["before", *part, "behind"])
        grown.add(padded.slice(1, len(part)))
    whole = [text for part in parts for text in part]
    rows = data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=6)) if whole else []
    found = grown.take(np.array(rows, np.intp))
    assert found.type == pa.string()
    assert found.to_pylist() == [whole[row] for row in rows]
    assert len(grown) == len(whole)


def test_bytes_stay_bytes():
    grown = GrowingTexts(pieces_of([b"\xff"], pa.binary()))
    grown.add(pieces_of([b"", b"\x00a"], pa.binary()))
    found = grown.take(np.array([2, 0, 1]))
    assert found.type == pa.binary()
    assert found.to_pylist() == [b"\x00a", b"\xff", b""]


@pytest.mark.parametrize("size", [1, 7])
def test_room_is_made_seldom(size):
    grown, rooms = GrowingNumbers(np.zeros(0, np.int64)), set()
    for _ in range(1_000):
        grown.add(np.zeros(size, np.int64))
        room = grown.values.base
        assert room is not None
        rooms.add(len(room))
    assert len(rooms) <= 1 + np.log2(1_000 * size)
    assert max(rooms) <= 2 * len(grown) + size
