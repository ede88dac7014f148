"""Cost functions as sums of their steps, and the purge threshold of least cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from literature.costs import (
    InputRates,
    UnitCosts,
    best_purge_threshold,
    hash_window_cost,
    on_the_fly_share,
    punctuated_cost,
    purge_cost,
    state_size,
)


def test_events_behind_the_punctuation_are_not_stored():
    assert [on_the_fly_share(lag) for lag in (-1, 0, 0.25, 1, 3)] == [1, 1, 0.75, 0, 0]


def test_costs_are_sums_of_their_steps():
    free = UnitCosts(comparison=0, insert=1, delete=1, schedule=4, results=3)
    mine = InputRates(events=100, punctuations=10, window=5, life=2, lag=0.5, scheduled=0.25)
    other = InputRates(events=50, window=5)
    assert punctuated_cost([mine, other], 0, free, buckets=64, sharing=2) == 100 * (2 * 0.5 * 2 + 3) + 10 * 0.25 * 4
    chains = UnitCosts(insert=0, delete=0, schedule=0, results=0)
    state = state_size(mine) + state_size(other)
    assert punctuated_cost([mine, other], 0, chains, buckets=64, sharing=2) == pytest.approx(110 * state / 256)
    assert hash_window_cost(mine, other, chains, buckets=64) == pytest.approx(100 * 250 / 64)
    assert hash_window_cost(mine, other, free, buckets=64) == 500


@given(st.floats(10, 1e4), st.floats(0.5, 50), st.floats(1, 100), st.sampled_from([4, 16, 64, 256]))
def test_the_best_purge_threshold_is_the_cheapest(state, garbage, spacing, buckets):
    best = best_purge_threshold(state, garbage, spacing, buckets)
    least = purge_cost(best, state, garbage, spacing, buckets)
    thresholds = np.geomspace(1, 10_000, 400)
    assert least <= min(purge_cost(each, state, garbage, spacing, buckets) for each in thresholds) * 1.0001


def test_the_best_purge_thresholds_of_the_specification():
    found = [best_purge_threshold(142, 7.0, 10, buckets) for buckets in (4, 16, 64, 256)]
    assert found == pytest.approx([5.7, 11.4, 22.8, 45.6], abs=0.1)
