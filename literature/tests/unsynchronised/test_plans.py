"""Bounds of intermediate streams."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from literature.unsynchronised import (
    Arrivals,
    DisorderOptions,
    InputEstimate,
    ObliviousJoin,
    OtherKey,
    PlannedJoin,
    dependent_factor,
    derived,
    joined_estimate,
    scaled_dependent_factor,
    scrambling_factor,
)
from literature.unsynchronised.reference import dependent_factor_by_pairs, multiplicity
from literature.unsynchronised.testing import factors_of, interleaved, workloads

columns = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=14)


def estimates_of(arrivals, inputs):
    """Estimates of the inputs, with the number of arrivals as the rate."""
    found = []
    for number, factor in enumerate(factors_of(arrivals, inputs)):
        keys = arrivals.keys[arrivals.inputs == number]
        found.append(InputEstimate(rate=len(keys), factor=factor, multiplicity=multiplicity(keys.tolist()) or 1))
    return found


def joined(arrivals, inputs):
    options = [DisorderOptions(factor=factor) for factor in factors_of(arrivals, inputs)]
    return ObliviousJoin(options).push(arrivals).members


@settings(max_examples=400)
@given(workloads())
def test_the_output_of_a_join_is_within_its_bounds(workload):
    inputs, arrivals = workload
    keys = arrivals.keys[joined(arrivals, inputs)[:, 0]]
    bound = joined_estimate(estimates_of(arrivals, inputs))
    assert scrambling_factor(keys) <= bound.factor
    assert multiplicity(keys.tolist()) <= bound.multiplicity
    assert len(keys) <= bound.rate


@settings(max_examples=400)
@given(workloads(), st.integers(0, 2**32))
def test_the_output_on_another_key_is_within_its_bounds(workload, seed):
    inputs, arrivals = workload
    estimates = estimates_of(arrivals, inputs)
    values = arrivals.keys + np.random.default_rng(seed).integers(-3, 4, len(arrivals))
    is_own = arrivals.inputs == 1
    key = OtherKey(
        source=1,
        dependent_factor=dependent_factor(arrivals.keys[is_own], values[is_own]),
        multiplicity=multiplicity(values[is_own].tolist()) or 1,
    )
    bound = derived(PlannedJoin(inputs=tuple(estimates), other_key=key))
    found = values[joined(arrivals, inputs)[:, 1]]
    assert scrambling_factor(found) <= bound.factor
    assert multiplicity(found.tolist()) <= bound.multiplicity


@settings(max_examples=150)
@given(workloads(12), workloads(12), st.integers(0, 2**32))
def test_a_join_of_joins_with_derived_factors_loses_nothing_and_is_within_its_bounds(left, right, seed):
    outputs, plans = [], []
    for inputs, arrivals in (left, right):
        outputs.append(arrivals.keys[joined(arrivals, inputs)[:, 0]])
        plans.append(PlannedJoin(inputs=tuple(estimates_of(arrivals, inputs))))
    arrivals = interleaved(np.random.default_rng(seed), outputs)
    found = ObliviousJoin([DisorderOptions(factor=derived(plan).factor) for plan in plans]).push(arrivals).members
    assert len(found) == sum(int((outputs[1] == key).sum()) for key in outputs[0])
    assert scrambling_factor(arrivals.keys[found[:, 0]]) <= derived(PlannedJoin(inputs=tuple(plans))).factor


@given(columns)
def test_the_dependent_factor_is_that_of_the_definition(rows):
    first, second = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    assert dependent_factor(first, second) == dependent_factor_by_pairs(first.tolist(), second.tolist())


@given(columns)
def test_any_order_of_the_first_column_is_within_twice_its_factor_and_the_dependent_one(rows):
    first, second = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    assert scrambling_factor(second) <= 2 * scrambling_factor(first) + dependent_factor(first, second)


def test_the_counter_example_refutes_the_dependent_factor_as_it_is():
    """Each key of the first input comes 4 times; the second one has (i, 7 - i)."""
    rows = [(0, key, 0) for key in range(1, 7) for _ in range(4)] + [(1, key, 1) for key in range(1, 7)]
    arrivals = Arrivals.of(rows)
    members = joined(arrivals, 2)
    found = 7 - arrivals.keys[members[:, 1]]
    dependent = dependent_factor(np.arange(1, 7), 7 - np.arange(1, 7))
    estimates = estimates_of(arrivals, 2)
    factor = joined_estimate(estimates).factor
    assert (scrambling_factor(found), dependent, factor) == (23, 5, 3)
    assert scrambling_factor(found) > 2 * factor + dependent
    assert scaled_dependent_factor(dependent, [4]) == 23
    key = OtherKey(source=1, dependent_factor=dependent, multiplicity=1)
    assert scrambling_factor(found) <= derived(PlannedJoin(inputs=tuple(estimates), other_key=key)).factor
