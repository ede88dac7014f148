"""The exercise of aggregates reaches their kernels."""

from aggregates import AGGREGATE_EXERCISE
from aggregates.exercises import aggregated
from shards.kinds.aggregates import AggregateKind
from streams.compiling import run_exercise


def test_its_name_leads_to_it():
    assert AggregateKind.exercise == AGGREGATE_EXERCISE
    run_exercise(AGGREGATE_EXERCISE)
    assert aggregated() == 29
