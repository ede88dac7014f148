"""PJoin and XJoin against brute force: each pair once, and no result of a key after its propagation."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Cause, Item, ItemColumns, Window, WindowJoin
from literature.errors import PunctuationRefused
from literature.punctuations import Anything, Nothing, OneOf, Range, constant, matches
from literature.spilling import PROPAGATIONS, UNLIMITED, SpillingJoin, SpillingRules, Thresholds, default_rows
from literature.spilling.reference import ReferencePairJoin
from tests.builders.joins import GeneratedStream, generated

KEYS = range(-1, 5)
values = st.integers(-1, 4)
patterns = st.one_of(
    st.builds(constant, values),
    st.builds(constant, values),
    st.builds(OneOf, st.frozensets(values, max_size=2)),
    st.builds(Range, low=values, high=values),
    st.sampled_from([Nothing(), Anything()]),
)
kinds = st.sampled_from([Item.EVENT] * 10 + [Item.CLOSING] * 3 + [Item.PLACE, Item.TIME])


@st.composite
def workloads(draw):
    """Items (kind, input, key, time, pattern); no event has a key that both inputs have closed."""
    steps = st.tuples(kinds, st.integers(0, 1), values, st.integers(0, 3), patterns)
    time, items = 0, []
    closed: list[set[int]] = [set(), set()]
    for kind, number, key, step, pattern in draw(st.lists(steps, max_size=60)):
        time += step
        if kind is Item.EVENT and all(key in one for one in closed):
            continue
        if kind is Item.CLOSING:
            new = {value for value in KEYS if matches(pattern, value)}
            if isinstance(pattern, OneOf) and new & closed[0] & closed[1]:
                continue
            closed[number] |= new
        items.append((kind, number, key, time, pattern))
    return items


@st.composite
def configurations(draw):
    """Rules, thresholds and rows of a join."""
    rules = SpillingRules(
        buckets=draw(st.sampled_from([1, 2, 4])),
        purge=draw(st.sampled_from(["indexed", "scan"])),
        placement=draw(st.sampled_from(["scattered", "modulo"])),
    )
    thresholds = Thresholds(
        purge_punctuations=draw(st.sampled_from([1, 2, 5])),
        memory_events=draw(st.sampled_from([1, 3, 5, 8, UNLIMITED])),
        propagate_punctuations=draw(st.sampled_from([1, 3])),
        propagate_us=draw(st.sampled_from([5, UNLIMITED])),
        activation_events=draw(st.sampled_from([1, 3])),
    )
    rows = default_rows(draw(st.sampled_from(PROPAGATIONS)), is_index_eager=draw(st.booleans()))
    return rules, thresholds, rows


def columns(items):
    """Items as columns, with the patterns of the closings."""
    said = [item[4] for item in items if item[0] is Item.CLOSING]
    rows, place = [], 0
    for kind, number, key, time, _ in items:
        rows.append((kind, number, (place if kind is Item.CLOSING else key) % (1 << 64), time))
        place += kind is Item.CLOSING
    return ItemColumns.of(rows), said


def pairs_of(found):
    """Pairs with their times."""
    return [(*pair, time) for pair, time in zip(found.members.tolist(), found.result_times_us.tolist(), strict=True)]


def taken(meaning, item):
    """Process an item by the reference."""
    kind, number, key, time, pattern = item
    if kind is Item.CLOSING:
        meaning.take_punctuation(number, pattern, time)
    elif kind is not Item.TIME:
        meaning.take_event(number, key if kind is Item.EVENT else None, time)


class Checked:
    """Results and propagated keys so far, checked as they are added."""

    def __init__(self):
        self.pairs: list[tuple[int, int, int]] = []
        self.over: set[int] = set()
        self.both: set[int] = set()  # keys that both inputs have closed

    def note(self, found, meaning):
        for pair in pairs_of(found):
            assert meaning.keys[pair[0]] not in self.over
            assert meaning.keys[pair[0]] == meaning.keys[pair[1]]
            self.pairs.append(pair)
        before = self.both  # propagation that is due by time comes before the item that lets time pass
        self.both = {key for key in KEYS if all(one.covers(key) for one in meaning.closed)}
        for said in found.propagated:
            keys = {key for key in KEYS if matches(said.pattern, key)}
            assert not isinstance(said.pattern, OneOf) or not keys & self.over
            assert all(any(one.covers(key) for one in meaning.closed) for key in keys)
            assert keys <= self.both or said.cause == Cause.IMMEDIATE
            if isinstance(said.pattern, OneOf) and keys <= before:  # of a range, single keys may be forgotten
                assert said.cause == Cause.REGULAR
            self.over |= keys


@settings(max_examples=400)
@given(workloads(), configurations(), st.sets(st.integers(0, 60), max_size=4))
def test_each_pair_is_found_once_and_none_after_its_key_was_propagated(items, configuration, pauses):
    rules, thresholds, rows = configuration
    meaning, checked = ReferencePairJoin(), Checked()
    with tempfile.TemporaryDirectory() as folder:
        join = SpillingJoin(Path(folder), rules=rules, thresholds=thresholds, rows=rows)
        for place, item in enumerate(items):
            taken(meaning, item)
            checked.note(join.push(*columns([item])), meaning)
            if place in pauses:
                checked.note(join.idle(place * 100_000), meaning)
                checked.note(join.propagate(), meaning)
            assert join.stats.in_memory < thresholds.memory_events
        checked.note(join.finish(), meaning)
        assert len(checked.pairs) == len(set(checked.pairs))
        assert set(checked.pairs) == meaning.pairs
        assert join.stats.violations == len(meaning.violations)
        assert join.stats.memory_results + join.stats.disk_results == len(meaning.pairs)


@settings(max_examples=150)
@given(workloads(), st.sampled_from([2, 5, UNLIMITED]), st.sampled_from([1, 4]))
def test_with_punctuations_ignored_it_is_xjoin(items, memory, buckets):
    meaning = ReferencePairJoin()
    with tempfile.TemporaryDirectory() as folder:
        rules = SpillingRules(buckets=buckets, uses_punctuations=False)
        join = SpillingJoin(Path(folder), rules=rules, thresholds=Thresholds(memory_events=memory))
        found = pairs_of(join.push(*columns(items)))
        for item in items:
            if item[0] is not Item.CLOSING:
                taken(meaning, item)
        found += pairs_of(join.idle(10**6)) + pairs_of(join.finish())
        assert sorted(found) == sorted(meaning.pairs)
        assert sum(join.held) == sum(item[0] is Item.EVENT for item in items)


@settings(max_examples=150)
@given(workloads(), configurations(), st.data())
def test_neither_cuts_nor_reloads_change_anything(items, configuration, data):
    rules, thresholds, rows = configuration
    border = data.draw(st.integers(0, len(items)))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        whole = SpillingJoin(Path(one), rules=rules, thresholds=thresholds, rows=rows)
        parts = SpillingJoin(Path(two), rules=rules, thresholds=thresholds, rows=rows)
        expected = [whole.push(*columns(items)), whole.propagate(), whole.finish()]
        first = parts.push(*columns(items[:border]))
        saved = parts.dump()
        if data.draw(st.booleans()):
            parts.release()
        parts.push(*columns(items[border:]))  # lost in a crash
        parts.finish()
        parts = SpillingJoin(Path(two), rules=rules)
        parts.load(*saved)
        found = [first, parts.push(*columns(items[border:])), parts.propagate(), parts.finish()]
        assert [pair for part in found for pair in pairs_of(part)] == [
            pair for part in expected for pair in pairs_of(part)
        ]
        assert [(said.pattern, said.cause, said.time_us) for part in found for said in part.propagated] == [
            (said.pattern, said.cause, said.time_us) for part in expected for said in part.propagated
        ]
        items_of = [*first.result_items, *(border + place for place in found[1].result_items)]
        assert items_of == expected[0].result_items.tolist()
        assert parts.stats == whole.stats


@settings(max_examples=150)
@given(workloads(), configurations(), st.lists(st.tuples(st.integers(0, 60), configurations()), max_size=4))
def test_changes_while_it_runs_change_no_result(items, configuration, changes):
    rules, thresholds, rows = configuration
    meaning, checked = ReferencePairJoin(), Checked()
    with tempfile.TemporaryDirectory() as folder:
        join = SpillingJoin(Path(folder), rules=rules, thresholds=thresholds, rows=rows)
        for place, item in enumerate(items):
            for moment, (_, other_thresholds, other_rows) in changes:
                if moment == place:
                    join.tune(other_thresholds, other_rows)
                    thresholds = other_thresholds
            taken(meaning, item)
            checked.note(join.push(*columns([item])), meaning)
            if item[0] in (Item.EVENT, Item.PLACE):
                assert join.stats.in_memory < thresholds.memory_events
        checked.note(join.finish(), meaning)
        assert sorted(checked.pairs) == sorted(meaning.pairs)


@settings(max_examples=150)
@given(workloads(), configurations())
def test_everything_is_over_once_both_inputs_are_finished(items, configuration):
    rules, thresholds, rows = configuration
    with tempfile.TemporaryDirectory() as folder:
        join = SpillingJoin(Path(folder), rules=rules, thresholds=thresholds, rows=rows)
        last = max((item[3] for item in items), default=0)
        ends = [(Item.CLOSING, number, 0, last, Anything()) for number in (0, 1)]
        join.push(*columns([*items, *ends]))
        join.tune(Thresholds(), default_rows("pull"))
        found = join.propagate()
        over = {key for said in found.propagated for key in KEYS if matches(said.pattern, key)}
        if thresholds.purge_punctuations == 1:
            assert join.held == (0, 0)
            assert not found.propagated or over == set(KEYS)


def pushed(join, *items):
    return join.push(*columns(items))


def test_results_of_events_on_disk_come_when_the_join_is_idle(tmp_path):
    join = SpillingJoin(tmp_path / "spilled", rules=SpillingRules(buckets=1), thresholds=Thresholds(memory_events=3))
    found = pushed(join, *((Item.EVENT, 0, key, key, None) for key in (1, 2, 3)), (Item.EVENT, 1, 1, 5, None))
    assert (len(found.members), join.stats.on_disk) == (0, 3)
    assert len(join.idle(0).members) == 0
    late = join.idle(200_000)
    assert (late.members.tolist(), late.result_times_us.tolist(), late.result_items.tolist()) == ([[0, 3]], [5], [-1])
    assert len(join.idle(10**9).members) == len(join.finish().members) == 0


def test_the_state_stays_small_while_keys_are_closed(tmp_path):
    join = SpillingJoin(tmp_path / "spilled", rules=SpillingRules(buckets=4))
    for key in range(500):
        pushed(join, *((Item.EVENT, number, key * 7, key, None) for number in (0, 1)))
        found = pushed(join, *((Item.CLOSING, number, 0, key, constant(key * 7)) for number in (0, 1)))
        assert [said.pattern for said in found.propagated] == [constant(key * 7)]
    assert join.held == (0, 0)
    assert (join.stats.memory_results, join.stats.propagated) == (500, 500)
    head, arrays = join.dump()
    assert head["closed"] == [[], []]
    assert head["sets"] == {"waiting": [[], []], "emitted": [], "leaving": [], "compared": 1000}
    assert len(arrays["slots"]) == 128 * 2 * 8
    assert not (tmp_path / "spilled").exists()


def key_of(pattern):
    """The keys of a constant or a list."""
    assert isinstance(pattern, OneOf)
    return pattern.values


def test_a_range_waits_for_earlier_punctuations_of_its_keys(tmp_path):
    join = SpillingJoin(tmp_path)
    closings = [(Item.CLOSING, 0, 0, 1, pattern) for pattern in (constant(1), Range(low=0, high=5), constant(8))]
    found = pushed(join, (Item.EVENT, 0, 1, 0, None), *closings)
    assert [said.pattern for said in found.propagated] == [constant(8)]
    found = pushed(join, (Item.EVENT, 1, 1, 2, None), (Item.CLOSING, 1, 0, 3, OneOf(frozenset({1, 2}))))
    assert len(found.members) == 1
    assert [said.pattern for said in found.propagated] == [constant(1), Range(low=0, high=5)]


def test_punctuations_are_propagated_when_the_mode_says_so(tmp_path):
    def run(mode, *, is_index_eager=False):
        join = SpillingJoin(
            tmp_path / mode,
            thresholds=Thresholds(propagate_punctuations=3),
            rows=default_rows(mode, is_index_eager=is_index_eager),
        )
        rows = [(Item.EVENT, 0, 1, 0, None), (Item.EVENT, 1, 1, 1, None)]
        closings = [(1, 7), (0, 1), (1, 1), (0, 8)]
        found = pushed(join, *rows, *((Item.CLOSING, number, 0, 2, constant(key)) for number, key in closings))
        asked = join.propagate()
        return [
            [(said.item, *key_of(said.pattern), said.cause.name) for said in part.propagated] for part in (found, asked)
        ]

    assert run("push") == [[(4, 1, "REGULAR"), (4, 7, "IMMEDIATE")], [(-1, 8, "IMMEDIATE")]]
    assert run("pull") == [[], [(-1, 1, "REGULAR"), (-1, 8, "IMMEDIATE"), (-1, 7, "IMMEDIATE")]]
    assert run("on-zero") == [[(2, 7, "IMMEDIATE"), (4, 1, "REGULAR"), (5, 8, "IMMEDIATE")], []]
    assert run("pair") == [[(4, 1, "REGULAR"), (4, 7, "IMMEDIATE")], [(-1, 8, "IMMEDIATE")]]
    assert run("none") == [[], []]


def test_odd_input_is_counted(tmp_path):
    join = SpillingJoin(tmp_path)
    found = pushed(
        join,
        (Item.CLOSING, 0, 0, 1, Range(low=1, high=5)),
        (Item.CLOSING, 0, 0, 1, constant(3)),
        (Item.CLOSING, 0, 0, 1, Range(low=5, high=1)),
        (Item.EVENT, 0, 3, 2, None),
        (Item.PLACE, 1, 0, 2, None),
        (Item.EVENT, 1, 3, 2, None),
        (Item.CLOSING, 1, 0, 1, Anything()),
    )
    stats = join.stats
    assert found.violations.tolist() == [3]
    assert (stats.violations, stats.nulls, stats.duplicates, stats.empty, stats.wildcards) == (1, 1, 1, 1, 1)
    assert (stats.on_the_fly, stats.events) == (1, 3)
    with pytest.raises(PunctuationRefused):
        pushed(join, (Item.CLOSING, 0, 0, 3, constant("a")))
    with pytest.raises(ValueError, match="power of two"):
        SpillingRules(buckets=3)


def test_many_results_and_keys_find_room(tmp_path):
    join = SpillingJoin(tmp_path, rules=SpillingRules(buckets=2), thresholds=Thresholds(memory_events=150))
    items = [(Item.EVENT, number, key, 0, None) for key in range(3) for number in (0, 1) for _ in range(100)]
    items += [(Item.EVENT, 0, 100 + key, 1, None) for key in range(200)]
    found = pairs_of(pushed(join, *items)) + pairs_of(join.finish())
    assert len(set(found)) == len(found) == 30_000
    assert join.stats.disk_results > 0
    assert join.written_bytes > 0
    assert np.all(np.array(found)[:, 2] == 0)


@settings(max_examples=200)
@given(workloads(), st.sampled_from([1, 4]))
def test_in_memory_it_is_the_windowed_join_without_windows(items, buckets):
    """Section 6.2: the same pairs and the same finished keys at every item, if counts that become zero propagate."""
    only = [
        (kind, number, key, time, constant(each))
        for kind, number, key, time, pattern in items
        if kind is not Item.CLOSING or isinstance(pattern, OneOf)
        for each in (sorted(pattern.values) if kind is Item.CLOSING else [key])
    ]
    windowed, odd = WindowJoin([Window(), Window()]), 0x9E3779B97F4A7C15
    meaning = ReferencePairJoin()
    with tempfile.TemporaryDirectory() as folder:
        join = SpillingJoin(Path(folder), rules=SpillingRules(buckets=buckets), rows=default_rows("on-zero"))
        for kind, number, key, time, pattern in only:
            found = join.push(*columns([(kind, number, key, time, pattern)]))
            one = int(min(pattern.values)) if kind is Item.CLOSING else key
            expected = windowed.push(ItemColumns.of([(kind, number, (one * odd) % (1 << 64), time)]))
            assert sorted(found.members.tolist()) == sorted(expected.members.tolist())
            over = {(one * odd) % (1 << 64) for said in found.propagated for one in key_of(said.pattern)}
            assert over == set(expected.closing_keys.tolist())
            assert join.stats.in_memory == windowed.stored
            taken(meaning, (kind, number, key, time, pattern))
            assert join.held == (meaning.useful(0), meaning.useful(1))


@pytest.mark.parametrize("memory", [40, 300, UNLIMITED])
@pytest.mark.parametrize("purge", [1, 25])
def test_generated_streams_give_the_same_pairs_with_and_without_disk(memory, purge, tmp_path):
    items = generated([GeneratedStream(spacing=20), GeneratedStream(spacing=30)], 8, seed=3)
    is_closing = items.kinds == Item.CLOSING
    said = [constant(key) for key in items.keys[is_closing].tolist()]
    hashed = replace(items, keys=items.keys * np.uint64(0x9E3779B97F4A7C15))
    expected = WindowJoin([Window(), Window()]).push(hashed)
    items.keys[is_closing] = np.arange(len(said), dtype=np.uint64)
    join = SpillingJoin(
        tmp_path,
        rules=SpillingRules(buckets=16),
        thresholds=Thresholds(memory_events=memory, purge_punctuations=purge, activation_events=50),
    )
    found, seen = [], 0
    for start in range(0, len(items), 500):
        part = items.slice(start, start + 500)
        closings = int(np.count_nonzero(part.kinds == Item.CLOSING))
        part.keys[part.kinds == Item.CLOSING] -= np.uint64(seen)
        found += [join.push(part, said[seen : seen + closings]), join.idle(0)]
        seen += closings
    found.append(join.finish())
    pairs = np.concatenate([part.members for part in found])
    assert len(pairs) == len(expected.members) > 10_000
    assert np.array_equal(pairs[np.lexsort(pairs.T)], expected.members[np.lexsort(expected.members.T)])
    assert (join.stats.disk_results > 0) == (memory < UNLIMITED)
