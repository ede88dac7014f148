"""The estimate of a join's state, against the state itself."""

import math

import numpy as np
import pytest

from joins import Item, ItemColumns, Window, WindowJoin
from literature.costs import StateEstimator
from tests.builders.joins import GeneratedStream, generated

SECOND = 1_000_000


def hashed(items):
    """The same with spread keys, as the windowed join has them."""
    return ItemColumns(
        kinds=items.kinds,
        inputs=items.inputs,
        keys=items.keys * np.uint64(0x9E3779B97F4A7C15),
        times_us=items.times_us,
    )


def estimate_against_state(streams, windows, seconds):
    """The means of the estimate and of the stored events, after a sixth of the time."""
    items = generated(streams, seconds, seed=5)
    join, estimator = WindowJoin(windows), StateEstimator(windows, [stream.spacing > 0 for stream in streams])
    stored, estimated = [], []
    for start in range(0, len(items), 50):
        part = items.slice(start, start + 50)
        estimator.observe(part)
        join.push(hashed(part))
        if part.times_us[0] > seconds * SECOND / 6:
            stored.append(join.stored)
            estimated.append(sum(each.mean for each in estimator.estimates()))
    return float(np.mean(estimated)), float(np.mean(stored))


@pytest.mark.compiled
@pytest.mark.parametrize("spacing", [10, 40])
@pytest.mark.parametrize("window", [Window("time", SECOND // 4), Window("time", 20 * SECOND), Window()])
def test_the_estimate_is_within_15_percent_of_synchronous_streams(spacing, window):
    streams = [GeneratedStream(spacing=spacing)] * 2
    estimate, state = estimate_against_state(streams, [window, window], 60)
    assert estimate == pytest.approx(state, rel=0.15)


def test_an_input_that_never_closes_holds_the_other_one_for_a_window():
    streams = [GeneratedStream(spacing=20), GeneratedStream(spacing=0, advance=20)]
    windows = [Window("time", SECOND)] * 2
    estimator = StateEstimator(windows, [True, False])
    estimator.observe(generated(streams, 20, seed=5))
    first, second = estimator.estimates()
    assert first.mean == pytest.approx(500, rel=0.15)
    assert second.mean < 0.8 * 500
    assert first.median == pytest.approx(500, rel=0.15)
    assert first.high >= first.median


def test_a_lasting_change_of_the_rate_is_followed():
    estimator = StateEstimator([Window("time", SECOND)] * 2, [False, False], horizon=16)
    times = np.concatenate([np.arange(0, 20 * SECOND, 10_000), np.arange(20 * SECOND, 40 * SECOND, 1_000)])
    items = ItemColumns.of([(Item.EVENT, 0, place % 7, int(time)) for place, time in enumerate(times)])
    estimator.observe(items)
    assert estimator.estimates()[0].mean == pytest.approx(1000, rel=0.1)
    assert estimator.estimates()[1].mean == 0


def test_without_a_bound_the_estimate_is_infinite():
    estimator = StateEstimator([Window(), Window()], [True, False])
    estimator.observe(generated([GeneratedStream(spacing=20), GeneratedStream(spacing=0, advance=20)], 5, seed=5))
    first, second = estimator.estimates()
    assert math.isinf(first.mean)
    assert second.mean < 2_500
    with pytest.raises(ValueError, match="number of events"):
        StateEstimator([Window("events", 3), Window()], [True, True])


def test_a_record_of_a_key_says_how_long_its_events_stay():
    estimator = StateEstimator([Window(), Window()], [True, True])
    rows = [(Item.EVENT, 0, 5, 0), (Item.EVENT, 0, 5, 4), (Item.EVENT, 1, 5, 4), (Item.CLOSING, 0, 5, 10)]
    estimator.observe(ItemColumns.of([*rows, (Item.CLOSING, 1, 5, 15)]))
    (record,) = estimator.records(0)
    assert (record.events, record.life_us, record.lag, record.stay_us) == (2, 10, 1.5, 10)
