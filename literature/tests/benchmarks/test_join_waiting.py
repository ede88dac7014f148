"""The experiments on unsynchronised joins, on few streams."""

import numpy as np
import pytest

from literature.benchmarks.join_waiting.experiments import (
    accuracy,
    correlation,
    curves,
    growth_needed,
    mean_memory,
    possible_results,
    sizes_of,
    windowed,
)
from literature.benchmarks.join_waiting.queries import QUERIES, Mode, run_query, streams_of
from literature.benchmarks.join_waiting.streams import INTERVAL_US, SECOND_US, Change, changed, made_stream
from literature.unsynchronised import STRATEGIES

pytestmark = pytest.mark.compiled


def test_streams_have_at_least_the_factor_that_was_chosen_and_few_more():
    for factor in (0, 30, 400):
        stream = made_stream(np.random.default_rng(factor), factor, seconds=60, dependent=factor)
        assert factor <= stream.factor <= 2 * factor + 2
        assert stream.dependent_factor >= factor // 2
        assert (np.diff(stream.times_us) >= 0).all()
        assert 2_500 < len(stream.keys) < 3_500


@pytest.mark.parametrize("congests", [False, True])
def test_a_slower_source_lags_for_good_and_a_congested_one_catches_up(congests):
    times = np.arange(0, 100 * SECOND_US, INTERVAL_US)
    found = changed(times, Change(first_s=10, last_s=40, rate=1 / 8, congests=congests))
    assert (np.diff(found) >= 0).all()
    during = int(((found >= 10 * SECOND_US) & (found < 40 * SECOND_US)).sum())
    assert during == pytest.approx(30 * 50 / 8, abs=2)
    lag_s = (found[-1] - times[-1]) / SECOND_US
    assert lag_s == pytest.approx(0 if congests else 30 * 7 / 8, abs=0.5)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("congests", [False, True])
def test_known_factors_find_everything_and_monitored_ones_nearly(seed, congests):
    streams = streams_of("Q1", seed, congests=congests)
    possible = possible_results("Q1", streams)
    for policy in ("keys", "counts"):
        assert accuracy(run_query("Q1", streams, Mode(policy=policy)), possible) == 1
        assert accuracy(run_query("Q1", streams, Mode(policy=policy, is_known=False)), possible) >= 0.99


def test_predicted_slots_rise_with_the_lag_and_follow_what_results_need():
    found = curves("Q1", streams_of("Q1", 4, most_factor=60))
    for number in (0, 2):
        assert found.predicted[35, number] >= 3 * found.predicted[9, number]
        assert correlation(found.predicted[:, number], found.optimal[:, number]) >= 0.95
    assert found.predicted[95, 2] > 1.2 * found.predicted[79, 2]
    assert (found.predicted >= found.optimal).all()


def test_a_window_join_with_the_same_mean_memory_loses_results():
    streams = streams_of("Q1", 3)
    possible = possible_results("Q1", streams)
    outcomes = run_query("Q1", streams, Mode(policy="counts"))
    assert accuracy(windowed("Q1", streams, sizes_of(outcomes)), possible) < 0.9
    assert growth_needed("Q1", streams, outcomes, possible) > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_hybrid_needs_least_memory_and_no_strategy_loses_results(query):
    """On Q1 this holds where the slow stream itself is out of order, as here; otherwise sort buffers cost more."""
    streams = streams_of(query, 1)
    possible = possible_results(query, streams)
    held = {}
    for strategy in STRATEGIES:
        outcomes = run_query(query, streams, Mode(strategy=strategy))
        assert accuracy(outcomes, possible) == 1
        held[strategy] = mean_memory(outcomes)
    assert held["hybrid"] <= min(held["sort"], held["disk"])
    assert held["disk"] < held["plain"]


def test_plain_results_are_immediate_and_sorted_ones_wait_for_the_factor():
    streams = streams_of("Q1", 6)
    longest = max(one.factor for one in streams) * INTERVAL_US
    delays = {}
    for strategy in STRATEGIES:
        one = run_query("Q1", streams, Mode(strategy=strategy))["J1"]
        waited = one.found.times_us - one.arrivals.times_us[one.found.members].max(axis=1)
        delays[strategy] = float(waited.mean())
        if strategy in ("sort", "hybrid"):
            assert waited.mean() < 3 * longest
            assert longest / 3 < waited.max()
    assert delays["plain"] <= delays["disk"] < delays["sort"]
    assert delays["hybrid"] == pytest.approx(delays["sort"], rel=0.2)
