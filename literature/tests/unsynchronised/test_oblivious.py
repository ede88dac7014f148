"""The window-oblivious join, compared with the full join of all arrivals."""

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import JoinRefused, JoinStateError
from literature.unsynchronised import (
    Arrivals,
    BufferOptions,
    DisorderMonitor,
    DisorderOptions,
    JoinBuffers,
    ObliviousJoin,
    divided,
    integer_keys,
    items_of,
    part_of,
)
from literature.unsynchronised.reference import full_join, slots_needed
from literature.unsynchronised.testing import factors_of, interleaved, scrambled_keys, workloads

POLICIES = [BufferOptions(), BufferOptions(drops_dead=True), BufferOptions(policy="counts")]
policies = st.sampled_from(POLICIES)


def pairs_of(arrivals):
    return list(zip(arrivals.inputs.tolist(), arrivals.keys.tolist(), strict=True))


def known(arrivals, inputs, less=0):
    return [DisorderOptions(factor=max(factor - less, 0)) for factor in factors_of(arrivals, inputs)]


def tuples(found):
    return list(map(tuple, found.members.tolist()))


def long_workload(seed, inputs=3, size=1_000):
    chosen = np.random.default_rng(seed)
    return interleaved(chosen, [scrambled_keys(chosen, size, 30 * (number + 1), 2) for number in range(inputs)])


@settings(max_examples=300)
@given(workloads(), policies)
def test_with_true_factors_all_is_found_once_at_its_last_arrival(workload, options):
    inputs, arrivals = workload
    join = ObliviousJoin(known(arrivals, inputs), options)
    expected = full_join(pairs_of(arrivals), inputs)
    found = join.push(arrivals)
    assert sorted(tuples(found)) == sorted(members for _, members in expected)
    assert found.members.max(axis=1).tolist() == [place for place, _ in expected]
    assert found.times_us.tolist() == [arrivals.times_us[place] for place, _ in expected]
    assert len(found.late) == 0


@pytest.mark.parametrize("inputs", [2, 3, 4])
@pytest.mark.parametrize("options", POLICIES)
def test_long_inputs_give_the_full_join_in_bounded_memory(inputs, options):
    arrivals = long_workload(inputs, inputs)
    join = ObliviousJoin(known(arrivals, inputs), options)
    found = join.push(arrivals)
    assert sorted(tuples(found)) == sorted(hashed_full_join(arrivals, inputs))
    assert all(join.buffer_of(number).most_resident < 500 for number in range(inputs))
    assert join.stats.buffers.keys < 500


def hashed_full_join(arrivals, inputs):
    rows: dict[int, list[list[int]]] = {}
    for place, (number, key) in enumerate(pairs_of(arrivals)):
        rows.setdefault(key, [[] for _ in range(inputs)])[number].append(place)
    return [members for lists in rows.values() for members in product(*lists)]


@settings(max_examples=200)
@given(workloads())
def test_closing_keys_hold_no_more_than_counts_and_counts_no_more_than_the_model(workload):
    inputs, arrivals = workload
    options = known(arrivals, inputs)
    by_keys = ObliviousJoin(options, BufferOptions(traces=True)).push(arrivals)
    by_counts = ObliviousJoin(options, BufferOptions(policy="counts", traces=True)).push(arrivals)
    assert (by_keys.predicted == by_counts.predicted).all()
    assert (by_keys.resident <= by_counts.resident).all()
    assert (by_counts.resident <= by_counts.predicted).all()
    assert len(by_keys.resident) == len(arrivals)


