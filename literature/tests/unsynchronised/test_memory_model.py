"""Predictions of memory, and their errors around a change of rates."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings

from literature.unsynchronised import (
    Arrivals,
    BufferOptions,
    DisorderOptions,
    InputEstimate,
    JoinBuffers,
    ObliviousJoin,
    items_of,
    predicted_slots,
    slots_by_form,
    whole_sizes,
)
from literature.unsynchronised.reference import full_join
from literature.unsynchronised.testing import factors_of, scrambled_keys, workloads

TWO = [InputEstimate(rate=50, factor=100, multiplicity=2), InputEstimate(rate=25, factor=40, multiplicity=3)]
LAGS = [[0, 300], [-150, 0]]


def kept(strategy, **more):
    return [(one.join, one.sort, one.disk) for one in predicted_slots(TWO, LAGS, strategy, **more)]


def test_each_strategy_needs_what_its_formula_says():
    assert kept("plain") == [(100 + 80 + 300, 0, 0), (1, 0, 0)]
    assert kept("sort") == [(2 + 6 + 300, 100, 0), (1, 40, 0)]
    assert kept("disk", reserve=10) == [(100 + 80 + 10, 0, 300), (40 + 50 + 10, 0, 0)]
    assert kept("hybrid", reserve=10) == [(2 + 6 + 10, 100, 300), (3 + 1 + 10, 40, 0)]


def test_streams_that_are_synchronised_need_their_factors():
    (first, _) = predicted_slots(TWO, [[0, 0], [0, 0]])
    assert (first.join, first.memory) == (180, 180)


def test_an_input_without_a_rate_bounds_nothing():
    found = predicted_slots([TWO[0], InputEstimate(rate=0, factor=1)], LAGS)
    assert [one.join for one in found] == [inf, inf]


def found_with_sizes(arrivals, slots, inputs):
    """The number of results of a join whose buffers have the sizes of a formula."""
    buffers = JoinBuffers(inputs, BufferOptions(policy="sizes", sizes=[1] * inputs))
    return len(buffers.push(items_of(arrivals, 0), whole_sizes(slots)).members)


@settings(max_examples=200)
@given(workloads())
def test_buffers_of_the_sizes_of_the_count_form_find_everything(workload):
    inputs, arrivals = workload
    slots = slots_by_form(arrivals, factors_of(arrivals, inputs))
    pairs = list(zip(arrivals.inputs.tolist(), arrivals.keys.tolist(), strict=True))
    assert found_with_sizes(arrivals, slots, inputs) == len(full_join(pairs, inputs))


@settings(max_examples=200)
@given(workloads())
def test_the_form_with_the_closing_key_needs_no_more(workload):
    inputs, arrivals = workload
    factors = factors_of(arrivals, inputs)
    slots = slots_by_form(arrivals, factors)
    join = ObliviousJoin([DisorderOptions(factor=factor) for factor in factors], BufferOptions(traces=True))
    predicted = join.push(arrivals).predicted
    for number in range(inputs):
        has_begun = np.cumsum(arrivals.inputs == number) > 0
        assert (predicted[has_begun, number] <= slots[has_begun, number]).all()


def slowed(seed):
    """Two inputs of 50 arrivals per second; the second one is eight times as slow from 10 s to 40 s."""
    chosen = np.random.default_rng(seed)
    streams = [scrambled_keys(chosen, 5_000, 200, 2) for _ in range(2)]
    times = [np.cumsum(chosen.exponential(20_000, len(keys))).astype(np.int64) for keys in streams]
    gaps = np.diff(times[1], prepend=0)
    out, now = [], 0
    for gap in gaps.tolist():
        now += gap * 8 if 10_000_000 <= now < 40_000_000 else gap
        out.append(now)
    times[1] = np.array(out)
    inputs = np.repeat(np.array([0, 1], np.uint8), [len(keys) for keys in streams])
    together = np.concatenate(times)
    order = np.argsort(together, kind="stable")
    return Arrivals(inputs=inputs[order], keys=np.concatenate(streams)[order], times_us=together[order])


@pytest.mark.compiled
def test_around_a_change_of_rates_only_counts_find_everything():
    arrivals = slowed(3)
    factors = factors_of(arrivals, 2)
    counted, rated = slots_by_form(arrivals, factors), slots_by_form(arrivals, factors, 2_000_000)
    expected = len(ObliviousJoin([DisorderOptions(factor=factor) for factor in factors]).push(arrivals).members)
    around = (arrivals.times_us > 38_000_000) & (arrivals.times_us < 44_000_000)
    assert (np.abs(counted[around] - rated[around]).max(axis=0) > 50).any()
    assert found_with_sizes(arrivals, counted, 2) == expected
    assert found_with_sizes(arrivals, rated, 2) < 0.98 * expected
