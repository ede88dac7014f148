"""Measured lags, compared with their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import JoinStateError
from literature.unsynchronised import Arrivals, DisorderMonitor, DisorderOptions, LagMonitor, ObliviousJoin, items_of
from literature.unsynchronised.reference import closing_key, lag
from literature.unsynchronised.testing import factors_of, interleaved, scrambled_keys, workloads


def observed(arrivals, options, cuts=()):
    monitor, lags = DisorderMonitor(options), LagMonitor(len(options))
    items = items_of(arrivals, 0)
    monitor.observe(items)
    for part in np.split(items, cuts):
        lags.observe(part)
    return lags


@settings(max_examples=200)
@given(workloads(), st.data())
def test_a_measured_lag_is_that_of_the_definition_or_above_it(workload, data):
    inputs, arrivals = workload
    factors = factors_of(arrivals, inputs)
    size = data.draw(st.integers(0, len(arrivals)))
    found = observed(arrivals.slice(0, size), [DisorderOptions(factor=factor) for factor in factors]).lags()
    whole = [arrivals.keys[arrivals.inputs == number].tolist() for number in range(inputs)]
    places = [np.flatnonzero(arrivals.inputs[:size] == number) for number in range(inputs)]
    for other in range(inputs):
        rank = len(places[other]) - factors[other]
        if rank <= 0:
            assert np.isnan(np.delete(found[:, other], other)).all()
            continue
        then = places[other][rank - 1]  # when the other input brought its last arrival that nothing precedes
        for number in set(range(inputs)) - {other}:
            arrived = int((places[number] <= then).sum())
            expected = lag(whole[number], whole[other], arrived, rank)
            assert found[number, other] >= expected
            passed = sorted(whole[other])[rank - 1]
            if passed <= closing_key(whole[number][: len(places[number])], factors[number]):
                assert found[number, other] == expected


def test_streams_in_step_have_no_lag_and_one_ahead_leads_by_its_arrivals():
    rows = [(0, key, 0) for key in range(40)]
    rows += [(number, key + 40 * (number == 0), 1) for key in range(100) for number in (0, 1)]
    lags = observed(Arrivals.of(rows), [DisorderOptions(factor=0)] * 2).lags()
    assert lags[0, 1] == 40
    assert -40 <= lags[1, 0] < 0  # what lags is known from below only: keys that it may still bring are not counted


@settings(max_examples=150)
@given(workloads(), st.data())
def test_neither_cuts_nor_reloads_change_lags(workload, data):
    inputs, arrivals = workload
    options = [DisorderOptions(block_rows=4, blocks=2)] * inputs
    whole = observed(arrivals, options)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arrivals)), max_size=3)))
    parts = observed(arrivals, options, cuts)
    again = LagMonitor(inputs)
    again.load(*parts.dump())
    for lags in (parts, again):
        assert np.array_equal(lags.lags(), whole.lags(), equal_nan=True)


@pytest.mark.compiled
def test_cuts_change_no_lag_where_keys_are_forgotten_and_factors_grow():
    chosen = np.random.default_rng(3)
    streams = [scrambled_keys(chosen, 6_000, 10 + 90 * number, 2) for number in range(2)]
    arrivals = interleaved(chosen, streams)
    options = [DisorderOptions(block_rows=500, blocks=2, warm_up=0)] * 2
    whole = observed(arrivals, options)
    parts = observed(arrivals, options, range(7, len(arrivals), 311))
    assert np.array_equal(parts.lags(), whole.lags())
    assert max(len(keys) for keys in whole._keys) < 2_000


@pytest.mark.compiled
def test_what_every_input_has_passed_is_counted_and_not_kept():
    rows = [(number, key, 0) for key in range(20_000) for number in (0, 1)]
    lags = observed(Arrivals.of(rows), [DisorderOptions(factor=5)] * 2, range(1_000, 40_000, 1_000))
    assert sum(len(one) for one in (*lags._keys, *lags._rows)) < 1_200
    assert abs(lags.lags()[0, 1]) <= 1


def test_a_join_measures_lags_if_it_is_asked_to_and_saves_them():
    rows = [(0, key, 0) for key in range(40)] + [(1, key, 1) for key in range(10)]
    options = [DisorderOptions(factor=0, most=30)] * 2
    join, again = ObliviousJoin(options, measures_lags=True), ObliviousJoin(options, measures_lags=True)
    join.push(Arrivals.of(rows))
    again.load(*join.dump())
    for one in (join, again):
        found = one.lags()
        assert found is not None
        assert found[0, 1] == 30
    join.push(Arrivals.of([(0, 0, 2)]))  # keys begin again
    found = join.lags()
    assert found is not None
    assert np.isnan(found[0, 1])
    assert ObliviousJoin(options).lags() is None


def test_a_damaged_state_is_refused():
    with pytest.raises(JoinStateError, match="cannot be read"):
        LagMonitor(2).load({}, {})