@given(workloads())
def test_the_model_counts_the_slots_of_its_formula_and_never_less_than_the_optimum(workload):
    inputs, arrivals = workload
    factors = factors_of(arrivals, inputs)
    found = ObliviousJoin(known(arrivals, inputs), BufferOptions(traces=True)).push(arrivals)
    for place in range(len(arrivals)):
        streams = [arrivals.keys[: place + 1][arrivals.inputs[: place + 1] == number] for number in range(inputs)]
        closed = [
            own[: max(len(own) - factor, 0)].max(initial=-(2**63)) for own, factor in zip(streams, factors, strict=True)
        ]
        for one in np.flatnonzero([len(own) > 0 for own in streams]):  # the factor of others is not known yet
            open_to = [int((streams[one] > key).sum()) for other, key in enumerate(closed) if other != one]
            assert found.predicted[place, one] == max(1, factors[one] + max(open_to))
    for place, number, slots in slots_needed(pairs_of(arrivals), inputs):
        assert slots <= found.predicted[place - 1, number]


@settings(max_examples=200)
@given(workloads(), policies, st.integers(1, 8))
def test_factors_that_are_too_small_lose_results_and_invent_none(workload, options, less):
    inputs, arrivals = workload
    found = tuples(ObliviousJoin(known(arrivals, inputs, less), options).push(arrivals))
    assert len(set(found)) == len(found)
    assert set(found) <= {members for _, members in full_join(pairs_of(arrivals), inputs)}


@pytest.mark.compiled
def test_accuracy_falls_as_factors_are_understated():
    found = []
    for less in (0, 10, 25, 60):
        counts = []
        for seed in range(10):
            arrivals = long_workload(seed, size=300)
            join = ObliviousJoin(known(arrivals, 3, less))
            counts.append(len(join.push(arrivals).members))
        found.append(sum(counts))
    assert found[0] > found[1] > found[2] > found[3]


@settings(max_examples=200)
@given(workloads(), st.sampled_from([*POLICIES, BufferOptions(idle_us=4), BufferOptions(most_results=2)]), st.data())
def test_neither_cuts_nor_reloads_change_anything(workload, options, data):
    inputs, arrivals = workload
    declared = [DisorderOptions(block_rows=5, blocks=2, most=9, warm_up=0), *known(arrivals, inputs)[1:]]
    whole, parts = ObliviousJoin(declared, options), ObliviousJoin(declared, options)
    expected = whole.push(arrivals)
    border = data.draw(st.integers(0, len(arrivals)))
    first = parts.push(arrivals.slice(0, border))
    saved, parts = parts.dump(), ObliviousJoin(declared, options)
    parts.load(*saved)
    second = parts.push(arrivals.slice(border, len(arrivals)))
    assert tuples(first) + tuples(second) == tuples(expected)
    assert [*first.late, *second.late] == expected.late.tolist()
    assert asdict(parts.stats) == asdict(whole.stats)
    assert [parts.buffer_of(one) for one in range(inputs)] == [whole.buffer_of(one) for one in range(inputs)]
    assert (parts.held_sequences() == whole.held_sequences()).all()


@pytest.mark.parametrize("options", POLICIES)
def test_a_join_restored_many_times_in_a_long_run_has_the_same_output(options):
    arrivals = long_workload(5)
    declared = [DisorderOptions(warm_up=0), DisorderOptions(warm_up=90, headroom=1.25), DisorderOptions(factor=90)]
    expected = tuples(ObliviousJoin(declared, options).push(arrivals))
    join, found = ObliviousJoin(declared, options), []
    for start in range(0, len(arrivals), 97):
        found += tuples(join.push(arrivals.slice(start, start + 97)))
        saved, join = join.dump(), ObliviousJoin(declared, options)
        join.load(*saved)
    assert found == expected


@pytest.mark.parametrize("parts", [1, 4, 16])
@pytest.mark.parametrize("options", POLICIES[:2])
def test_parts_by_hashes_of_keys_find_the_same_together(parts, options):
    arrivals = long_workload(7)
    monitor = DisorderMonitor(known(arrivals, 3))
    joins, found = [JoinBuffers(3, options) for _ in range(parts)], []
    for start in range(0, len(arrivals), 250):
        items = items_of(arrivals.slice(start, start + 250), start)
        monitor.observe(items)
        for join, own in zip(joins, divided(items, parts), strict=True):
            found += tuples(join.push(own))
    assert sorted(found) == sorted(hashed_full_join(arrivals, 3))
    assert len(np.unique(part_of(arrivals.keys, parts))) == parts
    whole = ObliviousJoin(known(arrivals, 3), options)
    whole.push(arrivals)
    assert sum(join.stats.resident for join in joins) == whole.stats.buffers.resident


