"""Monitors of disorder against the definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import JoinStateError
from literature.kernels.unsynchronised import tables
from literature.unsynchronised import DisorderMonitor, DisorderOptions, rate_at, scrambling_factor
from literature.unsynchronised.reference import (
    NEVER,
    closing_key,
    lag,
    multiplicity,
    scrambling_factor_by_pairs,
    virtual_indices,
)

FIRST = [63, 63, 66, 62, 64, 68, 67]
SECOND = [62, 65, 63, 68, 64, 70, 69]

streams = st.lists(st.integers(-4, 12), max_size=30)


def items_of(keys, number=0):
    items = np.zeros(len(keys), tables.ITEM)
    items["key"], items["input"] = keys, number
    return items


def observed(keys, **options):
    monitor = DisorderMonitor([DisorderOptions(**{"warm_up": 0, **options})])
    items = items_of(keys)
    assert monitor.observe(items) == len(items)
    return monitor.of_input(0), items


def random_streams(count, seed):
    """Rising keys with gaps and duplicates, permuted in blocks of random size."""
    chosen = np.random.default_rng(seed)
    for _ in range(count):
        keys = np.cumsum(chosen.integers(0, 3, chosen.integers(1, 40)))
        block = int(chosen.integers(1, 12))
        for start in range(0, len(keys), block):
            chosen.shuffle(keys[start : start + block])
        yield keys


@pytest.mark.compiled
def test_the_record_stack_gives_the_factor_of_the_definition_on_ten_thousand_streams():
    for keys in random_streams(10_000, 1):
        found, _ = observed(keys, is_exact=True)
        expected = scrambling_factor_by_pairs(keys.tolist())
        assert (found.factor, scrambling_factor(keys)) == (expected, expected)


@given(streams)
def test_the_monitor_knows_what_the_definitions_say(keys):
    found, _ = observed(keys)
    assert found.factor == scrambling_factor_by_pairs(keys)
    assert found.multiplicity == multiplicity(keys)
    assert found.highest_key == max(keys, default=None)
    assert (found.arrivals, found.underflows) == (len(keys), 0)
    assert found.factor >= found.multiplicity - 1


def test_the_golden_example_gives_lags_of_0_and_3_and_factors_of_3():
    assert lag(FIRST, SECOND, 3, 2) == 0
    assert lag(FIRST, SECOND, 7, 4) == 3
    assert observed(FIRST)[0].factor == 3
    assert observed(SECOND)[0].factor == 3


@pytest.mark.compiled
def test_every_later_key_is_above_the_closing_key_at_every_prefix_of_a_thousand_streams():
    for keys in random_streams(1_000, 2):
        factor = scrambling_factor(keys)
        _, items = observed(keys, factor=factor)
        for place, closing in enumerate(items["closing"].tolist()):
            assert closing == closing_key(keys[: place + 1].tolist(), factor)
            assert (keys[place + 1 :] > closing).all()


@given(streams)
def test_positions_differ_from_virtual_indices_by_the_factor_at_most(keys):
    factor = scrambling_factor(np.array(keys, np.int64))
    for place, (first, last) in enumerate(virtual_indices(keys), start=1):
        assert place - first <= factor
        assert last - place <= factor


@given(streams, st.data())
def test_a_part_of_a_stream_is_no_more_disordered(keys, data):
    part = [key for key in keys if data.draw(st.booleans())]
    assert scrambling_factor_by_pairs(part) <= scrambling_factor_by_pairs(keys)


@given(streams)
def test_a_sorted_stream_has_its_multiplicity_less_1_as_factor(keys):
    assert scrambling_factor(np.array(sorted(keys), np.int64)) == max(multiplicity(keys) - 1, 0)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=40), st.data())
def test_neither_cuts_nor_reloads_change_what_monitors_say(rows, data):
    options = [DisorderOptions(block_rows=4, blocks=2, warm_up=0), DisorderOptions(factor=3)]
    whole, parts = DisorderMonitor(options), DisorderMonitor(options)
    items = items_of([key for _, key in rows], [number for number, _ in rows])
    again = items.copy()
    whole.observe(items)
    border = data.draw(st.integers(0, len(rows)))
    parts.observe(again[:border])
    saved, parts = parts.dump(), DisorderMonitor(options)
    parts.load(*saved)
    parts.observe(again, border)
    assert again.tolist() == items.tolist()
    assert [parts.of_input(number) for number in (0, 1)] == [whole.of_input(number) for number in (0, 1)]


def test_a_monitored_factor_forgets_what_was_long_ago():
    keys = np.arange(200)
    keys[10] = 2  # 8 positions late
    options = {"block_rows": 20, "blocks": 3}
    _, items = observed(keys, **options)
    factors = items["factor"].tolist()
    assert (factors[9], factors[10], factors[59], factors[60]) == (0, 8, 8, 1)
    assert observed(keys, **options, headroom=1.25)[1]["factor"][10] == 10


def test_each_input_has_its_own_number_of_blocks():
    monitor = DisorderMonitor([DisorderOptions(block_rows=20, blocks=blocks) for blocks in (3, 5)])
    keys = np.arange(200)
    keys[10] = 2  # 8 positions late
    for number, (before, after) in enumerate([(59, 60), (99, 100)]):
        items = items_of(keys, number)
        monitor.observe(items)
        assert items["factor"][[before, after]].tolist() == [8, 1]


@pytest.mark.compiled
def test_records_of_a_rising_stream_are_dropped_and_late_keys_counted():
    keys = np.arange(100_000)
    found, _ = observed(keys)
    assert found.records <= 1_100
    late, _ = observed(np.append(keys, 5))
    assert (late.underflows, late.factor >= 1_000) == (1, True)
    exact, _ = observed(np.append(keys, 5), is_exact=True)
    assert (exact.underflows, exact.factor, exact.records) == (0, 100_000 - 5, 100_000)


@pytest.mark.compiled
def test_counts_of_closed_keys_make_room():
    monitor = DisorderMonitor([DisorderOptions(factor=1)])
    monitor.observe(items_of(np.repeat(np.arange(50_000), 2)))
    assert monitor.of_input(0).multiplicity == 2
    assert monitor._state.counts.shape[1] <= 256


def test_keys_that_begin_again_are_noticed_before_they_are_taken():
    monitor = DisorderMonitor([DisorderOptions(most=5)])
    items = items_of([*range(20), 0, 1, 2])
    assert monitor.observe(items) == 20
    monitor.begin_epoch()
    assert monitor.observe(items, 20) == 23
    found = monitor.of_input(0)
    assert (found.arrivals, found.highest_key, found.factor) == (3, 2, 0)


def test_a_monitored_factor_closes_nothing_while_it_warms_up():
    assert observed(range(5), warm_up=3)[1]["closing"].tolist() == [NEVER, NEVER, NEVER, 3, 4]


def test_rates_count_the_newest_arrivals():
    times = np.arange(0, 10_000_001, 20_000)
    assert rate_at(times, 10_000_000) == 50
    assert rate_at(times, 11_000_000) == 25
    assert rate_at(times, 12_000_000) == 0


def test_options_and_saved_monitors_of_another_form_are_refused():
    with pytest.raises(ValueError, match="at least"):
        DisorderOptions(factor=-1)
    with pytest.raises(ValueError, match="within the factor"):
        DisorderOptions(factor=9, most=8)
    saved = DisorderMonitor([DisorderOptions()]).dump()
    with pytest.raises(JoinStateError, match="other inputs"):
        DisorderMonitor([DisorderOptions(), DisorderOptions()]).load(*saved)
    with pytest.raises(JoinStateError, match="cannot be read"):
        DisorderMonitor([DisorderOptions()]).load(saved[0], {})
