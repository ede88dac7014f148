"""Intervals of whole numbers against a set of the same numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.finished_ranges import Intervals
from streams import GREATEST_NUMBER, LEAST_NUMBER, KeyRange

NUMBERS = st.integers(-6, 6)
RANGES = st.builds(KeyRange, low=NUMBERS, high=NUMBERS)
FEWEST, MOST = LEAST_NUMBER, GREATEST_NUMBER


@given(st.lists(RANGES, max_size=10))
def test_intervals_are_the_union_of_their_ranges_and_as_few_as_can_be(ranges):
    every = range(-7, 8)
    expected = {number for one in ranges for number in range(one.least, one.greatest + 1)}
    intervals = Intervals(ranges)
    assert intervals.covers(np.array(every)).tolist() == [number in expected for number in every]
    assert len(intervals) == sum(number in expected and number - 1 not in expected for number in every)
    assert sorted(intervals.pairs()) == intervals.pairs()


@given(st.permutations(range(12)))
def test_dense_numbers_become_one_interval(order):
    assert Intervals(KeyRange(low=number, high=number) for number in order).pairs() == [[0, 11]]


@pytest.mark.parametrize(
    ("ranges", "pairs"),
    [
        ([KeyRange(low=5)], [[5, MOST]]),
        ([KeyRange(high=5), KeyRange(low=6)], [[FEWEST, MOST]]),
        ([KeyRange(low=MOST), KeyRange(high=FEWEST)], [[FEWEST, FEWEST], [MOST, MOST]]),
        ([KeyRange(low=MOST), KeyRange(low=MOST - 1, high=MOST - 1)], [[MOST - 1, MOST]]),
        ([KeyRange(high=FEWEST), KeyRange(low=FEWEST + 1, high=0), KeyRange(low=2, high=1)], [[FEWEST, 0]]),
    ],
)
def test_the_least_and_the_greatest_number_have_no_neighbours(ranges, pairs):
    intervals = Intervals(ranges)
    assert intervals.pairs() == pairs
    assert intervals.covers(np.array([FEWEST, MOST])).tolist() == [pairs[0][0] == FEWEST, pairs[-1][1] == MOST]
