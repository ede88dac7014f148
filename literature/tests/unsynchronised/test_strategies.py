"""Strategies that save memory: the same results, later, from less memory."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import JoinStateError
from literature.kernels.unsynchronised import tables
from literature.unsynchronised import (
    STRATEGIES,
    Arrivals,
    BufferOptions,
    DisorderMonitor,
    DisorderOptions,
    ObliviousJoin,
    SortBuffers,
    SpillOptions,
    items_of,
    scrambling_factor,
)
from literature.unsynchronised.reference import full_join, multiplicity
from literature.unsynchronised.testing import factors_of, interleaved, scrambled_keys, workloads


def spill_to(folder, **more):
    given = {"reserve": 8, "io_us": 0.1, **more}
    return SpillOptions(folder=Path(folder), **given)


def join_of(strategy, declared, folder, options=None, **more):
    spill = spill_to(folder, **more) if strategy in ("disk", "hybrid") else None
    return ObliviousJoin(declared, options, strategy=strategy, spill=spill)


def known(arrivals, inputs):
    return [DisorderOptions(factor=factor) for factor in factors_of(arrivals, inputs)]


def tuples(found):
    return list(map(tuple, found.members.tolist()))


def full(arrivals, inputs):
    pairs = list(zip(arrivals.inputs.tolist(), arrivals.keys.tolist(), strict=True))
    return sorted(members for _, members in full_join(pairs, inputs))


def leading(lag, size=1_500, block=40, seed=1):
    """Two inputs at 50 arrivals per second, the first ``lag`` seconds ahead."""
    chosen = np.random.default_rng(seed)
    streams = [scrambled_keys(chosen, size, block, 2) for _ in range(2)]
    times = [np.arange(len(keys)) * 20_000 for keys in streams]
    times[1] = times[1] + lag * 1_000_000
    inputs = np.repeat(np.array([0, 1], np.uint8), [len(keys) for keys in streams])
    together = np.concatenate(times)
    order = np.argsort(together, kind="stable")
    return Arrivals(inputs=inputs[order], keys=np.concatenate(streams)[order], times_us=together[order])


@settings(max_examples=200)
@given(workloads(), st.sampled_from(STRATEGIES), st.booleans())
def test_each_strategy_finds_the_full_join(workload, strategy, drops_dead):
    inputs, arrivals = workload
    with TemporaryDirectory() as folder:
        join = join_of(strategy, known(arrivals, inputs), folder, BufferOptions(drops_dead=drops_dead))
        found = tuples(join.push(arrivals))
        for number in range(inputs):
            found += tuples(join.end(number))
        assert sorted(found) == full(arrivals, inputs)
        assert (join.stats.late, len(join.held_sequences())) == (0, 0)


@settings(max_examples=150)
@given(workloads(), st.sampled_from(STRATEGIES[1:]), st.data())
def test_neither_cuts_nor_reloads_change_what_a_strategy_does(workload, strategy, data):
    inputs, arrivals = workload
    declared = [DisorderOptions(block_rows=5, blocks=2, most=9, warm_up=0), *known(arrivals, inputs)[1:]]
    with TemporaryDirectory() as one, TemporaryDirectory() as two, TemporaryDirectory() as three:
        whole, parts = join_of(strategy, declared, one), join_of(strategy, declared, two)
        expected = whole.push(arrivals)
        border = data.draw(st.integers(0, len(arrivals)))
        first = parts.push(arrivals.slice(0, border))
        saved, parts = parts.dump(), join_of(strategy, declared, three)
        parts.load(*saved)
        second = parts.push(arrivals.slice(border, len(arrivals)))
        assert tuples(first) + tuples(second) == tuples(expected)
        assert [*first.times_us, *second.times_us] == expected.times_us.tolist()
        assert asdict(parts.stats) == asdict(whole.stats)
        assert (parts.held_sequences() == whole.held_sequences()).all()
        held = [[join.held_of(number) for number in range(inputs)] for join in (parts, whole)]
        assert held[0] == held[1]


@settings(max_examples=150)
@given(workloads(), st.sampled_from(STRATEGIES))
def test_monitored_factors_invent_nothing_whatever_the_strategy(workload, strategy):
    inputs, arrivals = workload
    with TemporaryDirectory() as folder:
        found = tuples(join_of(strategy, [DisorderOptions(warm_up=0)] * inputs, folder).push(arrivals))
    assert len(set(found)) == len(found)
    assert set(found) <= set(full(arrivals, inputs))


@given(workloads())
def test_sorting_gives_every_arrival_in_the_order_of_keys_with_the_multiplicity_as_disorder(workload):
    inputs, arrivals = workload
    items, sorting = items_of(arrivals, 0), SortBuffers(inputs)
    DisorderMonitor(known(arrivals, inputs)).observe(items)
    released = sorting.push(items)
    taken = np.concatenate([released, sorting.held])
    assert sorted(taken["sequence"].tolist()) == list(range(len(arrivals)))
    for number in range(inputs):
        own = released[released["input"] == number]
        assert scrambling_factor(own["key"]) == max(multiplicity(own["key"].tolist()) - 1, 0)
        assert (np.diff(own["key"]) >= 0).all()
        if len(own):
            assert own["factor"][-1] == multiplicity(own["key"].tolist()) - 1
    assert sorting.late == 0


@given(workloads())
def test_what_a_join_of_sorted_inputs_emits_is_sorted_and_so_is_that_of_the_next_one(workload):
    inputs, arrivals = workload
    outputs = []
    for _ in range(2):
        join = ObliviousJoin(known(arrivals, inputs), strategy="sort")
        found = [join.push(arrivals), *(join.end(number) for number in range(inputs))]
        members = np.concatenate([one.members for one in found])
        outputs.append(arrivals.keys[members[:, 0]])
        assert (np.diff(outputs[-1]) >= 0).all()
        assert scrambling_factor(outputs[-1]) == max(multiplicity(outputs[-1].tolist()) - 1, 0)
    above = interleaved(np.random.default_rng(len(arrivals)), outputs)
    second = ObliviousJoin(known(above, 2), strategy="sort")
    found = [second.push(above), *(second.end(number) for number in range(2))]
    keys = above.keys[np.concatenate([one.members for one in found])[:, 0]]
    assert (np.diff(keys) >= 0).all()


def test_sort_buffers_release_by_counts_as_well():
    arrivals = leading(4)
    by_keys, by_counts = (
        ObliviousJoin(known(arrivals, 2), BufferOptions(policy=policy), strategy="sort")
        for policy in ("keys", "counts")
    )
    assert tuples(by_keys.push(arrivals)) == tuples(by_counts.push(arrivals))


def most_held(join, arrivals, number=0):
    """The greatest numbers of an input's arrivals in memory and on disk, and the results."""
    memory, disk, found = 0.0, 0.0, []
    for place in range(0, len(arrivals), 5):
        found += tuples(join.push(arrivals.slice(place, place + 5)))
        held = join.held_of(number)
        memory, disk = max(memory, held.memory), max(disk, held.disk)
    return memory, disk, found


