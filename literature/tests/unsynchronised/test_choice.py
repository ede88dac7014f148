"""A strategy for a budget, or a refusal with the needs of each strategy."""

import numpy as np
import pytest

from joins import JoinRefused
from literature.kernels.unsynchronised import tables
from literature.unsynchronised import Budget, DisorderMonitor, DisorderOptions, InputEstimate, choose, predicted_slots

EQUAL = [InputEstimate(rate=50, factor=500, multiplicity=2)] * 2
NO_LAG = [[0, 0], [0, 0]]
LEADING = [[0, 3000], [-3000, 0]]


def chosen(memory_bytes, lags=NO_LAG, estimates=EQUAL, pipelined=False, **more):
    return choose(estimates, lags, Budget(memory_bytes=memory_bytes, **more), is_pipelined=pipelined)


def test_what_fits_stays_plain():
    found = chosen(48_000)
    assert (found.strategy, found.memory_bytes, found.latency_us) == ("plain", 48_000, 0)
    assert found.reason == (
        "plain: predicted memory 48,000 of 48,000 bytes (arrivals of each input: 1,000, 1,000), delay up to 0 us"
    )


def test_a_lag_that_dominates_waits_on_disk():
    found = chosen(65_000, LEADING)
    assert (found.strategy, found.memory_bytes) == ("disk", 2 * (500 + 500 + 256) * 24)
    assert [one.disk for one in found.slots] == [3000, 0]
    assert chosen(45_000, LEADING).strategy == "hybrid"


def test_disorder_is_sorted_in_plans_that_allow_the_delay():
    assert chosen(30_000, pipelined=True).strategy == "sort"
    assert chosen(30_000, pipelined=True).latency_us == 10_000_000
    assert chosen(40_000).strategy == "hybrid"
    with pytest.raises(JoinRefused, match="sorting delays results by up to 10,000,000 us, allowed are 9,000,000"):
        chosen(40_000, pipelined=True, latency_us=9_000_000)


def test_what_fits_in_no_way_is_refused_with_the_figures():
    with pytest.raises(JoinRefused) as refused:
        chosen(1_000, LEADING)
    text = str(refused.value)
    for slots in (predicted_slots(EQUAL, LEADING, strategy) for strategy in ("plain", "sort", "disk", "hybrid")):
        assert f"{round(sum(one.memory for one in slots) * 24):,} bytes" in text
    assert "budget 1,000" in text
    assert "3,000 on disk" in text


def test_a_budget_below_one_arrival_of_each_input_is_refused():
    with pytest.raises(JoinRefused, match="at least 48 bytes of memory, one arrival of each; its budget is 47"):
        chosen(47)


def test_without_a_disk_nothing_waits_there():
    with pytest.raises(JoinRefused, match="no disk"):
        chosen(65_000, LEADING, has_disk=False)


def test_an_unknown_rate_has_no_bound():
    with pytest.raises(JoinRefused, match="without bound"):
        chosen(10**9, estimates=[EQUAL[0], InputEstimate(rate=0, factor=1)])


def test_a_stream_of_one_key_is_refused():
    items = np.zeros(5_000, tables.ITEM)
    items["key"] = 7
    monitor = DisorderMonitor([DisorderOptions()])
    monitor.observe(items)
    found = monitor.of_input(0)
    assert (found.factor, found.multiplicity) == (4_999, 5_000)
    estimate = InputEstimate(rate=50, factor=found.factor, multiplicity=found.multiplicity)
    with pytest.raises(JoinRefused, match="no strategy"):
        chosen(100_000, estimates=[estimate, InputEstimate(rate=50, factor=0)])
