"""The shapes of the experiments of punctuation-aware joins, on counters of short runs."""

import numpy as np
import pytest

from literature.benchmarks.join_tables import tombstones
from literature.benchmarks.join_tables.runs import (
    SpillingCase,
    comparisons_of_look_ups,
    run_spilling,
    run_windowed,
    two,
)
from literature.benchmarks.join_tables.unwindowed import XJOIN, mean_state, mean_work, runs_of
from literature.benchmarks.join_tables.windows import droppable_items, of_seconds
from literature.costs import best_purge_threshold
from tests.builders.joins import GeneratedStream, generated


def test_xjoin_grows_and_pjoin_stays_flat():
    (plain,), (aware,) = runs_of(12, 1, XJOIN, 40), runs_of(12, 1, SpillingCase(), 40)
    held, middle = plain.state.sum(axis=1), len(plain.state) // 2
    assert held[-1] == plain.stats.events
    assert held[-1] == pytest.approx(2 * held[middle], rel=0.1)
    flat = aware.state.sum(axis=1)
    assert flat[middle:].mean() < 1.5 * flat[len(flat) // 6 : middle].mean() < 0.1 * held[-1]
    assert aware.work[-1] < plain.work[-1]
    assert aware.stats.memory_results == plain.stats.memory_results


def test_lazier_purges_hold_more_and_cost_less_up_to_a_point():
    states, works = {}, {}
    for purge in (1, 10, 100, 800):
        runs = runs_of(12, 1, SpillingCase(purge=purge), 10)
        states[purge], works[purge] = mean_state(runs), mean_work(runs)
    assert states[1] < states[10] < states[100] < states[800]
    assert works[1] > works[10] > works[100] < works[800]


@pytest.mark.parametrize("buckets", [16, 64])
def test_the_purge_threshold_of_the_cost_model_is_near_the_best(buckets):
    def case(purge):
        return SpillingCase(purge=purge, buckets=buckets, placement="scattered")

    eager = runs_of(12, 1, case(1), 10)
    garbage = eager[0].stats.purged / (eager[0].stats.events / 10)
    best = round(best_purge_threshold(mean_state(eager), garbage, 10, buckets))
    sweep = [mean_work(runs_of(12, 1, case(purge), 10)) for purge in (1, 5, 10, 20, 50, 200)]
    assert mean_work(runs_of(12, 1, case(best), 10)) <= 1.25 * min(sweep)


def test_an_input_that_closes_keys_sooner_waits_for_the_other_one():
    runs = {second: runs_of(12, 1, SpillingCase(), 10, second)[0] for second in (20, 40)}
    assert runs[40].state[-1, 0] > 1.2 * runs[20].state[-1, 0]
    assert all(run.state[:, 1].mean() < 0.02 * run.state[:, 0].mean() for run in runs.values())
    eager, plain = mean_work([runs[20]]), mean_work(runs_of(12, 1, XJOIN, 10, 20))
    lazy = mean_work(runs_of(12, 1, SpillingCase(purge=100), 10, 20))
    assert eager >= plain
    assert lazy <= eager / 3
    assert runs[40].work[-1] < runs[20].work[-1]


def test_keys_are_propagated_evenly_and_once_for_each_closed_pair():
    items = two(12, 0, GeneratedStream(spacing=40))
    run = run_spilling(items, SpillingCase(propagation="pair"))
    counts = np.histogram(list(run.over_us.values()), bins=4, range=(0, 12e6))[0]
    assert counts.min() > 0.8 * counts.max()
    assert len(run.over_us) == run.stats.propagated


def test_windows_and_punctuations_together_hold_less():
    items = two(12, 1, GeneratedStream(spacing=100))
    saved = []
    for span in (1, 5):
        aware, plain = run_windowed(items, of_seconds(span)), run_windowed(items, of_seconds(span), 64)
        assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
        saved.append(1 - np.mean(aware.state) / np.mean(plain.state))
        compared = plain.plain.comparisons / plain.plain.events
        assert comparisons_of_look_ups(items, of_seconds(span), every=50) < 2 < compared
    assert saved[1] > saved[0] > 0.1


def test_a_window_closes_keys_earlier_and_drops_what_lags():
    items = generated([GeneratedStream(spacing=30), GeneratedStream(spacing=30, shift=-22)], 12, seed=1)
    aware, plain = run_windowed(items, of_seconds(1)), run_windowed(items, of_seconds(1), 64)
    unwindowed = run_spilling(items, SpillingCase(propagation="push"))
    assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
    assert aware.causes[1] == aware.causes.sum() > len(unwindowed.over_us)
    both = aware.over_us.keys() & unwindowed.over_us.keys()
    assert len(both) > 100
    assert np.mean([unwindowed.over_us[key] - aware.over_us[key] for key in both]) > 100_000
    assert aware.aware.dropped > 0.2 * aware.aware.events


def test_one_input_of_four_with_punctuations_saves_memory_and_loses_nothing():
    items = droppable_items(40, 1)
    aware, plain = run_windowed(items, of_seconds(10, 4)), run_windowed(items, of_seconds(10, 4), 1024)
    assert (aware.results, aware.checksum) == (plain.results, plain.checksum)
    half = len(aware.state) // 2
    assert np.mean(aware.state[half:]) <= 0.7 * np.mean(plain.state[half:])
    assert aware.aware.dropped > 0.25 * aware.aware.events


@pytest.mark.parametrize("inputs", [2, 4])
def test_without_punctuations_keys_stay_within_the_window(inputs):
    items = generated([GeneratedStream(active=50, spacing=0, advance=2)] * inputs, 10, seed=1)
    aware = run_windowed(items, of_seconds(1, inputs))
    assert aware.aware.lookups == aware.aware.events
    assert aware.aware.keys <= np.unique(items.keys[-700 * inputs :]).size
    assert np.unique(items.keys).size > 5 * aware.aware.keys


def test_finished_keys_are_forgotten_beyond_a_number_and_results_stay_exact():
    shown = {what: (measured, expected) for _, what, measured, expected in tombstones.tables(120_000)}
    assert shown["results"] == ("119,500", "119,500")
    assert shown["most keys remembered of 120,000"] == ("1,500", "at most 1,500")
    assert int(shown["most keys known"][0].replace(",", "")) < 6_000