def most_during(arrivals, factor):
    """The greatest number of arrivals of the first input during ``factor`` arrivals of the second one."""
    counts = np.cumsum(arrivals.inputs == 0)[np.flatnonzero(arrivals.inputs == 1)]
    return int((counts[factor:] - counts[:-factor]).max())


@pytest.mark.compiled
@pytest.mark.parametrize("strategy", ["disk", "hybrid"])
def test_memory_of_the_leader_does_not_depend_on_its_lead(strategy, tmp_path):
    reserve, held = 64, []
    for lag in (2, 20):
        arrivals = leading(lag)
        declared = known(arrivals, 2)
        (tmp_path / str(lag)).mkdir()
        join = join_of(strategy, declared, tmp_path / str(lag), reserve=reserve, io_us=1_000)
        memory, disk, found = most_held(join, arrivals)
        sort = declared[0].factor if strategy == "hybrid" else 0
        assert memory <= declared[0].factor + reserve + most_during(arrivals, declared[1].factor) + sort
        plain = ObliviousJoin(declared)
        kept, _, expected = most_held(plain, arrivals)
        assert sorted(found) == sorted(expected) or strategy == "hybrid"
        held.append((memory, disk, kept))
    (memory, disk, kept), (later_memory, later_disk, later_kept) = held
    assert later_memory < 1.3 * memory
    assert later_disk > 5 * disk
    assert later_kept > 5 * later_memory


def test_files_are_removed_once_they_are_read(tmp_path):
    arrivals = leading(10)
    join = join_of("disk", known(arrivals, 2), tmp_path, reserve=32, io_us=1_000)
    middle = len(arrivals) // 2
    join.push(arrivals.slice(0, middle))
    files = list(tmp_path.iterdir())
    assert len(files) > 5
    on_disk = join.held_of(0).disk
    assert len(join.held_sequences()) > on_disk > 100
    join.push(arrivals.slice(middle, len(arrivals)))
    join.end(0)
    join.end(1)
    assert list(tmp_path.iterdir()) == []
    assert join.held_of(0).disk == join.held_of(1).disk == 0
    assert join.spilled_of(0) >= on_disk
    assert join.spilled_of(1) < 40


