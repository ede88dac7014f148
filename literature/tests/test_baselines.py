"""The hash window joins, compared with the join that knows closed keys, in results and costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns, Window, WindowJoin
from literature.baselines import HashWindowJoin

KEYS = [0, 1 << 32, 5, (1 << 63) + 7, 3 << 32]

windows = st.one_of(
    st.just(Window()),
    st.builds(Window, st.just("time"), st.integers(1, 6)),
    st.builds(Window, st.just("events"), st.integers(0, 3)),
)
kinds = st.sampled_from([Item.EVENT] * 8 + [Item.PLACE, Item.TIME])


@st.composite
def workloads(draw):
    """Windows and items with ties, without closings."""
    declared = draw(st.lists(windows, min_size=2, max_size=4))
    steps = st.tuples(kinds, st.integers(0, len(declared) - 1), st.sampled_from(KEYS), st.integers(0, 3))
    time, items = 0, []
    for kind, number, key, step in draw(st.lists(steps, max_size=60)):
        time += step
        items.append((kind, number, key, time))
    return declared, items


def results_of(join, items):
    """Combinations with the items that led to them."""
    found = join.push(ItemColumns.of(items))
    return sorted(zip(found.result_items.tolist(), map(tuple, found.members.tolist()), strict=True))


@settings(max_examples=300, deadline=None)
@given(workloads(), st.booleans(), st.sampled_from([1, 2, 8]))
def test_without_closings_it_finds_what_the_other_join_finds(workload, is_adaptive, buckets):
    declared, items = workload
    plain, aware = HashWindowJoin(declared, buckets=buckets, is_adaptive=is_adaptive), WindowJoin(declared)
    assert results_of(plain, items) == results_of(aware, items)
    assert (plain.stats.stored, plain.stats.expired) == (aware.stats.stored, aware.stats.expired)


@settings(max_examples=100, deadline=None)
@given(workloads(), st.data())
def test_cuts_change_nothing(workload, data):
    declared, items = workload
    whole, parts = HashWindowJoin(declared, buckets=2), HashWindowJoin(declared, buckets=2)
    border = data.draw(st.integers(0, len(items)))
    expected = results_of(whole, items)
    first, second = results_of(parts, items[:border]), results_of(parts, items[border:])
    assert first + [(border + item, members) for item, members in second] == expected
    assert parts.stats == whole.stats


def test_closings_are_ignored_and_let_time_advance():
    join = HashWindowJoin([Window("time", 5), Window()])
    items = [(Item.EVENT, 0, 9, 0), (Item.CLOSING, 1, 9, 1), (Item.EVENT, 1, 9, 2), (Item.CLOSING, 1, 9, 5)]
    assert results_of(join, items) == [(2, (0, 1))]
    assert (join.stats.stored, join.stats.expired) == (1, 1)


def test_many_stored_events_and_results_find_room():
    declared = [Window(), Window(), Window()]
    items = [(Item.EVENT, number, 9, 0) for number in (0, 1) for _ in range(100)]
    items.append((Item.EVENT, 2, 9, 1))
    join = HashWindowJoin(declared, buckets=4)
    found = join.push(ItemColumns.of(items))
    assert len(np.unique(found.members, axis=0)) == join.stats.results == 10_000
    assert results_of(HashWindowJoin(declared, buckets=4), items) == results_of(WindowJoin(declared), items)
    assert join.stats.probes == 100 + 200 + 2  # one where the first other input is empty, else two


def test_a_probe_of_a_bucket_against_one_look_up():
    """Section 6.4 (b): 3 look-ups and 12 accesses of which 8 are irrelevant, against 1 look-up and 4 accesses."""
    others = {1: (7, 8, 8, 9), 2: (7, 9, 9, 9), 3: (7, 7, 8, 9)}
    items = [(Item.EVENT, number, key, 0) for number, keys in others.items() for key in keys]
    plain, aware = HashWindowJoin([Window()] * 4, buckets=1), WindowJoin([Window()] * 4)
    for join in (plain, aware):
        join.push(ItemColumns.of(items))
    before, lookups = plain.stats, aware.stats.lookups
    plain.push(ItemColumns.of([(Item.EVENT, 0, 7, 1)]))
    found = aware.push(ItemColumns.of([(Item.EVENT, 0, 7, 1)]))
    assert plain.stats.probes - before.probes == 3
    assert plain.stats.lookups - before.lookups == 4
    assert plain.stats.comparisons - before.comparisons == 12
    assert plain.stats.irrelevant - before.irrelevant == 8
    assert aware.stats.lookups - lookups == 1
    assert len(np.unique(found.members[:, 1:])) == 4


def test_the_input_that_matches_most_rarely_is_probed_first():
    items = [(Item.EVENT, 1, 9, 0)] + [(Item.EVENT, 0, 9, 1) for _ in range(100)]
    fixed, adaptive = (HashWindowJoin([Window()] * 3, buckets=1, is_adaptive=flag) for flag in (False, True))
    for join in (fixed, adaptive):
        join.push(ItemColumns.of(items))
    assert fixed.stats.probes == 1 + 200
    assert adaptive.stats.probes < 110


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="power of two"):
        HashWindowJoin([Window(), Window()], buckets=3)
    with pytest.raises(ValueError, match="two inputs or more"):
        HashWindowJoin([Window(), Window("events-of-key", 2)])
