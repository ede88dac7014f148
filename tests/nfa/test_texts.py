"""Interned texts keep their numbers, through growth, compaction and saving."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa.conditions.texts import DROPPED, TextPool
from nfa.errors import StateFormatError

words = st.lists(st.text(max_size=5), max_size=30)


def texts_of(pool: TextPool) -> list[str]:
    return [pool.text(number) for number in range(len(pool))]


@given(words)
def test_equal_texts_have_equal_numbers_and_numbers_lead_back(texts):
    pool = TextPool(texts=1, size_bytes=1)
    numbers = pool.intern_all(texts).tolist()
    assert numbers == [pool.intern(text) for text in texts]
    assert [pool.text(number) for number in numbers] == texts
    assert texts_of(pool) == list(dict.fromkeys(texts))
    assert pool.size_bytes == sum(len(text.encode()) for text in set(texts))


@given(words, st.data())
def test_compaction_keeps_what_is_used_in_order(texts, data):
    pool = TextPool(texts=1, size_bytes=1)
    pool.intern_all(texts)
    before = texts_of(pool)
    used = data.draw(st.lists(st.integers(0, len(before) - 1))) if before else []
    renumbering = pool.compact(np.array(used, np.int64))
    assert texts_of(pool) == [text for number, text in enumerate(before) if number in used]
    assert [number for number, new in enumerate(renumbering.tolist()) if new != DROPPED] == sorted(set(used))
    assert all(pool.text(int(renumbering[number])) == before[number] for number in used)
    assert pool.intern("a text that was not there before") == len(set(used))


@given(words)
def test_a_saved_pool_goes_on_as_before(texts):
    pool = TextPool()
    pool.intern_all(texts)
    loaded = TextPool.load(*pool.dump())
    assert texts_of(loaded) == texts_of(pool)
    assert loaded.intern("a text that was not there before") == pool.intern("a text that was not there before")
    assert loaded.intern_all(texts).tolist() == pool.intern_all(texts).tolist()


@pytest.mark.parametrize(
    ("offsets", "body"),
    [
        ([], b""),
        ([1, 1], b"a"),
        ([0, 2], b"a"),
        ([0, 2, 1], b"a"),
        ([0, 1, 2], b"aa"),
        ([0, 1], b"\xff"),
    ],
)
def test_damaged_texts_are_refused(offsets, body):
    with pytest.raises(StateFormatError):
        TextPool.load(np.array(offsets, np.int64), np.frombuffer(body, np.uint8))


def test_a_number_that_is_not_there_is_refused():
    with pytest.raises(IndexError):
        TextPool().text(0)