@pytest.mark.compiled
def test_a_damaged_or_missing_file_is_noticed(tmp_path):
    arrivals = leading(10)
    join, other = (join_of("disk", known(arrivals, 2), tmp_path / name, reserve=32) for name in ("join", "other"))
    for one in (join, other):
        one.push(arrivals.slice(0, 450))
    saved = other.dump()
    for path in (tmp_path / "join").iterdir():
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        path.write_bytes(content)
    with pytest.raises(JoinStateError, match="damaged"):
        join.push(arrivals.slice(450, len(arrivals)))
    for path in (tmp_path / "other").iterdir():
        path.unlink()
    with pytest.raises(JoinStateError, match="cannot be read"):
        other.dump()
    again = join_of("disk", known(arrivals, 2), tmp_path / "other", reserve=32)
    again.load(*saved)
    plain = ObliviousJoin(known(arrivals, 2))
    first = plain.push(arrivals.slice(0, 450))
    rest = plain.push(arrivals.slice(450, len(arrivals)))
    assert len(first.members) + len(rest.members) == len(full(arrivals, 2))
    assert sorted(tuples(again.push(arrivals.slice(450, len(arrivals))))) == sorted(tuples(rest))


def test_arrivals_wait_only_while_the_lead_is_worth_it(tmp_path):
    arrivals = leading(2)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    quick = join_of("disk", known(arrivals, 2), tmp_path / "a", reserve=32, io_us=100_000)
    slow = join_of("disk", known(arrivals, 2), tmp_path / "b", reserve=32, io_us=1_000_000)
    assert sorted(tuples(quick.push(arrivals))) == sorted(tuples(slow.push(arrivals)))
    assert quick.spilled_of(0) > 1_000
    assert slow.spilled_of(0) == 0


class SteppingClock:
    """Each reading takes 30 ms."""

    def __init__(self):
        self.time_us = 0

    def now_us(self):
        self.time_us += 30_000
        return self.time_us


def test_the_time_of_an_operation_is_measured(tmp_path):
    arrivals = leading(10)
    options = SpillOptions(folder=tmp_path, reserve=32, io_us=1.0, clock=SteppingClock())
    join = ObliviousJoin(known(arrivals, 2), strategy="disk", spill=options)
    join.push(arrivals)
    assert join._disk is not None
    assert 50_000 < join._disk.io_us <= 60_000


def test_keys_that_begin_again_empty_what_waits(tmp_path):
    rows = [(0, key, key) for key in range(60)] + [(1, 0, 60)]
    declared = [DisorderOptions(most=5, warm_up=0)] * 2
    for strategy in ("sort", "disk", "hybrid"):
        (tmp_path / strategy).mkdir()
        join = join_of(strategy, declared, tmp_path / strategy)
        join.push(Arrivals.of(rows))
        kept = len(join.held_sequences())
        join.push(Arrivals.of([(0, 3, 61)]))
        assert join.stats.epochs == 1
        assert join.stats.drained == kept
        assert len(join.held_sequences()) == 1
        assert not list((tmp_path / strategy).iterdir())


def delays(strategy, folder):
    """The mean and the greatest delay of a combination after its last arrival, in microseconds."""
    arrivals = leading(4)
    folder.mkdir()
    found = join_of(strategy, known(arrivals, 2), folder, reserve=64, io_us=1_000).push(arrivals)
    waited = found.times_us - arrivals.times_us[found.members].max(axis=1)
    return float(waited.mean()), int(waited.max()), max(factors_of(arrivals, 2))


@pytest.mark.compiled
def test_sorting_delays_results_by_the_factor_and_disks_by_nothing_in_events(tmp_path):
    mean = {}
    for strategy in STRATEGIES:
        mean[strategy], most, factor = delays(strategy, tmp_path / strategy)
        if strategy in ("sort", "hybrid"):
            expected = factor * 20_000
            assert expected / 3 < most < 3 * expected
    assert mean["plain"] == mean["disk"] == 0 < mean["sort"]
    assert mean["hybrid"] == pytest.approx(mean["sort"], rel=0.2)


def made(declared, policy, strategy, spill):
    return ObliviousJoin(declared, BufferOptions(policy=policy), strategy=strategy, spill=spill)


def test_what_does_not_go_together_is_refused(tmp_path):
    declared = [DisorderOptions()] * 2
    for strategy, spill, policy in (("disk", None, "keys"), ("sort", spill_to(tmp_path), "keys")):
        with pytest.raises(ValueError, match="folder"):
            made(declared, policy, strategy, spill)
    with pytest.raises(ValueError, match="needs the policy keys, not counts"):
        made(declared, "counts", "disk", spill_to(tmp_path))
    with pytest.raises(ValueError, match="one of plain"):
        made(declared, "keys", "fast", None)
    with pytest.raises(ValueError, match="at least 8"):
        spill_to(tmp_path, reserve=7)
    saved = join_of("hybrid", declared, tmp_path).dump()
    for name in ("sorting", "disk"):
        broken = {**saved[0], name: {}}
        with pytest.raises(JoinStateError, match="cannot be read"):
            join_of("hybrid", declared, tmp_path).load(broken, saved[1])
    assert tables.ITEM.itemsize == 48