@pytest.mark.parametrize(("between", "epochs", "lost"), [(0, 1, 0), (3, 2, 5)])
def test_keys_that_begin_again_empty_the_buffers_and_are_counted(between, epochs, lost):
    """The second input lags: it still brings ``between`` old keys after the keys of the first have begun again."""
    old = [(number, key, 0) for key in range(50) for number in (0, 1)] + [(0, 50, 0)]
    ahead = [(0, key, 1) for key in range(5)] if between else []
    lagging = [(1, 50 + key, 1) for key in range(between)]
    again = [(number, key, 2) for key in range(len(ahead), 20) for number in (1, 0)]
    late = [(1, key, 2) for key in range(len(ahead))]
    join = ObliviousJoin([DisorderOptions(most=2, warm_up=0), DisorderOptions(most=2, warm_up=0)])
    found = join.push(Arrivals.of([*old, *ahead, *lagging, *late, *again]))
    assert join.stats.epochs == epochs
    assert join.stats.drained == 1 + between
    assert len(found.members) == 50 + 20 - lost
    assert [join.disorder_of(number).highest_key for number in (0, 1)] == [19, 19]


def test_arrivals_without_a_key_join_nothing_and_are_named():
    join = ObliviousJoin([DisorderOptions(factor=0)] * 2)
    found = join.push(Arrivals.of([(0, 5, 1), (0, None, 2), (1, None, 3), (1, 5, 4)]))
    assert (tuples(found), found.keyless.tolist()) == ([(0, 3)], [1, 2])
    assert (join.stats.arrivals, join.stats.keyless, join.next_sequence) == (4, 2, 4)


def test_the_lowest_and_the_highest_integer_are_no_keys_and_their_neighbours_are():
    join = ObliviousJoin([DisorderOptions(factor=9)] * 2)
    limits = [-(2**63), 2**63 - 1, -(2**63) + 1, 2**63 - 2]
    found = join.push(Arrivals.of([(number, key, 0) for number in (0, 1) for key in limits]))
    assert found.keyless.tolist() == [0, 1, 4, 5]
    assert tuples(found) == [(2, 6), (3, 7)]


def test_columns_with_other_keys_than_integers_are_refused():
    keys, has_key = integer_keys(np.array([1.0, np.nan, -3.0]))
    assert (keys.tolist(), has_key.tolist()) == ([1, 0, -3], [True, False, True])
    assert integer_keys(np.array([1, 2], np.int32))[0].dtype == np.int64
    for column in (np.array(["a"]), np.array([1.5]), np.array([np.inf]), np.array([2**63], np.uint64)):
        with pytest.raises(JoinRefused, match="integer"):
            integer_keys(column)


def test_an_input_that_has_ended_releases_what_others_keep_for_it():
    join = ObliviousJoin([DisorderOptions(factor=0)] * 2)
    join.push(Arrivals.of([(0, key, key) for key in range(9)]))
    assert join.stats.buffers.resident == 9
    join.end(1)
    assert (join.stats.buffers.resident, join.buffer_of(0).predicted) == (0, 1)
    join.push(Arrivals.of([(0, 9, 9)]))
    assert (join.stats.buffers.resident, join.stats.buffers.on_the_fly) == (0, 1)


