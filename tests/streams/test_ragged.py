"""The order of rows of different lengths is that of Python's lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import ascending_words, ragged_order, ragged_places

SMALL = st.integers(0, 2)
HUGE = st.sampled_from([0, 1, 2**60, 2**62])  # beyond what fits into one number with its group and place


def flat(rows):
    ends = np.cumsum([0, *map(len, rows)])[1:].astype(np.int64)
    return np.array([word for row in rows for word in row], np.int64), ends


@pytest.mark.parametrize("word", [SMALL, HUGE], ids=["small", "huge"])
@given(data=st.data())
def test_order_is_that_of_lists(word, data):
    rows = data.draw(st.lists(st.lists(word, max_size=5), max_size=25))
    keys = [
        np.array(data.draw(st.lists(SMALL, min_size=len(rows), max_size=len(rows))), np.int64)
        for _ in range(data.draw(st.integers(0, 2)))
    ]
    values = [(*(int(key[number]) for key in keys), row) for number, row in enumerate(rows)]
    expected = sorted(range(len(rows)), key=values.__getitem__)
    found = ragged_order(keys, *flat(rows))
    assert found.rows.tolist() == expected
    equal = [place > 0 and values[row] == values[expected[place - 1]] for place, row in enumerate(expected)]
    assert found.repeats.tolist() == equal


@given(st.lists(st.lists(SMALL, max_size=4), max_size=9), st.data())
def test_places_are_those_of_the_chosen_rows(rows, data):
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=9)) if rows else []
    words, ends = flat(rows)
    sizes = np.array([len(row) for row in rows], np.int64)
    starts = ends - sizes
    picked = np.array(chosen, np.intp)
    places = ragged_places(starts[picked], sizes[picked])
    assert words[places].tolist() == [word for row in chosen for word in rows[row]]


@pytest.mark.parametrize("word", [SMALL, HUGE], ids=["small", "huge"])
@given(data=st.data())
def test_words_ascend_within_their_row(word, data):
    rows = data.draw(st.lists(st.lists(word, max_size=5), max_size=9))
    assert ascending_words(*flat(rows)).tolist() == [one for row in rows for one in sorted(row)]