def test_an_idle_input_keeps_memory_unless_a_time_is_declared_and_then_may_lose_results():
    rows = [(1, 0, 0), *((0, key, key) for key in range(100)), (1, 10, 100), (1, 99, 101)]
    patient, hasty = (
        ObliviousJoin([DisorderOptions(factor=0)] * 2, BufferOptions(idle_us=idle_us)) for idle_us in (None, 20)
    )
    assert tuples(patient.push(Arrivals.of(rows))) == [(1, 0), (11, 101), (100, 102)]
    found = hasty.push(Arrivals.of(rows))
    assert tuples(found) == [(1, 0)]
    assert found.late.tolist() == [101, 102]
    assert (patient.stats.buffers.idle_closings, hasty.stats.buffers.idle_closings) == (0, 80)
    assert hasty.buffer_of(0).most_resident < patient.buffer_of(0).most_resident
    assert hasty.stats.estimated_accuracy == 1 - 2 / 103


def test_an_input_without_arrivals_keeps_everything():
    join = ObliviousJoin([DisorderOptions(factor=2)] * 2)
    join.push(Arrivals.of([(0, key, key) for key in range(300)] + [(1, 0, 300), (1, 1, 301)]))
    assert (join.stats.buffers.resident, join.stats.buffers.results) == (300, 2)
    assert join.buffer_of(0).predicted == 302


def test_one_arrival_can_complete_more_combinations_than_there_was_room_for_or_is_capped():
    rows = [(number, 7, 0) for number in (0, 1) for _ in range(40)]
    options = [DisorderOptions(factor=99)] * 3
    found = ObliviousJoin(options).push(Arrivals.of([*rows, (2, 7, 1)]))
    assert len(np.unique(found.members, axis=0)) == 1600
    capped = ObliviousJoin(options, BufferOptions(most_results=100))
    assert len(capped.push(Arrivals.of([*rows, (2, 7, 1)])).members) == 100
    assert capped.stats.buffers.capped == 1500


def test_dead_keys_are_dropped_before_every_input_has_closed_them():
    rows = [(0, key, key) for key in range(20)] + [(1, key, 30) for key in range(1, 40, 2)]
    plain, strict = (
        ObliviousJoin([DisorderOptions(factor=0)] * 3, BufferOptions(drops_dead=dead)) for dead in (False, True)
    )
    for join in (plain, strict):
        join.push(Arrivals.of(rows))
    assert plain.buffer_of(0).resident == 20
    assert strict.buffer_of(0).resident == 10  # what the second input skipped can join no more
    assert strict.stats.buffers.dead > 0
    ends = Arrivals.of([(2, key, 50) for key in range(40)])
    assert tuples(plain.push(ends)) == tuples(strict.push(ends))


def test_a_join_of_fixed_sizes_is_a_window_join():
    options = BufferOptions(policy="sizes", sizes=[2, 1])
    join = ObliviousJoin([DisorderOptions()] * 2, options)
    found = join.push(Arrivals.of([(0, 1, 0), (0, 2, 0), (0, 3, 0), (1, 1, 1), (1, 2, 1), (0, 1, 2), (0, 2, 2)]))
    assert tuples(found) == [(1, 4), (6, 4)]
    assert (join.buffer_of(0).resident, join.buffer_of(1).resident) == (2, 1)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="2 to 16 inputs"):
        JoinBuffers(1)
    with pytest.raises(ValueError, match="need 2 sizes, not 1"):
        JoinBuffers(2, BufferOptions(policy="sizes", sizes=[1]))
    with pytest.raises(ValueError, match="one of keys"):
        BufferOptions(policy="none")
    with pytest.raises(ValueError, match="idle"):
        BufferOptions(idle_us=0)
    saved = ObliviousJoin([DisorderOptions()] * 2).dump()
    other = ObliviousJoin([DisorderOptions()] * 3)
    with pytest.raises(JoinStateError, match="inputs"):
        other.load(*saved)
    with pytest.raises(JoinStateError, match="format 9"):
        other.load({**saved[0], "format": 9}, saved[1])
    with pytest.raises(JoinStateError, match="cannot be read"):
        other.load({"format": 1}, {})
